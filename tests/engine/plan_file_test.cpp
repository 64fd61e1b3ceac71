// Plan files: what is saved is what is loaded, and no damaged file gets through.
#include "autograph/plan_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "autograph/builder.h"
#include "autograph/compare_values.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/seeded_inputs.h"
#include "base/hash.h"
#include "support/graphs/random_network.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// Of header and text, which follow the head of a plan file.
size_t content_bytes(const std::string& file) {
  uint64_t header = 0, text = 0;
  std::memcpy(&header, file.data() + 16, sizeof header);
  std::memcpy(&text, file.data() + 24, sizeof text);
  return header + text;
}

CompileOptions one_thread() {
  CompileOptions options;
  options.threads = 1;
  return options;
}

// y = softmax(x w) and z = relu(x w v): two nodes that may run at the same time, weights large enough for the pool.
Optimized two_streams() {
  Optimized optimized;
  Graph& graph = optimized.graph;
  const Var x = input(graph, DType::f32, {2, 16}, "x");
  const Var w = constant(graph, seeded_input(graph, 0).tensor().reshaped({16, 2}), "w");
  const Var p = matmul(x, w);
  graph.add_output(softmax(p).id(), "y");
  graph.add_output(relu(matmul(p, constant(graph, Tensor::zeros(DType::f32, {2, 100}), "v"))).id(), "z");
  const std::vector<NodeId> order = graph.topological_order();
  std::vector<NodeId> first;
  std::vector<NodeId> second;
  for (const NodeId id : order) {
    if (id == order[0]) continue;
    (graph.node(id).op().name == "softmax" ? first : second).push_back(id);
  }
  optimized.schedule.stages = {{.threads = 0, .streams = {{order[0]}}}, {.threads = 1, .streams = {first, second}}};
  optimized.report.strategy = Strategy::ios;
  optimized.report.candidates = 17;
  optimized.report.cost_before_us = 2.5;
  optimized.report.stop_reason = StopReason::budget;
  optimized.report.rules_applied = {{"merge.matmuls", "a + \"b\"", 1.25}};
  return optimized;
}

class PlanFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = folder_ / "p.agplan";
    plan_ = make_plan(two_streams(), one_thread(), "m.onnx", 7);
    save_plan(plan_, path_);
  }

  // The message with which `content` is refused; fails when it is accepted or refused in another way.
  std::string refusal(const std::string& content) {
    write_file(folder_ / "bad.agplan", content);
    try {
      load_plan(folder_ / "bad.agplan");
    } catch (const FormatError& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::malformed);
      return error.what();
    }
    ADD_FAILURE() << "a damaged file of " << content.size() << " bytes was accepted";
    return "";
  }

  TestFolder folder_;
  std::string path_;
  SavedPlan plan_;
};

TEST_F(PlanFile, KeepsGraphScheduleReportAndOrigin) {
  const SavedPlan loaded = load_plan(path_);
  EXPECT_EQ(structural_hash(loaded.optimized.graph), structural_hash(plan_.optimized.graph));
  const Schedule& schedule = loaded.optimized.schedule;
  ASSERT_EQ(schedule.stages.size(), 2U);
  EXPECT_EQ(schedule.stages[1].threads, 1);
  EXPECT_EQ(schedule.width(), 2);
  EXPECT_EQ(to_string(schedule, loaded.optimized.graph), to_string(plan_.optimized.schedule, plan_.optimized.graph));
  const SearchReport& report = loaded.optimized.report;
  EXPECT_EQ(report.strategy, Strategy::ios);
  EXPECT_EQ(report.candidates, 17U);
  EXPECT_EQ(report.cost_before_us, 2.5);
  EXPECT_EQ(report.stop_reason, StopReason::budget);
  ASSERT_EQ(report.rules_applied.size(), 1U);
  EXPECT_EQ(report.rules_applied[0].where, "a + \"b\"");
  EXPECT_EQ(report.rules_applied[0].gain_us, 1.25);
  EXPECT_EQ(loaded.origin.model, "m.onnx");
  EXPECT_EQ(loaded.origin.threads, 1);
  EXPECT_EQ(loaded.origin.identity, plan_.origin.identity);
  EXPECT_EQ(loaded.node_us, plan_.node_us);
  EXPECT_EQ(loaded.node_us.size(), 4U);
}

// What was compiled to verify a result serves to save it.
TEST_F(PlanFile, IsTheSameOfWhatWasCompiledBefore) {
  CompileOptions options = one_thread();
  options.profile = true;
  options.release_weights = false;
  options.expert.use_passes = false;
  const Executable compiled = compile(two_streams(), options);
  const SavedPlan plan = make_plan(two_streams(), compiled, one_thread(), "m.onnx", 7);
  EXPECT_EQ(plan.origin.identity, plan_.origin.identity);
  EXPECT_EQ(plan.origin.model, plan_.origin.model);
  EXPECT_EQ(plan.node_us.size(), plan_.node_us.size());
  EXPECT_EQ(plan.kernel_times, plan_.kernel_times);
  ASSERT_EQ(plan.probe.outputs.size(), 2u);
  EXPECT_TRUE(compare_all(plan.probe.outputs, plan_.probe.outputs, {.rtol = 0, .share = 0}).ok);
}

TEST_F(PlanFile, RunsAsItDidWhereItWasMade) {
  const SavedPlan loaded = load_plan(path_);
  SeedOptions seeds;
  seeds.seed = loaded.probe.seed;
  const auto inputs = seeded_inputs(loaded.optimized.graph, seeds);
  const auto outputs = compile(loaded.optimized, one_thread()).run(inputs);
  EXPECT_EQ(compare_all(outputs, loaded.probe.outputs, {.rtol = 1e-6, .atol = 1e-6}).why, "");
}

TEST_F(PlanFile, SavingAgainGivesTheSameBytes) {
  save_plan(load_plan(path_), folder_ / "again.agplan");
  EXPECT_EQ(read_file(folder_ / "again.agplan"), read_file(path_));
}

// A search leaves this time: what it takes to make a plan says nothing about writing its weights.
TEST(SecondsToSave, GrowWithTheWeights) {
  Graph graph("weights");
  EXPECT_EQ(seconds_to_save(graph), 0);
  graph.add_constant(Tensor::empty(DType::f32, {1000, 1000}), "a");
  const double of_one = seconds_to_save(graph);
  EXPECT_GT(of_one, 0);
  for (const char* name : {"b", "c", "d"}) graph.add_constant(Tensor::empty(DType::f32, {1000, 1000}), name);
  EXPECT_DOUBLE_EQ(seconds_to_save(graph), 4 * of_one);
}

TEST_F(PlanFile, RefusesEveryFlippedByte) {
  const std::string good = read_file(path_);
  for (size_t i = 0; i < good.size(); i += i < 100 ? 1 : 7) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    EXPECT_NE(refusal(bad), "") << "byte " << i;
  }
}

TEST_F(PlanFile, RefusesEveryTruncation) {
  const std::string good = read_file(path_);
  for (size_t length = 0; length < good.size(); length += length < 100 ? 1 : 11) refusal(good.substr(0, length));
}

TEST_F(PlanFile, SaysWhatIsWrong) {
  const std::string good = read_file(path_);
  EXPECT_NE(refusal(good + "x").find("something was added"), std::string::npos);
  EXPECT_NE(refusal("not a plan at all").find("it is no plan file"), std::string::npos);
  std::string newer = good;
  newer[8] = 4;
  EXPECT_NE(refusal(newer).find("expected format 2 or 3, got 4"), std::string::npos);
  std::string huge = good;
  for (size_t i = 0; i < 8; ++i) huge[32 + i] = '\xFF';  // bytes of the pool
  EXPECT_NE(refusal(huge).find("cut off"), std::string::npos);
  std::string weights = good;
  weights.back() = static_cast<char>(weights.back() ^ 1);
  EXPECT_NE(refusal(weights).find("its weights are damaged"), std::string::npos);
  EXPECT_THROW(load_plan(folder_ / "nowhere.agplan"), IoError);
}

// A graph with the input w, which a file has a value for, and weights that are kept beside the text as that value is.
Optimized with_optional_input() {
  Optimized optimized;
  Graph& graph = optimized.graph;
  const Var x = input(graph, DType::f32, {2, 100}, "x");
  const Var scale = constant(graph, Tensor::of<float>({100}, std::vector<float>(100, 0.5F)), "scale");
  graph.add_output(add(x * scale, input(graph, DType::f32, {100}, "w")).id(), "y");
  input(graph, DType::string, {2}, "\xff");
  return optimized;
}

TEST_F(PlanFile, KeepsTheDefaultsOfInputs) {
  const Tensor w = seeded_input(with_optional_input().graph, 1).tensor();
  const Tensor words = Tensor::of<std::string>({2}, {"a", "\xfe\n\""});
  save_plan(make_plan(with_optional_input(), one_thread(), "m.onnx", 7, {{"w", w}, {"\xff", words}}), path_);
  const SavedPlan loaded = load_plan(path_);
  ASSERT_EQ(loaded.input_defaults.size(), 2U);
  EXPECT_EQ(loaded.input_defaults.at("w").content_hash(), w.content_hash());
  EXPECT_EQ(loaded.input_defaults.at("\xff").content_hash(), words.content_hash());
  EXPECT_TRUE(revalidate(loaded, one_thread(), Revalidation::numbers).difference.ok);
  save_plan(loaded, folder_ / "again.agplan");
  EXPECT_EQ(read_file(folder_ / "again.agplan"), read_file(path_));
  EXPECT_TRUE(load_plan(folder_ / "again.agplan").input_defaults.contains("w"));
}

TEST_F(PlanFile, RefusesDefaultsOfWhatIsNoInput) {
  SavedPlan bad = plan_;
  bad.input_defaults["w"] = Tensor::zeros(DType::f32, {2});  // a constant of the plan
  save_plan(bad, path_);
  EXPECT_NE(refusal(read_file(path_)).find("[agplan] default of 'w': expected that of an input"), std::string::npos);
  bad.input_defaults = {{"no\ninput", Tensor::zeros(DType::f32, {2})}};
  save_plan(bad, path_);
  EXPECT_NE(refusal(read_file(path_)).find("default of 'no\\ninput'"), std::string::npos);
}

TEST_F(PlanFile, ReadsTheFormatBefore) {
  std::string before = read_file(path_);
  before[8] = 2;
  constexpr size_t kHashed = 56, kHead = 72;
  const Hash128 hash = Hasher()
                           .add(hash_bytes(before.data(), kHashed))
                           .add(hash_bytes(before.data() + kHead, content_bytes(before)))
                           .finish();
  std::memcpy(before.data() + kHashed, &hash.low, sizeof hash.low);
  std::memcpy(before.data() + kHashed + sizeof hash.low, &hash.high, sizeof hash.high);
  write_file(path_, before);
  const SavedPlan loaded = load_plan(path_);
  EXPECT_EQ(structural_hash(loaded.optimized.graph), structural_hash(plan_.optimized.graph));
  EXPECT_TRUE(loaded.input_defaults.empty());
}

// Files made by somebody who knows the hash: the content itself is checked.
TEST_F(PlanFile, RefusesContentThatDoesNotFitTogether) {
  SavedPlan bad = plan_;
  std::swap(bad.optimized.schedule.stages[0], bad.optimized.schedule.stages[1]);
  save_plan(bad, path_);
  EXPECT_NE(refusal(read_file(path_)).find("[agplan] schedule:"), std::string::npos);
  bad = plan_;
  bad.node_us.pop_back();
  save_plan(bad, path_);
  EXPECT_NE(refusal(read_file(path_)).find("expected 4 times, got 3"), std::string::npos);
  bad = plan_;
  bad.probe.outputs.pop_back();
  save_plan(bad, path_);
  EXPECT_NE(refusal(read_file(path_)).find("expected 2 outputs, got 1"), std::string::npos);
  bad = plan_;
  bad.optimized.schedule.stages[1].threads = 5000;
  save_plan(bad, path_);
  EXPECT_NE(refusal(read_file(path_)).find("plan.stages[1].threads"), std::string::npos);
}

TEST_F(PlanFile, TellsInWhatAMachineDiffers) {
  PlanOrigin here = plan_origin(one_thread(), "m.onnx");
  EXPECT_TRUE(differences(plan_.origin, here).empty());
  here.threads = 2;
  here.identity = "another machine";
  const auto list = differences(plan_.origin, here);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[1], "threads was 1, is 2");
}

TEST_F(PlanFile, RevalidationComparesAndTakesTheFaster) {
  const Revalidated all = revalidate(load_plan(path_), one_thread(), Revalidation::all);
  EXPECT_TRUE(all.difference.ok) << all.difference.why;
  EXPECT_GT(all.saved_ms, 0);
  EXPECT_GT(all.plain_ms, 0);
  EXPECT_EQ(all.kept_schedule, all.saved_ms <= all.plain_ms);
  const Revalidated cheap = revalidate(load_plan(path_), one_thread(), Revalidation::numbers);
  EXPECT_TRUE(cheap.difference.ok);
  EXPECT_EQ(cheap.saved_ms, 0);
}

// A tuned plan chooses its kernels as it did, though the cache is gone.
TEST_F(PlanFile, KeepsTheTimesByWhichKernelsWereChosen) {
  CompileOptions options = one_thread();
  options.device = "cpu";
  options.tune = true;
  options.cache_folder = folder_ / "cache";
  save_plan(make_plan(two_streams(), options, "m.onnx", 7), path_);
  const SavedPlan loaded = load_plan(path_);
  EXPECT_FALSE(loaded.kernel_times.empty());
  size_t measured = 0;
  options.cache_folder = folder_ / "another";
  options.on_tune = [&](const TuneProgress& at) { measured = at.measured; };
  for (const auto& [key, us] : compile(loaded, options).kernel_times()) {
    ASSERT_TRUE(loaded.kernel_times.contains(key)) << key;
    EXPECT_EQ(loaded.kernel_times.at(key), us) << key;
  }
  EXPECT_EQ(measured, 0U);
  compile(loaded.optimized, options);
  EXPECT_GT(measured, 0U) << "nothing is measured anyway";
}

// A tuned plan brings its kernels along without being asked to tune; asked to, it goes on from them.
TEST_F(PlanFile, TuningAPlanGoesOnFromItsKernels) {
  const auto kernels = [](const Executable& executable) {
    std::vector<std::string> names;
    for (const KernelChoice& choice : executable.kernel_choices()) names.push_back(choice.kernel);
    return names;
  };
  CompileOptions options;
  options.threads = 1;
  options.cache_folder = folder_ / "cache";
  Optimized optimized;
  optimized.graph = make_random_network(3);
  CompileOptions alone = options;
  alone.tune = true;
  alone.expert.tune_in_network = false;
  SavedPlan made = make_plan(optimized, alone, "m.onnx", 7);
  // What was the slowest is said to be the fastest, so that the plan has other kernels than estimates choose.
  for (auto& [key, us] : made.kernel_times) us = 1e6 / us;
  save_plan(made, path_);
  const SavedPlan loaded = load_plan(path_);
  EXPECT_TRUE(loaded.optimized.report.tuned);

  int num_plans = 0;
  options.cache_folder = folder_ / "another";
  options.on_tune = [&](const TuneProgress& at) { num_plans += at.in_network ? 1 : 0; };
  alone.expert.kernel_times = std::make_shared<const KernelTimes>(made.kernel_times);
  alone.expert.schedule = std::make_shared<const Schedule>();
  const std::vector<std::string> of_plan = kernels(compile(loaded, options));
  EXPECT_EQ(of_plan, kernels(compile(loaded.optimized.graph, alone)));
  EXPECT_EQ(num_plans, 0) << "loading is no time to search";
  CompileOptions estimated = options;
  estimated.expert.schedule = alone.expert.schedule;
  EXPECT_NE(of_plan, kernels(compile(loaded.optimized.graph, estimated)));
  options.tune = true;
  compile(loaded, options);
  EXPECT_GT(num_plans, 0);
}

TEST_F(PlanFile, KeepsThePrecision) {
  plan_.origin.precision = Precision::bf16;
  save_plan(plan_, path_);
  EXPECT_EQ(load_plan(path_).origin.precision, Precision::bf16);
}

TEST_F(PlanFile, RevalidationNoticesOtherNumbers) {
  SavedPlan bad = load_plan(path_);
  bad.probe.outputs[0] = Datum(Tensor::zeros(DType::f32, {2, 2}));
  EXPECT_FALSE(revalidate(bad, one_thread(), Revalidation::numbers).difference.ok);
  // Without outputs the reference tells what is right.
  bad.probe.outputs.clear();
  EXPECT_TRUE(revalidate(bad, one_thread(), Revalidation::all).difference.ok);
}

// Whatever was tried on the way, the first run finds the states of the graph, or those of the caller's store.
TEST_F(PlanFile, TrialsLeaveNoTraceInStates) {
  Optimized stateful = two_streams();
  const Var w = state(stateful.graph, Tensor::scalar(1.0F), "w");
  const Var next = relu(w);
  update(w, add(next, next));
  for (const NodeId id : stateful.graph.topological_order()) {
    const bool is_new = id == stateful.graph.value(next.id()).producer() ||
                        id == stateful.graph.value(stateful.graph.updates()[0].value).producer();
    if (is_new) stateful.schedule.stages.push_back({.threads = 0, .streams = {{id}}});
  }
  stateful.graph.add_output(w.id(), "w");
  CompileOptions options = one_thread();
  options.states = StateStore();
  save_plan(make_plan(stateful, options, "m.onnx", 7), path_);
  EXPECT_TRUE(options.states->names().empty());
  for (const Revalidation how : {Revalidation::numbers, Revalidation::all}) {
    const Revalidated own = revalidate(load_plan(path_), one_thread(), how);
    EXPECT_TRUE(own.difference.ok) << own.difference.why;
    EXPECT_EQ(own.executable.states().get("w").to_f64(), (std::vector<double>{1}));
    options.states = StateStore();
    options.states->add(stateful.graph);
    options.states->set("w", Tensor::scalar(8.0F));
    const Revalidated shared = revalidate(load_plan(path_), options, how);
    EXPECT_TRUE(shared.difference.ok) << shared.difference.why;
    EXPECT_EQ(options.states->get("w").to_f64(), (std::vector<double>{8}));
    shared.executable.run(seeded_inputs(stateful.graph));
    EXPECT_EQ(options.states->get("w").to_f64(), (std::vector<double>{16}));
  }
}

}  // namespace
}  // namespace autograph
