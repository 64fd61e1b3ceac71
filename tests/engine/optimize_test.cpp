// optimize(): every strategy gives the numbers of the graph it was given, and keeps to what it was told.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <vector>

#include "autograph/attested_kernels.h"
#include "autograph/builder.h"
#include "autograph/compare_values.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "autograph/search.h"
#include "autograph/seeded_inputs.h"
#include "autograph/zoo.h"
#include "engine/strategies/strategy.h"
#include "support/graphs/random_graph.h"
#include "support/moved_runs.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

// The clock of a simulated device makes the choices of a search repeatable; the numbers come from the processor.
CompileOptions simulated() {
  CompileOptions options;
  options.device = "sim:v100";
  static const TestFolder kFolder;
  options.cache_folder = kFolder.path();
  return options;
}

SearchOptions quick(Strategy strategy) {
  SearchOptions search;
  search.strategy = strategy;
  search.budget_seconds = 20;
  search.max_candidates = 20;
  search.keep = 3;
  search.rounds = 1;
  search.never_slower = strategy == Strategy::autograph;
  return search;
}

// Steps of a recurrent network with shared weights: products to merge, gates to factor, branches for streams.
Graph recurrent(int steps, int64_t size = 32) {
  Graph graph("recurrent");
  const auto weight = [&](float scale) {
    std::vector<float> elements;
    for (int64_t i = 0; i < size * size; ++i)
      elements.push_back(scale * static_cast<float>(i % 13 - 6) / static_cast<float>(size));
    return constant(graph, Tensor::of<float>({size, size}, elements));
  };
  const Var wf = weight(0.6F);
  const Var wu = weight(0.9F);
  Var c = input(graph, DType::f32, {1, size}, "c");
  for (int step = 0; step < steps; ++step) {
    const Var x = input(graph, DType::f32, {1, size}, "x" + std::to_string(step));
    const Var f = sigmoid(matmul(x, wf));
    c = add(mul(f, c), mul(f, matmul(x, wu)));
    graph.add_output(c.id(), "h" + std::to_string(step));
  }
  return graph;
}

TEST(Optimize, EveryStrategyKeepsTheNumbersOfRandomGraphs) {
  const char* wanted = std::getenv("AG_RANDOM_GRAPHS");
  const int num_graphs = wanted ? std::atoi(wanted) : 12;
  int num_run = 0;
  for (int seed = 1; seed <= num_graphs; ++seed) {
    Random random(static_cast<uint64_t>(seed) * 7919);
    const TestGraph test = make_random_graph(random, 14);
    std::vector<Datum> expected;
    try {
      expected = run_reference(test.graph, test.inputs);
    } catch (const UserError&) {
      continue;  // an index that is computed is out of its range
    }
    ++num_run;
    for (const Strategy strategy : available_strategies()) {
      SearchOptions search = quick(strategy);
      search.inputs = test.inputs;
      const Optimized found = optimize(test.graph, simulated(), search);
      const Difference difference =
          compare_all(compile(found, simulated()).run(test.inputs), expected, {.rtol = 1e-3, .share = 1e-3});
      EXPECT_TRUE(difference.ok) << "seed " << seed << ", " << to_string(strategy) << ": " << difference.why;
    }
  }
  EXPECT_GT(num_run, num_graphs / 3);
}

TEST(Optimize, AutographGainsMostWhereWeightsAreShared) {
  const Graph graph = recurrent(8, 1024);
  const Optimized plain = optimize(graph, simulated(), quick(Strategy::sequential));
  const Optimized nimble = optimize(graph, simulated(), quick(Strategy::nimble));
  SearchOptions search = quick(Strategy::autograph);
  search.max_candidates = 300;
  search.budget_seconds = 120;  // a bound for busy machines: candidates end the search
  const Optimized found = optimize(graph, simulated(), search);
  EXPECT_LT(found.report.latency_after_ms, plain.report.latency_after_ms);
  EXPECT_LE(found.report.latency_after_ms, nimble.report.latency_after_ms);
  EXPECT_TRUE(found.report.simulated);
  EXPECT_GT(found.report.candidates, 0u);
  EXPECT_FALSE(found.report.rules_applied.empty());
  EXPECT_LT(found.report.cost_after_us, found.report.cost_before_us);
  const std::vector<Datum> inputs = seeded_inputs(graph);
  EXPECT_TRUE(compare_all(compile(found, simulated()).run(inputs), run_reference(graph, inputs), {}).ok);
}

TEST(Optimize, IsNeverSlowerOnAnyModel) {
  for (const char* name : {"squeezenet", "nasnet_cell", "transformer"}) {
    const Graph graph = build_zoo_model(name);
    SearchOptions plainly = quick(Strategy::sequential);
    SearchOptions search = quick(Strategy::autograph);
    search.max_candidates = 5;
    // Of times alone: to compare the numbers of large models takes three times as long as all else.
    plainly.verify = search.verify = false;
    const Optimized plain = optimize(graph, simulated(), plainly);
    const Optimized found = optimize(graph, simulated(), search);
    EXPECT_LE(found.report.latency_after_ms, plain.report.latency_after_ms * (1 + 1e-9)) << name;
  }
}

// All start from the plain plan and take another one only when that wins in turns, as `autograph` does.
TEST(Optimize, RivalsAreNeverSlowerThanThePlainPlan) {
  const Graph graph = recurrent(4);
  for (const Strategy strategy : {Strategy::list, Strategy::taso, Strategy::ios, Strategy::nimble,
                                  Strategy::taso_nimble, Strategy::paper, Strategy::search}) {
    const Optimized found = optimize(Graph(graph), simulated(), quick(strategy));
    EXPECT_LE(found.report.latency_after_ms, found.report.latency_before_ms) << to_string(strategy);
    EXPECT_FALSE(found.report.kept_plain) << to_string(strategy);
    EXPECT_FALSE(found.report.trials.empty()) << to_string(strategy);
  }
}

// Candidates are ranked by the schedule that would run: on a device with a clock that is what they take.
// Independent chains of products that read one input: what merges them in sequence leaves less to run side by side.
Graph towers(int count, int depth, int64_t size) {
  Graph graph("towers");
  const Var x = input(graph, DType::f32, {8, size}, "x");
  for (int tower = 0; tower < count; ++tower) {
    Var y = x;
    for (int step = 0; step < depth; ++step) {
      const float scale = 0.01F * static_cast<float>(tower + step + 1);
      const auto elements = static_cast<size_t>(size * size);
      y = relu(matmul(y, constant(graph, Tensor::of<float>({size, size}, std::vector<float>(elements, scale)))));
    }
    graph.add_output(y.id(), "y" + std::to_string(tower));
  }
  return graph;
}

// It goes back to the streams of the plain graph where those of a rewritten one take longer.
TEST(Optimize, TasoWithNimbleIsNeverWorseThanNimble) {
  for (const auto& [count, size] : {std::pair(3, 256), std::pair(4, 512), std::pair(6, 64)}) {
    const Graph graph = towers(count, 2, size);
    const Optimized nimble = optimize(graph, simulated(), quick(Strategy::nimble));
    const Optimized both = optimize(graph, simulated(), quick(Strategy::taso_nimble));
    EXPECT_LE(both.report.latency_after_ms, nimble.report.latency_after_ms * (1 + 1e-9)) << count << " x " << size;
  }
}

TEST(Optimize, PredictsWhatTrialsTake) {
  for (const Strategy strategy : {Strategy::autograph, Strategy::nimble, Strategy::ios}) {
    for (const Graph& graph : {recurrent(6), towers(4, 3, 256)}) {
      const Optimized found = optimize(Graph(graph), simulated(), quick(strategy));
      ASSERT_FALSE(found.report.trials.empty());
      for (const TrialResult& trial : found.report.trials) {
        EXPECT_NEAR(trial.predicted_us, 1e3 * trial.latency_ms, 1e-3) << to_string(strategy) << ", " << graph.name();
      }
    }
  }
}

TEST(Optimize, ListSchedulesThePlainGraph) {
  const Optimized found = optimize(recurrent(4), simulated(), quick(Strategy::list));
  EXPECT_TRUE(found.report.rules_applied.empty());
  EXPECT_GT(found.schedule.width(), 1);
  EXPECT_LT(found.report.latency_after_ms, found.report.latency_before_ms);
}

// The search finds by itself what the portfolio finds where weights are shared.
TEST(Optimize, SearchAloneGainsWhereWeightsAreShared) {
  const Optimized search = optimize(recurrent(6), simulated(), quick(Strategy::search));
  const Optimized taso_nimble = optimize(recurrent(6), simulated(), quick(Strategy::taso_nimble));
  EXPECT_FALSE(search.report.rules_applied.empty());
  EXPECT_LE(search.report.latency_after_ms, 1.01 * taso_nimble.report.latency_after_ms);
}

// Where latencies are computed nothing is noise: the best of all trials is the result.
TEST(Optimize, TheBestTrialIsTheResultHoweverLittleItGains) {
  for (const Graph& graph : {recurrent(6), towers(4, 3, 256)}) {
    const SearchReport report = optimize(Graph(graph), simulated(), quick(Strategy::search)).report;
    double best_ms = report.latency_before_ms;
    for (const TrialResult& trial : report.trials) best_ms = std::min(best_ms, trial.latency_ms);
    EXPECT_EQ(report.latency_after_ms, best_ms) << graph.name();
  }
}

// The plain graph runs on two streams, what it becomes is one product: no schedule of that has streams, unless it is
// cut into parts.
TEST(Optimize, WhatHasNoStreamsIsTriedBesideWhatHas) {
  Graph graph("two_products");
  const Var x = input(graph, DType::f32, {64, 256}, "x");
  const auto product = [&](float scale) {
    return matmul(x, constant(graph, Tensor::of<float>({256, 256}, std::vector<float>(256 * 256, scale))));
  };
  graph.add_output(sub(product(0.5F), product(0.25F)).id(), "y");
  SearchOptions search = quick(Strategy::search);
  for (const int parts : {2, 3, 4, 6, 8}) search.disabled_rules.push_back("spread.product_" + std::to_string(parts));
  const SearchReport report = optimize(std::move(graph), simulated(), search).report;
  ASSERT_FALSE(report.trials.empty());
  EXPECT_GT(report.trials.front().streams, 1u);
  EXPECT_EQ(report.trials.back().streams, 1u);
  EXPECT_TRUE(report.trials.back().accepted);
}

// A chain of layers beside a short branch, joined for one more layer.
Graph joined_branches() {
  Graph graph("joined_branches");
  const auto layer = [&](Var x, int64_t channels) {
    std::vector<float> weight;
    const int64_t in = x.type().shape()[1].value();
    for (int64_t i = 0; i < channels * in; ++i) weight.push_back(static_cast<float>(i % 7 - 3) / 64);
    return relu(conv(x, constant(graph, Tensor::of<float>({channels, in, 1, 1}, weight))));
  };
  const Var x = input(graph, DType::f32, {1, 256, 8, 8}, "x");
  const Var slow = layer(layer(layer(x, 256), 256), 64);
  graph.add_output(layer(concat({layer(x, 448), slow}, 1), 256).id(), "y");
  return graph;
}

// More work in all, but most of it is done before the longest way comes to its last layer.
TEST(Optimize, WhatIsJoinedIsTakenApartForTheSchedule) {
  const Optimized found = optimize(joined_branches(), simulated(), quick(Strategy::search));
  const Optimized list = optimize(joined_branches(), simulated(), quick(Strategy::list));
  EXPECT_LT(found.report.latency_after_ms, 0.95 * list.report.latency_after_ms);
  const auto& applied = found.report.rules_applied;
  EXPECT_TRUE(std::any_of(applied.begin(), applied.end(),
                          [](const AppliedRule& rule) { return rule.rule.starts_with("part."); }));
}

TEST(Optimize, RunsOnTheProcessorToo) {
  const Graph graph = recurrent(4);
  CompileOptions options = simulated();
  options.device = "cpu";
  SearchOptions search = quick(Strategy::autograph);
  search.budget_seconds = 3;
  const Optimized found = optimize(graph, options, search);
  EXPECT_LE(found.report.latency_after_ms, found.report.latency_before_ms);
  const std::vector<Datum> inputs = seeded_inputs(graph);
  EXPECT_TRUE(compare_all(compile(found, options).run(inputs), run_reference(graph, inputs), {}).ok);
}

// Products of weights are as large as any of the model: they are folded by the device's kernels.
TEST(Optimize, FoldsLargeProductsOfWeights) {
  Graph graph("chain");
  const auto weight = [&](int step) {
    std::vector<float> elements;
    for (int i = 0; i < 256 * 256; ++i) elements.push_back(static_cast<float>(i * step % 17 - 8) / 64);
    return constant(graph, Tensor::of<float>({256, 256}, elements));
  };
  const Var x = input(graph, DType::f32, {4, 256}, "x");
  graph.add_output(matmul(x, matmul(weight(3), weight(5))).id(), "y");
  CompileOptions options = simulated();
  options.device = "cpu";
  const Executable executable = compile(graph, options);
  EXPECT_EQ(executable.graph().num_nodes(), 1u);
  const std::vector<Datum> inputs = seeded_inputs(graph);
  EXPECT_TRUE(compare_all(executable.run(inputs), run_reference(graph, inputs), {}).ok);
}

// Siblings become one where the device gains by it: the launch of two small products takes longer than one.
TEST(Optimize, IosMergesSiblings) {
  Graph graph("siblings");
  const Var x = input(graph, DType::f32, {8, 64}, "x");
  for (int k = 0; k < 3; ++k) {
    const Var weight =
        constant(graph, Tensor::of<float>({64, 32}, std::vector<float>(64 * 32, 0.01F * static_cast<float>(k + 1))));
    graph.add_output(matmul(x, weight).id(), "y" + std::to_string(k));
  }
  SearchOptions search = quick(Strategy::ios);
  search.max_streams = 1;
  const Optimized found = optimize(graph, simulated(), search);
  ASSERT_FALSE(found.report.rules_applied.empty());
  EXPECT_EQ(found.report.rules_applied[0].rule, "matmul.merge_columns");
  const std::vector<Datum> inputs = seeded_inputs(graph);
  EXPECT_TRUE(compare_all(compile(found, simulated()).run(inputs), run_reference(graph, inputs), {}).ok);
  search.use_rules = false;
  EXPECT_TRUE(optimize(graph, simulated(), search).report.rules_applied.empty());
}

// Of runs on `device`, with the samples that others left there: a search's report at its start.
SearchReport report_at_start(const std::string& device, const std::string& cache, const SearchOptions& search,
                             std::span<const LatencySample> samples = {}) {
  CompileOptions options;
  options.device = device;
  options.threads = 1;
  options.cache_folder = cache;
  SearchReport report;
  StrategyContext context(get_device(device, options.precision), options, search, report);
  uint64_t number = 0;
  for (const LatencySample& sample : samples) context.remember_latency({++number, 0}, sample);
  return report;
}

// Graphs that take what their sum says and half of their critical path.
std::vector<LatencySample> samples_of_half() {
  std::vector<LatencySample> samples;
  for (int k = 1; k <= 12; ++k) samples.push_back({100.0 * k, 900.0 / k, 100.0 * k + 450.0 / k});
  return samples;
}

TEST(Optimize, AlphaIsFittedToWhatGraphsTook) {
  const TestFolder folder;  // samples of other tests would be samples, too
  SearchOptions search = quick(Strategy::autograph);
  EXPECT_FALSE(report_at_start("cpu", folder.path(), search, samples_of_half()).is_alpha_fitted);
  const SearchReport fitted = report_at_start("cpu", folder.path(), search);
  EXPECT_TRUE(fitted.is_alpha_fitted);
  EXPECT_NEAR(fitted.alpha, 0.5, 1e-6);
  search.alpha = 2;
  const SearchReport given = report_at_start("cpu", folder.path(), search);
  EXPECT_FALSE(given.is_alpha_fitted);
  EXPECT_EQ(given.alpha, 2);
}

// Before anything else is tried the plain graph is scheduled, where that costs no time on the device.
TEST(Optimize, LargeGraphsAreNeverWorseThanTheListScheduler) {
  const Graph graph = towers(8, 130, 4);
  ASSERT_GT(graph.num_nodes(), 2000U);
  const SearchReport list = optimize(graph, simulated(), quick(Strategy::list)).report;
  SearchOptions search = quick(Strategy::search);
  search.candidates = 1;
  const SearchReport found = optimize(graph, simulated(), search).report;
  EXPECT_LT(list.latency_after_ms, list.latency_before_ms / 2);
  EXPECT_LE(found.latency_after_ms, list.latency_after_ms);
  EXPECT_EQ(found.stop_reason, StopReason::budget);
}

// What one search leaves in the cache must not change the next.
TEST(Optimize, AlphaIsFixedWhereLatenciesAreComputed) {
  const TestFolder folder;
  const SearchOptions search = quick(Strategy::autograph);
  report_at_start("sim:v100", folder.path(), search, samples_of_half());
  const SearchReport next = report_at_start("sim:v100", folder.path(), search);
  EXPECT_FALSE(next.is_alpha_fitted);
  EXPECT_EQ(next.alpha, 1);
}

TEST(Optimize, StopsWhenCancelledWithTheBestSoFar) {
  SearchOptions search = quick(Strategy::autograph);
  int asked = 0;
  search.is_cancelled = [&] { return ++asked > 40; };
  const Graph graph = recurrent(6);
  const Optimized found = optimize(graph, simulated(), search);
  EXPECT_EQ(found.report.stop_reason, StopReason::cancelled);
  const std::vector<Datum> inputs = seeded_inputs(graph);
  EXPECT_TRUE(compare_all(compile(found, simulated()).run(inputs), run_reference(graph, inputs), {}).ok);
}

// The clock goes on from what the command has spent: nothing is begun that could not be tried before the end.
TEST(Optimize, BeginsNothingThatCouldNotBeTried) {
  SearchOptions search = quick(Strategy::autograph);
  search.budget_seconds = 400;
  search.spent_seconds = 0.88 * search.budget_seconds;
  const Optimized found = optimize(recurrent(6), simulated(), search);
  EXPECT_EQ(found.report.candidates, 0U);
  EXPECT_EQ(found.report.partitions, 0U);
  EXPECT_EQ(found.report.stop_reason, StopReason::budget);
  EXPECT_GT(found.report.latency_after_ms, 0);
}

// Then the plain plan is compared with the reference and is the result, and the report tells what was not attested.
TEST(Optimize, ThePlainPlanIsTheResultWhereTheBudgetIsOver) {
  const TestFolder folder;
  CompileOptions options;
  options.cache_folder = folder.path();
  SearchOptions search = quick(Strategy::autograph);
  search.budget_seconds = 1e-6;
  search.spent_seconds = 1;
  const Graph graph = recurrent(2);
  const Optimized found = optimize(graph, options, search);
  const SearchReport& report = found.report;
  EXPECT_EQ(report.stop_reason, StopReason::budget);
  EXPECT_TRUE(report.rules_applied.empty());
  EXPECT_TRUE(found.schedule.is_sequential());
  EXPECT_TRUE(report.agrees);
  EXPECT_GT(report.latency_after_ms, 0);
  EXPECT_EQ(report.cost_before_us, 0) << "nobody asked for costs";
  EXPECT_NE(report.compared_with.find("of the plain plan"), std::string::npos) << report.compared_with;
  const std::vector<Datum> inputs = seeded_inputs(graph);
  EXPECT_TRUE(compare_all(compile(found, options).run(inputs), run_reference(graph, inputs), {}).ok);
}

// Who measures first has no time left to attest the kernels of a large graph.
TEST(Optimize, ThePlainPlanIsAttestedBeforeCostsAreMeasured) {
  const TestFolder folder;
  CompileOptions options;
  options.cache_folder = folder.path();
  MeasurementCache cache(folder.path());
  bool is_measured_first = false;
  SearchOptions search = quick(Strategy::list);
  search.use_tuning = false;
  search.max_streams = 1;
  search.is_cancelled = [&] {
    is_measured_first = is_measured_first || (cache.size() > 0 && attested_kernels(options).trusted == 0);
    return false;
  };
  const Optimized found = optimize(recurrent(2), options, search);
  EXPECT_FALSE(is_measured_first);
  EXPECT_GT(cache.size(), 0);
  EXPECT_GT(attested_kernels(options).trusted, 0);
  EXPECT_GT(found.report.cost_before_us, 0);
}

// What trials told is the result where no time is left to measure it once more.
TEST(Optimize, TrialsTellTheLatenciesOfACancelledSearch) {
  SearchOptions search = quick(Strategy::autograph);
  const Optimized whole = optimize(recurrent(6), simulated(), search);
  ASSERT_FALSE(whole.report.trials.empty());
  int asked = 0;
  search.is_cancelled = [&] { return ++asked > 60; };
  const Optimized found = optimize(recurrent(6), simulated(), search);
  EXPECT_EQ(found.report.stop_reason, StopReason::cancelled);
  double best_ms = whole.report.latency_before_ms;
  for (const TrialResult& trial : found.report.trials) best_ms = trial.accepted ? trial.latency_ms : best_ms;
  EXPECT_EQ(found.report.latency_after_ms, best_ms);
  EXPECT_NEAR(found.report.latency_before_ms, whole.report.latency_before_ms, 1e-9);
  EXPECT_TRUE(found.report.agrees);
}

// Algorithm 1 as it stands counts the time that kernels take where the search counts what they keep busy.
TEST(Optimize, SearchIsLevelWithThePaper) {
  for (const auto& [steps, size] : {std::pair(6, 256), std::pair(12, 1024)}) {
    const Graph graph = recurrent(steps, size);
    SearchOptions search = quick(Strategy::search);
    search.max_candidates = 60;
    search.budget_seconds = 120;  // a bound for busy machines: candidates end the search
    SearchOptions paper = search;
    paper.strategy = Strategy::paper;
    const double paper_ms = optimize(graph, simulated(), paper).report.latency_after_ms;
    EXPECT_LE(optimize(graph, simulated(), search).report.latency_after_ms, 1.01 * paper_ms) << steps << " " << size;
  }
}

TEST(Optimize, RulesCanBeLeftOut) {
  SearchOptions search = quick(Strategy::taso);
  search.disabled_rules = {"matmul.merge_rows"};
  for (const AppliedRule& rule : optimize(recurrent(4), simulated(), search).report.rules_applied) {
    EXPECT_NE(rule.rule, "matmul.merge_rows");
  }
  search.disabled_rules = {"matmul.merge_row"};
  EXPECT_THROW(optimize(recurrent(1), simulated(), search), ValueError);
}

TEST(Optimize, NeedsStaticShapes) {
  Graph graph;
  const Var x = input(graph, DType::f32, {Dim::symbol("batch"), 4}, "x");
  graph.add_output(relu(x).id());
  EXPECT_THROW(optimize(graph, simulated(), quick(Strategy::autograph)), ShapeError);
}

TEST(Optimize, RefusesOptionsOutOfRange) {
  SearchOptions search = quick(Strategy::autograph);
  search.gamma = 0.5;
  EXPECT_THROW(optimize(recurrent(1), simulated(), search), ValueError);
}

}  // namespace
}  // namespace autograph
