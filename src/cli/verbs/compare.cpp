// `autograph compare MODEL..`: every strategy on every model, on the same kernels, measured in turns.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "autograph/error.h"
#include "base/check.h"
#include "base/join.h"
#include "cli/contest.h"
#include "cli/options/training_flags.h"
#include "cli/verbs.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  std::vector<std::string> models;
  std::vector<std::string> dims;
  RunOptions run;
  SearchFlags search;
  TrainingFlags training;
  std::string strategies = "sequential,list,taso,ios,nimble,taso+nimble,search,autograph";
  std::string batches = "1";
  double seconds = 2;
};

// They end, as for users, with the plain plan where nothing is faster. Algorithm 1 and who tries nothing show what they
// do, also where they lose.
bool times_whole_plans(Strategy strategy) {
  return strategy != Strategy::sequential && strategy != Strategy::greedy && strategy != Strategy::paper;
}

std::vector<Entrant> entrants_of(const Options& options) {
  const std::vector<std::string> known = strategy_names();
  std::vector<Entrant> entrants;
  for (const std::string& name : split_list(options.strategies, "strategies")) {
    AG_CHECK_USER(std::find(known.begin(), known.end(), name) != known.end(), UserError,
                  "[cli] strategies: expected some of {}, got '{}'", join(known), name);
    RunOptions run = options.run;
    run.strategy = name;
    entrants.push_back({name, search_options(options.search, run)});
    entrants.back().search.never_slower = times_whole_plans(entrants.back().search.strategy);
  }
  return entrants;
}

// One model with one batch.
struct Row {
  std::string model;
  int64_t batch = 1;
  std::vector<Result> results;

  const Result& best() const {
    return *std::min_element(results.begin(), results.end(),
                             [](const Result& a, const Result& b) { return a.latency_ms < b.latency_ms; });
  }
};

Json row_json(const Row& row) {
  Json latency = Json::object();
  Json halves = Json::object();
  Json seconds = Json::object();
  Json streams = Json::object();
  Json same_as = Json::object();
  Json trials = Json::object();
  double max_rel = 0;
  double total_seconds = 0;
  bool ok = true;
  for (const Result& result : row.results) {
    latency.add(result.name, result.latency_ms);
    halves.add(result.name, Json::Array{result.halves_ms[0], result.halves_ms[1]});
    seconds.add(result.name, result.report.search_seconds);
    streams.add(result.name, result.streams);
    trials.add(result.name, trials_json(result.report));
    if (!result.same_as.empty()) same_as.add(result.name, result.same_as);
    max_rel = std::max(max_rel, result.difference.max_rel);
    total_seconds += result.report.search_seconds;
    ok = ok && result.difference.ok;
  }
  return Json::object({{"model", row.model},
                       {"batch", row.batch},
                       {"latency_ms", std::move(latency)},
                       {"halves_ms", std::move(halves)},
                       {"best", row.best().name},
                       {"max_rel", max_rel},
                       {"ok", ok},
                       {"search_seconds", total_seconds},
                       {"search_seconds_of", std::move(seconds)},
                       {"same_as", std::move(same_as)},
                       {"streams", std::move(streams)},
                       {"trials", std::move(trials)}});
}

std::string table_text(const std::vector<Row>& rows, const std::vector<Entrant>& entrants, bool escapes) {
  std::vector<Column> columns = {{"model"}, {"batch", true}};
  for (const Entrant& entrant : entrants) columns.push_back({entrant.name + " ms", true});
  columns.push_back({"best"});
  Table table(std::move(columns));
  for (const Row& row : rows) {
    std::vector<std::string> cells = {row.model, fmt::format("{}", row.batch)};
    for (const Result& result : row.results) {
      const char* mark = !result.difference.ok ? "!" : &result == &row.best() ? "*" : "";
      cells.push_back(fmt::format("{}{:.3f}", mark, result.latency_ms));
    }
    cells.push_back(row.best().name);
    table.add(std::move(cells));
  }
  return table.to_string(escapes);
}

// A model that cannot be trained, and why: no reason to compare none of the others.
struct LeftOut {
  std::string model;
  Error error;
};

// The model, or its training step; none where it cannot be trained.
std::optional<LoadedModel> load(Session& session, const Options& options, const std::string& model, int64_t batch,
                                std::vector<LeftOut>& left_out) {
  // Files may fix it.
  const bool is_given = options.batches != "1";
  LoadedModel loaded =
      load_one_of(session, {.model = model, .batch = is_given ? batch : kNoBatch, .dims = options.dims});
  refuse_plan(loaded, "compare");
  try {
    make_training_step(loaded, options.training, "compare --train");
    return loaded;
  } catch (const Error& error) {
    left_out.push_back({model, error});
    return std::nullopt;
  }
}

// Tells of them, too, and what they are in the document.
Json report_left_out(Session& session, const std::vector<LeftOut>& left_out) {
  Json list = Json::array();
  for (const auto& [model, error] : left_out) {
    session.error(fmt::format("[compare] {} is left out: {}", model, error.what()));
    list.push(Json::object({{"model", model}, {"message", std::string(error.what())}}));
  }
  return list;
}

int run(Session& session, const Options& options) {
  AG_CHECK_USER(options.seconds >= 0 && options.seconds <= 86400, UserError, "[cli] seconds: expected 0..86400, got {}",
                options.seconds);
  const std::vector<Entrant> entrants = entrants_of(options);
  std::vector<Row> rows;
  std::vector<LeftOut> left_out;
  for (const std::string& model : options.models) {
    for (const int64_t batch : split_numbers(options.batches, "batch")) {
      const auto loaded = load(session, options, model, batch, left_out);
      if (!loaded) continue;
      rows.push_back({model, batch, hold_contest(session, *loaded, options.run, entrants, options.seconds)});
    }
  }
  if (rows.empty() && !left_out.empty()) throw left_out.front().error;
  bool ok = true;
  Json list = Json::array();
  for (const Row& row : rows) {
    list.push(row_json(row));
    for (const Result& result : row.results) {
      if (result.difference.ok) continue;
      ok = false;
      session.error(fmt::format("[compare] {} on {}: {}", result.name, row.model, result.difference.why));
    }
  }
  const std::string note = simulation_note(options.run.device);
  session.print({{"device", options.run.device},
                 {"simulated", !note.empty()},
                 {"train", options.training.train},
                 {"rows", std::move(list)},
                 {"left_out", report_left_out(session, left_out)}},
                table_text(rows, entrants, session.stdout_escapes()) +
                    "\n* fastest; median over rounds, measured in turns, equal plans once; ! numbers differ\n" + note);
  if (!ok) return static_cast<int>(ExitCode::mismatch);
  return static_cast<int>(left_out.empty() ? ExitCode::done : left_out.front().error.exit_code());
}

}  // namespace

Command compare_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = {
      {.names = "MODEL",
       .doc = "Paths to .onnx files or zoo:NAME; as many as wanted.",
       .target = &options->models,
       .kind = ValueKind::model,
       .required = true},
      {.names = "--strategies",
       .value_name = "A,B,..",
       .doc = "Strategies to compare; " + options->strategies + " when not given.",
       .target = &options->strategies},
      {.names = "--batch",
       .value_name = "N,..",
       .doc = "Batches, a row for each; 1 when not given.",
       .target = &options->batches},
      {.names = "--dim",
       .value_name = "NAME=N",
       .doc = "Number for a symbolic extent. May be repeated.",
       .target = &options->dims},
      {.names = "--seconds",
       .value_name = "T",
       .doc = "How long to measure each strategy; 2 when not given.",
       .target = &options->seconds},
  };
  for (Option& option : training_option_table(options->training)) table.push_back(std::move(option));
  // Algorithm 1 as it stands is an entrant of its own: paper.
  for (Option& option : search_option_table(options->search)) {
    if (option.names != "--literal") table.push_back(std::move(option));
  }
  for (Option& option : run_option_table(options->run)) {
    if (option.names != "--no-optimize" && option.names != "--strategy") table.push_back(std::move(option));
  }
  return {
      .name = "compare",
      .doc = "every strategy on every model, measured in turns",
      .details =
          "All strategies use the same passes, kernels and runtime. Those that time whole plans end with the plain one "
          "where nothing is faster; greedy and paper show what they do, also where they lose. Each may search for "
          "--budget seconds, and begins with the same cache: none finds "
          "there what another has measured, whoever comes first, and none leaves anything there. Exit code 6 when "
          "numbers differ. With --train models that cannot be trained are left out and told in the end.",
      .examples = {{"autograph compare zoo:inception_v3 zoo:squeezenet --budget 20", "The table for two models."},
                   {"autograph compare model.onnx --strategies sequential,autograph --batch 1,8", "Two batches."},
                   {"autograph compare zoo:mlp --train --optimizer adamw --batch 64", "Steps of training."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli
