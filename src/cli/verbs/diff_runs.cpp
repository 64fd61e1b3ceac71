// `autograph diff-runs A B`: where two runs part, by the files that `run --hashes` wrote.
#include <fmt/core.h>

#include "autograph/error.h"
#include "autograph/run_hashes.h"
#include "base/check.h"
#include "base/printable.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "report/picture/dot_text.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  std::string a;
  std::string b;
  double rtol = 0;
};

std::string text_of(const RunHashes& run) {
  return fmt::format("{} on {} ({}), {} thread{}, version {}", run.model, run.device, run.machine, run.threads,
                     run.threads == 1 ? "" : "s", run.version);
}

Json json_of(const RunHashes& run, const std::string& file) {
  return Json::object({{"file", file},
                       {"model", run.model},
                       {"device", run.device},
                       {"machine", run.machine},
                       {"threads", run.threads},
                       {"version", run.version},
                       {"nodes", run.nodes.size()}});
}

std::string node_of(const RunDifference& difference) {
  if (difference.name.empty()) return "input of the graph";
  const std::string turn = difference.turn > 0 ? fmt::format(", turn {}", difference.turn) : "";
  return fmt::format("{} {}{}", difference.op, printable(difference.name), turn);
}

std::string either(const std::string& a, const std::string& b) { return a == b ? a : a + " / " + b; }

Json json_of(const RunDifference& difference) {
  return Json::object({{"value", difference.value},
                       {"node", difference.name},
                       {"op", difference.op},
                       {"turn", difference.turn},
                       {"kernels", Json::Array{difference.kernel_a, difference.kernel_b}},
                       {"types", Json::Array{difference.type_a, difference.type_b}},
                       {"inputs_agree", difference.inputs_agree},
                       {"relative", difference.relative}});
}

std::string text_of(const RunComparison& found) {
  if (found.differences.empty()) return "";
  const RunDifference& first = *found.first();
  std::string text = fmt::format("\nthe runs part at {}: value {} {}, {:.3g} apart{}\n", node_of(first),
                                 printable(first.value), either(first.type_a, first.type_b), first.relative,
                                 first.inputs_agree ? ", from the same inputs" : "");
  Table table({{"value"}, {"node"}, {"type"}, {"kernel"}, {"apart", true}, {"same inputs"}});
  constexpr size_t kShown = 20, kWidth = 48;  // the JSON has all of them in full
  for (const RunDifference& difference : found.differences) {
    if (&difference - found.differences.data() >= static_cast<std::ptrdiff_t>(kShown)) break;
    table.add({shortened_name(difference.value, kWidth), shortened_name(node_of(difference), kWidth),
               either(difference.type_a, difference.type_b), either(difference.kernel_a, difference.kernel_b),
               fmt::format("{:.3g}", difference.relative), difference.inputs_agree ? "yes" : "no"});
  }
  text += "\n" + table.to_string(false);
  if (found.differences.size() > kShown) text += fmt::format("... and {} more\n", found.differences.size() - kShown);
  return text;
}

int run(Session& session, const Options& options) {
  AG_CHECK_USER(options.rtol >= 0, UserError, "[cli] rtol: expected 0 or more, got {}", options.rtol);
  const RunHashes a = read_run_hashes(options.a);
  const RunHashes b = read_run_hashes(options.b);
  const RunComparison found = compare_runs(a, b, options.rtol);
  const RunDifference* first = found.first();
  std::vector<std::pair<std::string, std::string>> rows = {
      {"A", text_of(a)},
      {"B", text_of(b)},
      {"values", fmt::format("{} in both, {} in A alone, {} in B alone", found.num_compared, found.only_in_a.size(),
                             found.only_in_b.size())},
      {"differ",
       fmt::format("{}{}", found.differences.size(),
                   found.num_close > 0 ? fmt::format(", {} more within {:g}", found.num_close, options.rtol) : "")}};
  Json list = Json::array();
  for (const RunDifference& difference : found.differences) list.push(json_of(difference));
  session.print({{"ok", found.differences.empty()},
                 {"a", json_of(a, options.a)},
                 {"b", json_of(b, options.b)},
                 {"compared", found.num_compared},
                 {"close", found.num_close},
                 {"first", first ? json_of(*first) : Json()},
                 {"differences", std::move(list)},
                 {"only_in_a", found.only_in_a},
                 {"only_in_b", found.only_in_b}},
                pairs_to_string(rows) + text_of(found));
  return static_cast<int>(found.differences.empty() ? ExitCode::done : ExitCode::mismatch);
}

}  // namespace

Command diff_runs_command() {
  auto options = std::make_shared<Options>();
  return {
      .name = "diff-runs",
      .doc = "where two runs part, node by node",
      .details =
          "Compares two files that 'run --hashes' wrote: on two machines, with two numbers of threads, by two "
          "versions. Values are told by name, so that nodes which passes joined in one run alone do not count. Named "
          "first is the node that made other numbers out of the same inputs. Exit code 6 when values differ.",
      .examples = {{"autograph run model.onnx --threads 1 --hashes one.jsonl", "A run with one thread."},
                   {"autograph diff-runs one.jsonl two.jsonl", "Where does the other one part from it?"},
                   {"autograph diff-runs one.jsonl two.jsonl --rtol 1e-5", "Leaving out other orders of sums."}},
      .options =
          {{.names = "A", .doc = "File of hashes.", .target = &options->a, .kind = ValueKind::file, .required = true},
           {.names = "B", .doc = "File of hashes.", .target = &options->b, .kind = ValueKind::file, .required = true},
           {.names = "--rtol",
            .value_name = "R",
            .doc = "Differences up to this part of a tensor's largest magnitude do not count; 0 when not given: "
                   "bits. Estimated from statistics and some elements.",
            .target = &options->rtol}},
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli
