// Every op of the registry computed at once, against the reference, and its gradients against those of graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "autodiff/gradient_check.h"
#include "autograph/autodiff.h"
#include "autograph/eager.h"
#include "autograph/error.h"
#include "autograph/random.h"
#include "autograph/text.h"
#include "conformance/interpreter.h"
#include "eager/capture/replay.h"
#include "ops/sample.h"
#include "support/agreement.h"
#include "support/as_part.h"
#include "support/compare.h"
#include "support/graphs/random_graph.h"
#include "support/graphs/sample_graph.h"

namespace autograph {
namespace {

constexpr int kSamples = 12;

// The call of a sample on eager values.
std::vector<Datum> call_eagerly(const OpDef& op, const OpSample& sample) {
  std::vector<Var> inputs;
  for (const Datum& datum : sample.inputs) {
    inputs.push_back(datum.is_present() ? eager(datum, type_of_datum(datum)) : Var());
  }
  std::vector<Datum> results;
  for (const Var& output : apply_all(op, inputs, sample.attributes, sample.num_outputs)) {
    results.push_back(datum(output));
    const bool is_tensor = output.type().is_tensor();
    EXPECT_TRUE(!is_tensor || output.type() == results.back().tensor().type()) << to_string(output.type());
  }
  return results;
}

OpSample on_parts(OpSample sample) {
  for (Datum& input : sample.inputs) input = as_part(input);
  return sample;
}

bool has_inputs(const OpSample& sample) {
  return std::any_of(sample.inputs.begin(), sample.inputs.end(), [](const Datum& x) { return x.is_present(); });
}

class EagerOps : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(EagerOps, ComputeWhatTheReferenceComputes) {
  const OpDef& op = *GetParam();
  for (int seed = 0; seed < kSamples; ++seed) {
    Random random(static_cast<uint64_t>(seed));
    const OpSample sample = op.sample(random);
    if (!has_inputs(sample)) continue;
    try {
      const TestGraph test = make_sample_graph(op, sample);
      const std::vector<Datum> expected = autograph::tests::interpret(test.graph, test.inputs);
      {
        const EagerDevice device("reference");
        ASSERT_EQ(difference(call_eagerly(op, sample), expected, {.rtol = 0, .atol = 0}), "") << "seed " << seed;
      }
      ASSERT_EQ(disagreement(call_eagerly(op, sample), expected, test), "") << "seed " << seed << ", on the processor";
      // A second time by the kernels that the first call left, which write to no input.
      const OpSample parts = on_parts(sample);
      ASSERT_EQ(disagreement(call_eagerly(op, parts), expected, test), "") << "seed " << seed << ", on parts";
      ASSERT_EQ(difference(parts.inputs, sample.inputs, {.rtol = 0, .atol = 0}), "") << "seed " << seed;
    } catch (const std::exception& error) {
      FAIL() << "seed " << seed << ": " << error.what();
    }
  }
}

std::vector<Var> variables(const std::vector<Datum>& inputs) {
  std::vector<Var> values;
  for (const Datum& input : inputs) values.push_back(variable(input.tensor()));
  return values;
}

std::vector<Datum> data_of(const std::vector<Var>& values) {
  std::vector<Datum> data;
  for (const Var& value : values) data.push_back(datum(value));
  return data;
}

// Graph values for these tensors; eager ones where `like` is eager.
std::vector<Var> constants_like(const Var& like, const std::vector<Tensor>& tensors) {
  std::vector<Var> values;
  for (const Tensor& tensor : tensors) values.push_back(constant_like(like, tensor));
  return values;
}

// Gradients, and gradients of those.
std::vector<Var> first_and_second(const std::vector<Var>& outputs, const std::vector<Tensor>& seeds,
                                  const std::vector<Tensor>& directions, const std::vector<Var>& wanted) {
  std::vector<Var> gradients = vjp(outputs, constants_like(outputs[0], seeds), wanted);
  if (directions.empty()) return gradients;
  const std::vector<Var> second = vjp(gradients, constants_like(outputs[0], directions), wanted);
  gradients.insert(gradients.end(), second.begin(), second.end());
  return gradients;
}

// "" where gradients by the tape are those of the graph.
std::string compare_gradients(const GradientCase& test, Random& random, bool second_order) {
  std::vector<Tensor> seeds, directions;
  for (const Datum& input : test.inputs) {
    if (second_order) directions.push_back(draw_tensor(random, input.tensor().dtype(), input.tensor().dims(), -1, 1));
  }
  Graph forward = *test.graph;
  for (const Var& output : test.outputs) forward.add_output(output.id());
  const std::vector<Var> wanted = variables(test.inputs);
  const std::vector<Var> outputs = replay(forward, wanted);
  for (const Var& output : outputs) {
    seeds.push_back(draw_tensor(random, output.dtype(), output.shape().static_dims(), -1, 1));
  }
  const std::vector<Datum> actual = data_of(first_and_second(outputs, seeds, directions, wanted));
  for (const Var& gradient : first_and_second(test.outputs, seeds, directions, test.wanted)) {
    test.graph->add_output(gradient.id());
  }
  std::vector<Datum> expected;
  for (const Tensor& tensor : interpret_tensors(*test.graph, test.inputs)) expected.emplace_back(tensor);
  return difference(actual, expected, {.rtol = 1e-4, .atol = 1e-5});
}

// They have a derivative, but no rule: see tests/autodiff/rules_test.cpp. Loops and scans there let states grow.
bool is_differentiable(const OpDef& op) {
  return op.no_grad.empty() && (op.vjp || op.decompose) && op.name != "loop" && op.name != "scan";
}

// Inputs of floats that are settings.
const std::map<std::string_view, std::set<size_t>> kSettings = {
    {"rotary_embedding", {1, 2}}, {"resize", {1, 2}}, {"dropout", {1}}};

TEST_P(EagerOps, HaveTheGradientsOfGraphs) {
  const OpDef& op = *GetParam();
  if (!is_differentiable(op)) GTEST_SKIP() << "no gradient";
  const EagerDevice device("reference");
  const auto settings = kSettings.find(op.name);
  for (int seed = 0; seed < kSamples; ++seed) {
    Random random(static_cast<uint64_t>(seed));
    const OpSample sample = op.sample(random);
    try {
      const GradientCase test =
          make_gradient_case(op, sample, settings == kSettings.end() ? std::set<size_t>() : settings->second);
      if (test.wanted.empty() || test.outputs.empty()) continue;
      const std::string text = print_text(*test.graph);
      ASSERT_EQ(compare_gradients(test, random, seed % 3 == 0), "") << "seed " << seed << "\n" << text;
    } catch (const std::exception& error) {
      FAIL() << "seed " << seed << ": " << error.what();
    }
  }
}

std::vector<const OpDef*> sampled_ops() {
  std::vector<const OpDef*> ops;
  for (const OpDef* op : all_ops()) {
    if (op->sample) ops.push_back(op);
  }
  return ops;
}

std::string name_of(const ::testing::TestParamInfo<const OpDef*>& info) { return std::string(info.param->name); }

INSTANTIATE_TEST_SUITE_P(AllOps, EagerOps, ::testing::ValuesIn(sampled_ops()), name_of);

// Drawn numbers may be none that an op takes: then both refuse.
TEST(EagerGraphs, RandomGraphsComputeWhatTheReferenceComputes) {
  constexpr int kGraphs = 150;
  const EagerDevice device("reference");
  int computed = 0;
  for (int seed = 0; seed < kGraphs; ++seed) {
    Random random(static_cast<uint64_t>(seed));
    const TestGraph test = make_random_graph(random, 12);
    std::vector<Var> inputs;
    for (const Datum& input : test.inputs) inputs.push_back(eager(input.tensor()));
    std::vector<Datum> expected;
    try {
      expected = autograph::tests::interpret(test.graph, test.inputs);
    } catch (const UserError&) {
      EXPECT_THROW(replay(test.graph, inputs), UserError) << "seed " << seed;
      continue;
    }
    ++computed;
    ASSERT_EQ(difference(data_of(replay(test.graph, inputs)), expected, {.rtol = 0, .atol = 0}), "")
        << "seed " << seed << "\n"
        << print_text(test.graph);
  }
  EXPECT_GT(computed, kGraphs / 2);
}

TEST(EagerGraphs, NodesWithoutInputsNeedNoOthers) {
  Graph graph;
  const NodeId node = graph.add_node(get_op("sequence_empty"), {}, {{"dtype", DType::i64}}, {{}, 1});
  graph.add_output(graph.node(node).output(0));
  const std::vector<Var> results = replay(graph, {});
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(datum(results[0]).is_sequence());
}

}  // namespace
}  // namespace autograph
