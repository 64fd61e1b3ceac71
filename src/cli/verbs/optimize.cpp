// `autograph optimize MODEL [-o OUT]`: searches for a faster graph and schedule, verifies them on the device, saves.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "autograph/compare_values.h"
#include "autograph/error.h"
#include "autograph/truth.h"
#include "base/check.h"
#include "base/stopwatch.h"
#include "cli/execute.h"
#include "cli/interrupt.h"
#include "cli/options/search_flags.h"
#include "cli/sources/given_inputs.h"
#include "cli/verbs.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  ModelOptions model;
  RunOptions run;
  SearchFlags search;
  std::string output;
  double seconds = 1;
  bool explain = false;
  std::string why;
};

bool is_plan(const std::string& output) { return output.ends_with(".agplan"); }

// A plan is compiled once, and run three times: to be compared, to save what it gives and to measure its nodes. States
// are not in what the search compares: such a result is run once more.
int runs_behind_search(const Graph& model, const std::string& output) {
  if (is_plan(output)) return 2;
  return model.states().empty() ? 0 : 1;
}

// What is left of the budget but for writing the result, which may take half of it.
double seconds_before_saving(const Graph& model, const Options& options) {
  const double budget = options.run.budget_seconds;
  return options.output.empty() ? budget : std::max(budget / 2, budget - seconds_to_save(model));
}

// What each phase of the command takes, for --log time.
class Phases {
 public:
  explicit Phases(const Session& session) : session_(session) {}

  double seconds() const { return since_start_.ms() / 1e3; }

  void end(std::string_view phase) {
    session_.log("time", fmt::format("{} took {:.2f} s, {:.2f} s in all", phase, phase_.ms() / 1e3, seconds()));
    phase_ = Stopwatch();
  }

 private:
  const Session& session_;
  const Stopwatch since_start_;
  Stopwatch phase_;
};

void check_options(const Options& options) {
  AG_CHECK_USER(options.seconds >= 0 && options.seconds <= 86400, UserError, "[cli] seconds: expected 0..86400, got {}",
                options.seconds);
  if (options.output.empty()) return;
  AG_CHECK_USER(is_plan(options.output) || options.output.ends_with(".onnx"), UserError,
                "[cli] output: expected a name ending in .onnx or .agplan, got '{}'", options.output);
  require_writable(options.output);
}

CompileOptions kept_weights(const RunOptions& run) {
  CompileOptions options = compile_options(run);
  options.release_weights = false;  // the graph is saved in the end
  options.attest = true;
  return options;
}

// The model as it is, without passes: what the result must agree with.
Executable compile_plain(Session& session, const Graph& graph, const RunOptions& run) {
  CompileOptions plain = kept_weights(run);
  plain.expert.use_passes = false;
  plain.tune = false;
  return compile_logged(session, graph, plain);
}

// Passes alone: they try nothing out, so that what a search would have counted stays 0.
Optimized run_passes_alone(Session& session, const LoadedModel& loaded, const Options& options) {
  const Executable executable = compile_logged(session, loaded.model.graph, kept_weights(options.run));
  Optimized found{executable.graph(), {}, {}};
  found.report.strategy = Strategy::sequential;
  found.report.device = options.run.device;
  found.report.stop_reason = StopReason::done;
  return found;
}

// Has the search timed the result?
bool is_timed(const SearchReport& report) { return report.latency_after_ms > 0 || report.simulated; }

// Has the search run the result and compared what it gave?
bool is_compared(const Optimized& found) {
  const SearchReport& report = found.report;
  return is_timed(report) && report.agrees && !report.compared_with.empty() && found.graph.states().empty();
}

struct Verified {
  Difference difference;
  std::optional<Executable> executable;  // of the result; none where it is not one to be saved
};

// Runs the result once and compares, where the search has not or a plan is to be saved; times it and the model when the
// search has not.
Verified verify(Session& session, const LoadedModel& loaded, const Options& options, Optimized& found,
                const std::vector<Datum>& inputs, const Truth& truth, const Phases& phases) {
  SearchReport& report = found.report;
  if (is_compared(found) && !is_plan(options.output)) return {};
  CompileOptions as_found = kept_weights(options.run);
  as_found.expert.use_passes = false;
  as_found.profile = is_timed(report) && is_plan(options.output);
  // Kernels that the search had no time to measure, or to attest, are those of its trials, too.
  as_found.expert.may_try = [&](KernelTrial trial, std::string_view) {
    const bool has_time = trial == KernelTrial::attest && phases.seconds() < options.run.budget_seconds;
    return has_time || !is_timed(report);
  };
  const Stopwatch watch;
  Executable after = compile(found, as_found);
  session.log("compile", fmt::format("{}: the result in {:.1f} ms", options.run.device, watch.ms()));
  Difference difference = truth.compare_all(after.run(inputs));
  if (report.compared_with.empty()) report.compared_with = truth.how();
  report.max_abs = std::max(report.max_abs, difference.max_abs);
  report.max_rel = std::max(report.max_rel, difference.max_rel);
  if (!difference.ok || is_timed(report)) return {std::move(difference), std::move(after)};
  const Executable before = compile_plain(session, loaded.model.graph, options.run);
  const std::vector<double> ms = measure_in_turns(session, {{&before, &inputs}, {&after, &inputs}}, options.seconds);
  report.latency_before_ms = ms[0];
  report.latency_after_ms = ms[1];
  return {std::move(difference), std::nullopt};
}

// `verified`: the result as it was compiled to verify it.
void save(const Session& session, const LoadedModel& loaded, const Options& options, const Optimized& found,
          const std::optional<Executable>& verified) {
  if (options.output.empty()) return;
  const CompileOptions as_kept = kept_weights(options.run);
  std::map<std::string, Tensor> defaults = kept_defaults(session, loaded, found.graph);
  if (is_plan(options.output)) {
    const bool is_as_new = verified && found.graph.states().empty();
    const uint64_t seed = loaded.seeds.seed;
    save_plan(is_as_new ? make_plan(found, *verified, as_kept, loaded.name, seed, defaults)
                        : make_plan(found, as_kept, loaded.name, seed, defaults),
              options.output);
  } else {
    save_onnx(found.graph, options.output,
              {.doc = loaded.model.doc, .metadata = loaded.model.metadata, .input_defaults = std::move(defaults)});
  }
}

Json::Object document(const LoadedModel& loaded, const Options& options, const Optimized& found, bool saved) {
  const SearchReport& report = found.report;
  const bool has_cost = report.cost_before_us > 0;
  Json::Object members = {{"model", loaded.name},
                          {"file", saved && !options.output.empty() ? Json(options.output) : Json()},
                          {"strategy", std::string(to_string(report.strategy))},
                          {"device", report.device},
                          {"simulated", report.simulated},
                          {"streams", found.schedule.width()},
                          {"tuned", report.tuned},
                          {"tuned_in_network", report.tuned_in_network},
                          {"alpha", report.alpha},
                          {"latency_before_ms", report.latency_before_ms},
                          {"latency_after_ms", report.latency_after_ms},
                          {"cost_before", has_cost ? Json(report.cost_before_us) : Json()},
                          {"cost_after", has_cost ? Json(report.cost_after_us) : Json()},
                          {"nodes_before", loaded.model.graph.num_nodes()},
                          {"nodes_after", found.graph.num_nodes()},
                          {"candidates", report.candidates},
                          {"measured", report.measured},
                          {"rules_applied", rules_json(report)},
                          {"partitions", report.partitions},
                          {"search_seconds", report.search_seconds},
                          {"stop_reason", to_string(report.stop_reason)},
                          {"kept_plain", report.kept_plain},
                          {"compared_with", report.compared_with},
                          {"max_abs", report.max_abs},
                          {"max_rel", report.max_rel},
                          {"trials", trials_json(report)}};
  if (options.explain) members.emplace_back("rewrites", explain_json(report));
  if (report.ledger) {
    members.emplace_back("node", report.ledger->node);
    members.emplace_back("became", report.ledger->became);
    members.emplace_back("removed_by", report.ledger->removed_by.empty() ? Json() : Json(report.ledger->removed_by));
    members.emplace_back("ledger", ledger_json(*report.ledger));
  }
  return members;
}

const char* how_chosen(const SearchReport& report) {
  if (!report.tuned) return "chosen by estimate";
  return report.tuned_in_network ? "chosen by measurement in the network" : "chosen by measurement";
}

std::string text(const Session& session, const LoadedModel& loaded, const Options& options, const Optimized& found,
                 bool saved) {
  const SearchReport& report = found.report;
  std::vector<std::pair<std::string, std::string>> rows = {
      {"model", loaded.name},
      {"strategy", std::string(to_string(report.strategy))},
      {"nodes", fmt::format("{} -> {}", loaded.model.graph.num_nodes(), found.graph.num_nodes())},
      {"streams", fmt::format("{}", found.schedule.width())}};
  if (report.cost_before_us > 0) {
    rows.emplace_back("cost", fmt::format("{:.1f} -> {:.1f} us", report.cost_before_us, report.cost_after_us));
  }
  if (report.candidates > 0) {
    rows.emplace_back("alpha", fmt::format("{:.2f} ({})", report.alpha,
                                           options.search.alpha != "auto" ? "given"
                                           : report.is_alpha_fitted       ? "fitted to this device"
                                                                          : "default"));
  }
  if (!report.simulated) rows.emplace_back("kernels", how_chosen(report));
  const std::string kind = report.simulated ? " (simulated)" : report.kept_plain ? " (the plain plan is kept)" : "";
  rows.emplace_back("latency", human_ms(report.latency_before_ms) + " -> " + human_ms(report.latency_after_ms) + kind);
  if (report.candidates > 0) {
    rows.emplace_back(
        "search", fmt::format("{} candidates, {} measured, {} parts, {} rewrites in {:.1f} s ({})", report.candidates,
                              report.measured, report.partitions, report.rules_applied.size(), report.search_seconds,
                              to_string(report.stop_reason)));
  }
  rows.emplace_back("compared", "with " + report.compared_with);
  rows.emplace_back("max abs", fmt::format("{:.3g}", report.max_abs));
  rows.emplace_back("max rel", fmt::format("{:.3g}", report.max_rel));
  if (!options.output.empty()) rows.emplace_back("file", saved ? options.output : "not saved");
  std::string result = pairs_to_string(rows);
  if (options.explain) result += "\n" + explain_text(report, session.stdout_escapes());
  if (report.ledger) result += "\n" + ledger_text(report, session.stdout_escapes());
  return result;
}

int run(Session& session, const Options& given) {
  Phases phases(session);
  Options options = given;
  if (options.run.strategy.empty()) options.run.strategy = to_string(Strategy::autograph);
  check_options(options);
  warn_where_nothing_is_kept(session, options.run);
  SearchOptions search_as = search_options(options.search, options.run);
  LoadedModel loaded = load_model(session, options.model);
  refuse_plan(loaded, "optimize");
  if (!options.why.empty()) require_node(loaded.model.graph, options.why);
  loaded.seeds.seed = static_cast<uint64_t>(options.run.seed);
  const bool searches = strategy_of(options.run) != Strategy::sequential;
  // A plan is for fixed shapes; an .onnx file of the passes alone keeps its symbols.
  const std::vector<Datum>& inputs = given_inputs(session, loaded, options.model);
  if (searches || is_plan(options.output)) bind_extents(loaded);
  phases.end("loading");
  options.run.budget_seconds = search_as.budget_seconds = seconds_before_saving(loaded.model.graph, options);
  const InterruptScope scope;
  search_as.inputs = inputs;
  search_as.why = options.why;
  search_as.truth = find_truth(session, loaded.model.graph, inputs, kept_weights(options.run), search_as);
  phases.end("the reference");
  // The budget is that of the command: what comes before the search and what comes behind it count.
  search_as.spent_seconds = phases.seconds();
  search_as.runs_to_come = runs_behind_search(loaded.model.graph, options.output);
  Optimized found = searches ? search(session, loaded, kept_weights(options.run), search_as)
                             : run_passes_alone(session, loaded, options);
  phases.end("the search");
  const auto [difference, executable] = verify(session, loaded, options, found, inputs, *search_as.truth, phases);
  phases.end("verifying the result");
  if (difference.ok) {
    save(session, loaded, options, found, executable);
    phases.end("saving");
  } else {
    session.error("[optimize] the result gives other numbers, so nothing was saved (autograph bisect tells why): " +
                  difference.why);
  }
  session.print(document(loaded, options, found, difference.ok), text(session, loaded, options, found, difference.ok));
  if (!difference.ok) return static_cast<int>(ExitCode::mismatch);
  return static_cast<int>(found.report.stop_reason == StopReason::cancelled ? ExitCode::interrupted : ExitCode::done);
}

}  // namespace

Command optimize_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = model_option_table(options->model);
  table.push_back(
      {.names = "-o,--output",
       .value_name = "OUT",
       .doc = "File to write: .agplan keeps graph, schedule and measurements, .onnx the graph. Without one nothing is "
              "written: the report alone is printed.",
       .target = &options->output,
       .kind = ValueKind::file});
  table.push_back(input_option(options->model));
  table.push_back(
      {.names = "--explain",
       .doc = "List each rewrite with where it was applied and what it gained, and what was tried on the device.",
       .target = &options->explain});
  table.push_back(
      {.names = "--why",
       .value_name = "NODE",
       .doc =
           "Tell what became of a node: the rewrites that made it what it is, what each was predicted and measured to "
           "gain, and what was tried there and lost.",
       .target = &options->why});
  for (Option& option : search_option_table(options->search)) table.push_back(std::move(option));
  table.push_back({.names = "--seconds",
                   .value_name = "T",
                   .doc = "How long to measure before and after where no search does; 1 each when not given.",
                   .target = &options->seconds});
  for (Option& option : run_option_table(options->run)) {
    if (option.names == "--no-optimize") continue;
    if (option.names == "--strategy") option.doc = "How to search; autograph when not given, sequential: passes alone.";
    table.push_back(std::move(option));
  }
  return {
      .name = "optimize",
      .doc = "search for a faster graph and schedule, verify, save",
      .details =
          "The result is compared with what the model gives by the reference on inputs given or seeded, where that "
          "would take longer than a quarter of the budget with parts of it, and saved only when the numbers agree "
          "(exit 6 otherwise); kernels are run and compared with the reference before they are trusted. It is never "
          "slower than the plain plan, as far as could be measured. Ctrl-C ends the search and saves the best so far "
          "(exit 130); a second one ends the program. Extents that are symbols get the numbers of --input, --batch and "
          "--dim first. Costs are in microseconds. With --strategy sequential only the passes run, which try nothing "
          "out.",
      .examples = {{"autograph optimize model.onnx -o model.agplan", "Search for a minute, keep all that was found."},
                   {"autograph optimize model.onnx --budget 10", "Only look what a search finds in ten seconds."},
                   {"autograph bench model.agplan", "Run it without searching again."},
                   {"autograph optimize model.onnx -o small.onnx --strategy sequential", "Simplify a model."},
                   {"autograph optimize zoo:nasnet_cell -o cell.agplan --budget 20 --explain",
                    "What was rewritten, and why."},
                   {"autograph optimize zoo:nasnet_cell --budget 20 --why cell/add", "What became of one node."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli
