// `autograph ablate MODEL`: what each part of the search is worth, one factor off or changed at a time.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "autograph/error.h"
#include "autograph/rules.h"
#include "base/check.h"
#include "cli/contest.h"
#include "cli/verbs.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  ModelOptions model;
  RunOptions run;
  SearchFlags search;
  std::string study = "settings";
  double seconds = 2;
};

// A line of the table: entrants of one contest share a model and a batch.
struct Line {
  std::string setting;
  Result result;
};

Entrant changed(const SearchOptions& full, const std::string& name, void (*change)(SearchOptions&)) {
  Entrant entrant{name, full};
  change(entrant.search);
  return entrant;
}

std::vector<Entrant> settings_study(const SearchOptions& full) {
  return {changed(full, "full", [](SearchOptions&) {}),
          changed(full, "without optimisation", [](SearchOptions& search) { search.use_rules = false; }),
          changed(full, "without DP", [](SearchOptions& search) { search.use_dp = false; }),
          changed(full, "without partition", [](SearchOptions& search) { search.use_partition = false; }),
          changed(full, "with equality graphs", [](SearchOptions& search) { search.use_equality = true; }),
          changed(full, "without critical path", [](SearchOptions& search) { search.use_critical_path = false; }),
          changed(full, "sequential", [](SearchOptions& search) { search.strategy = Strategy::sequential; })};
}

std::vector<Entrant> alpha_study(const SearchOptions& full) {
  std::vector<Entrant> entrants;
  for (const double alpha : {0.0, 0.25, 0.5, 1.0, 2.0, 4.0}) {
    Entrant entrant{fmt::format("alpha {}", alpha), full};
    entrant.search.alpha = alpha;
    entrants.push_back(std::move(entrant));
  }
  // Infinitely more than the sum: large enough that the sum decides between equal critical paths alone.
  Entrant infinite{"alpha inf", full};
  infinite.search.alpha = 1e9;
  entrants.push_back(std::move(infinite));
  return entrants;
}

std::vector<Entrant> partition_study(const SearchOptions& full) {
  std::vector<Entrant> entrants;
  for (const auto& [lower, upper] : {std::pair(6, 12), std::pair(6, 30), std::pair(12, 30), std::pair(12, 60),
                                     std::pair(24, 60), std::pair(48, 120)}) {
    Entrant entrant{fmt::format("parts below {}, merged up to {}", lower, upper), full};
    entrant.search.size_lower = lower;
    entrant.search.size_upper = upper;
    entrants.push_back(std::move(entrant));
  }
  entrants.push_back(changed(full, "one part", [](SearchOptions& search) { search.use_partition = false; }));
  return entrants;
}

// Each family of rules off by itself, and the rules of a file where one was given.
std::vector<Entrant> rules_study(const SearchOptions& full) {
  std::vector<Entrant> entrants = {changed(full, "full", [](SearchOptions&) {})};
  if (full.rules) {
    entrants.push_back(changed(full, "without the rules of the file", [](SearchOptions& s) { s.rules = nullptr; }));
  }
  std::vector<std::string> families;
  for (const RuleInfo& rule : list_rules()) {
    const std::string family = rule.name.substr(0, rule.name.find('.'));
    const bool is_new = std::find(families.begin(), families.end(), family) == families.end();
    if (is_new && rule.kind != RuleClass::always_pays) families.push_back(family);
  }
  for (const std::string& family : families) {
    Entrant entrant{"without " + family, full};
    for (const RuleInfo& rule : list_rules()) {
      if (rule.name.starts_with(family + ".")) entrant.search.disabled_rules.push_back(rule.name);
    }
    entrants.push_back(std::move(entrant));
  }
  entrants.push_back(changed(full, "without rules", [](SearchOptions& search) { search.use_rules = false; }));
  return entrants;
}

// Each pass that changes the model left out by itself, then all of them.
std::vector<Entrant> passes_study(const SearchOptions& full, const CompileReport& report) {
  std::vector<Entrant> entrants = {changed(full, "full", [](SearchOptions&) {})};
  std::vector<std::string> all;
  for (const PassReport& pass : report.passes) {
    const bool is_new = std::find(all.begin(), all.end(), pass.name) == all.end();
    if (!pass.changed || !is_new) continue;
    all.push_back(pass.name);
    entrants.push_back({"without " + pass.name, full, {pass.name}});
  }
  entrants.push_back({"without passes", full, std::move(all)});
  return entrants;
}

std::vector<Line> lines_of(std::vector<Result> results, const std::string& prefix = "") {
  std::vector<Line> lines;
  for (Result& result : results) lines.push_back({prefix + result.name, std::move(result)});
  return lines;
}

std::vector<Line> run_study(Session& session, const Options& options, const SearchOptions& full) {
  const auto contest = [&](const ModelOptions& model, const std::vector<Entrant>& entrants) {
    const LoadedModel loaded = load_model(session, model);
    refuse_plan(loaded, "ablate");
    return hold_contest(session, loaded, options.run, entrants, options.seconds);
  };
  if (options.study == "alpha") return lines_of(contest(options.model, alpha_study(full)));
  if (options.study == "partition") return lines_of(contest(options.model, partition_study(full)));
  if (options.study == "rules") return lines_of(contest(options.model, rules_study(full)));
  if (options.study == "settings") return lines_of(contest(options.model, settings_study(full)));
  if (options.study == "passes") {
    LoadedModel loaded = load_model(session, options.model);
    refuse_plan(loaded, "ablate");
    bind_extents(loaded);
    CompileOptions plain = compile_options(options.run);
    plain.tune = plain.attest = false;  // what passes do is all that is asked
    const std::vector<Entrant> entrants = passes_study(full, compile(loaded.model.graph, plain).compile_report());
    std::vector<Line> lines =
        lines_of(hold_contest(session, std::move(loaded), options.run, entrants, options.seconds));
    // Passes that no run can do without are not left out, and others make up for some.
    std::erase_if(lines, [](const Line& line) { return line.result.same_as == "full"; });
    return lines;
  }
  std::vector<Line> lines;
  for (const int64_t batch : {1, 2, 4, 8, 16, 32}) {
    ModelOptions model = options.model;
    model.batch = batch;
    const std::vector<Entrant> both = {
        changed(full, "full", [](SearchOptions&) {}),
        changed(full, "sequential", [](SearchOptions& s) { s.strategy = Strategy::sequential; })};
    for (Line& line : lines_of(contest(model, both), fmt::format("batch {}, ", batch)))
      lines.push_back(std::move(line));
  }
  return lines;
}

int run(Session& session, const Options& given) {
  Options options = given;
  if (options.run.strategy.empty()) {
    options.run.strategy = to_string(options.study == "passes" ? Strategy::sequential : Strategy::autograph);
  }
  AG_CHECK_USER(options.seconds >= 0 && options.seconds <= 86400, UserError, "[cli] seconds: expected 0..86400, got {}",
                options.seconds);
  SearchOptions full = search_options(options.search, options.run);
  full.never_slower = false;  // a setting that makes it slower is what the study looks for
  const std::vector<Line> lines = run_study(session, options, full);
  Json rows = Json::array();
  Table table({{"setting"},
               {"latency ms", true},
               {"cost us", true},
               {"streams", true},
               {"rewrites", true},
               {"candidates", true},
               {"search s", true},
               {"max rel", true}});
  bool ok = true;
  for (const Line& line : lines) {
    const Result& result = line.result;
    const SearchReport& report = result.report;
    ok = ok && result.difference.ok;
    rows.push(Json::object({{"setting", line.setting},
                            {"latency_ms", result.latency_ms},
                            {"search_seconds", report.search_seconds},
                            {"cost_us", report.cost_after_us},
                            {"streams", result.streams},
                            {"rewrites", report.rules_applied.size()},
                            {"candidates", report.candidates},
                            {"partitions", report.partitions},
                            {"max_rel", result.difference.max_rel},
                            {"ok", result.difference.ok}}));
    table.add({line.setting, fmt::format("{:.3f}", result.latency_ms), fmt::format("{:.1f}", report.cost_after_us),
               fmt::format("{}", result.streams), fmt::format("{}", report.rules_applied.size()),
               fmt::format("{}", report.candidates), fmt::format("{:.1f}", report.search_seconds),
               fmt::format("{:.1e}", result.difference.max_rel)});
  }
  const std::string note = simulation_note(options.run.device);
  session.print({{"model", options.model.model},
                 {"study", options.study},
                 {"strategy", options.run.strategy},
                 {"device", options.run.device},
                 {"simulated", !note.empty()},
                 {"rows", std::move(rows)}},
                table.to_string(session.stdout_escapes()) + (note.empty() ? "" : "\n" + note));
  if (!ok) session.error("[ablate] numbers differ (autograph bisect tells why)");
  return static_cast<int>(ok ? ExitCode::done : ExitCode::mismatch);
}

}  // namespace

Command ablate_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = model_option_table(options->model);
  table.push_back({.names = "--study",
                   .value_name = "WHAT",
                   .doc = "What to change: settings (parts of the search off), rules (each family off, and those of "
                          "--rules), passes (each that changes the model off), alpha, batch or partition (sizes).",
                   .target = &options->study,
                   .kind = ValueKind::choice,
                   .choices = {"settings", "rules", "passes", "alpha", "batch", "partition"}});
  table.push_back({.names = "--seconds",
                   .value_name = "T",
                   .doc = "How long to measure each; 2 when not given.",
                   .target = &options->seconds});
  for (Option& option : search_option_table(options->search)) table.push_back(std::move(option));
  for (Option& option : run_option_table(options->run)) {
    if (option.names == "--no-optimize") continue;
    if (option.names == "--strategy")
      option.doc = "The strategy to take apart; autograph when not given, for passes sequential.";
    table.push_back(std::move(option));
  }
  return {
      .name = "ablate",
      .doc = "what each part of the search is worth",
      .details =
          "Each row is a search of its own with up to --budget seconds; what they found is then measured in turns. The "
          "study `batch` searches for each batch of 1, 2, 4, 8, 16 and 32.",
      .examples = {{"autograph ablate zoo:nasnet_cell --budget 10", "Parts of the search off, one at a time."},
                   {"autograph ablate model.onnx --study alpha", "Weights of the critical path."},
                   {"autograph ablate model.onnx --study passes", "What each pass gains on a model."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli
