// What is computed of a part is what the whole has there.
#include "accuracy/sampled_run.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/builder.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "autograph/verify.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/graphs/sample_graph.h"

namespace autograph {
namespace {

std::vector<ScaledTensor> tensors_of(const std::vector<Datum>& inputs) {
  std::vector<ScaledTensor> tensors;
  for (const Datum& datum : inputs) tensors.push_back({datum.tensor(), {}});
  return tensors;
}

// The bodies of these are identities, which move nothing and have none.
bool hands_on(const OpDef& op) {
  return &op == &stop_gradient_def() || &op == &with_gradient_def() || &op == &gradient_hook_def();
}

bool has_reference(const OpDef& op) { return op.scalar || op.reference || (op.decompose && !hands_on(op)); }

bool is_static(const Graph& graph) {
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (!has_reference(node.op())) return false;
    for (const ValueId v : node.outputs()) {
      const Type& type = graph.type(v);
      if (!type.is_static() || type.dtype() == DType::string || type.shape().num_elements() == 0) return false;
    }
  }
  return true;
}

// How many outputs of a call were computed from less than the whole, each in some elements that are drawn.
size_t num_cropped(const OpDef& op, const OpSample& sample, uint64_t seed, bool knows_values = false) {
  const TestGraph test = make_sample_graph(op, sample, false, knows_values);
  const auto is_tensor = [](const Datum& datum) { return datum.is_tensor(); };
  if (!std::all_of(test.inputs.begin(), test.inputs.end(), is_tensor) || !is_static(test.graph)) return 0;
  Random random(seed);
  SampledRun whole(test.graph, tensors_of(test.inputs), {});
  SampledRun part(test.graph, tensors_of(test.inputs), {});
  size_t count = 0;
  for (const ValueId output : test.graph.outputs()) {
    const Dims dims = test.graph.type(output).shape().static_dims();
    const ScaledTensor all = whole.compute(output, select_all(dims));
    const Selection wanted = draw_selection(dims, 6, seed % 3, random);
    const ScaledTensor some = part.compute(output, wanted);
    EXPECT_TRUE(some.value.bitwise_equal(select(all.value, wanted))) << op.name << ", seed " << seed;
    count += part.work(output, wanted) < whole.work(output, select_all(dims)) ? 1 : 0;
  }
  return count;
}

// Rules that make the whole of an axis are of no use on the few elements of samples.
TEST(SampledRun, GivesTheElementsOfTheWhole) {
  size_t cropped = 0;
  for (const OpDef* op : all_ops()) {
    if (!op->sample || op->evaluate || op->traits.random || !has_reference(*op)) continue;
    for (uint64_t seed = 0; seed < 40; ++seed) {
      Random random(seed);
      cropped += num_cropped(*op, op->sample(random), seed);
    }
  }
  EXPECT_GT(cropped, 2500U) << "ops with rules compute less than the whole";
}

TEST(SampledRun, CropsWhatSamplesLeaveOut) {
  Random random(1);
  const auto numbers = [&](Dims dims) { return draw_tensor(random, DType::f32, std::move(dims)); };
  for (const char* mode : {"nearest", "linear"}) {
    const OpSample resized{.inputs = {numbers({2, 9, 4, 5}), Datum(), Tensor::of<float>({4}, {1, 1, 2, 1.5F})},
                           .attributes = {{"mode", std::string(mode)}}};
    EXPECT_EQ(num_cropped(resize_def(), resized, 1, true), 1U) << mode;
  }
  const OpSample weights{.inputs = {numbers({2, 18, 5, 5}), numbers({2, 27, 3, 3})},
                         .attributes = {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"group", int64_t{9}}}};
  EXPECT_EQ(num_cropped(conv_grad_weight_def(), weights, 1), 1U);
}

// A split into thousands of pieces would take a run of all of it for each of them.
TEST(SampledRun, RunsWhatCannotBeCutDownOnceForAllItsOutputs) {
  Graph graph("pieces");
  const Var x = input(graph, DType::f32, {4}, "x");
  for (const Var& piece : split(x, {1, 1, 1, 1})) graph.add_output(piece.id());
  const std::vector<ScaledTensor> inputs = {{Tensor::of<float>({4}, {1, 2, 3, 4}), {}}};
  SampledRun run(graph, inputs, {});
  const Selection all = {{0}};
  EXPECT_GT(run.work(graph.outputs()[2], all), 0);
  EXPECT_EQ(run.compute(graph.outputs()[1], all).value.data<float>()[0], 2);
  EXPECT_EQ(run.work(graph.outputs()[2], all), 0);
  EXPECT_EQ(run.compute(graph.outputs()[2], all).value.data<float>()[0], 3);
  EXPECT_EQ(run.compute(graph.outputs()[0], all).value.data<float>()[0], 1);
}

}  // namespace
}  // namespace autograph
