// Outputs for gradients, which ONNX does not know: nodes that have one are written as other nodes.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "autograph/compile.h"
#include "autograph/model_io.h"
#include "autograph/op_def.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/graphs/sample_graph.h"

namespace autograph {
namespace {

size_t num_internal(const OpDef& op) {
  return static_cast<size_t>(std::count_if(op.outputs.begin(), op.outputs.end(),
                                           [](const Param& param) { return param.arity == Arity::internal; }));
}

// Of the node of this op that has the most of them.
size_t most_outputs(const Graph& graph, const OpDef& op) {
  size_t most = 0;
  for (const NodeId id : graph.nodes()) {
    if (&graph.node(id).op() == &op) most = std::max(most, graph.node(id).outputs().size());
  }
  return most;
}

// A layer of three positions with all outputs that files have, and one more.
void expect_written_as_others(const OpDef& op, int64_t gates) {
  SCOPED_TRACE(op.name);
  constexpr int64_t kInput = 4, kHidden = 6;
  Random random(3);
  const auto drawn = [&](Dims dims) { return draw_tensor(random, DType::f32, std::move(dims), -1, 1); };
  OpSample layer{
      .inputs = {drawn({3, 2, kInput}), drawn({1, gates * kHidden, kInput}), drawn({1, gates * kHidden, kHidden})},
      .attributes = {{"hidden_size", kHidden}}};
  const size_t outputs_in_files = op.outputs.size() - num_internal(op);
  for (const size_t num_outputs : {outputs_in_files, outputs_in_files + 1}) {
    layer.num_outputs = static_cast<int>(num_outputs);
    const TestGraph test = make_sample_graph(op, layer, false);
    const Graph read = parse_onnx(serialize_onnx(test.graph)).graph;
    EXPECT_LE(most_outputs(read, op), outputs_in_files);
    EXPECT_EQ(difference(compile(read).run(test.inputs), compile(test.graph).run(test.inputs), {1e-4, 1e-4}), "");
  }
}

TEST(OnnxInternalOutputs, NodesThatHaveThemAreWrittenAsOthers) {
  expect_written_as_others(lstm_def(), 4);
  expect_written_as_others(gru_def(), 3);
}

TEST(OnnxInternalOutputs, AreLastOnesOfOpsThatHaveABodyToWrite) {
  for (const OpDef* op : all_ops()) {
    const size_t count = num_internal(*op);
    EXPECT_TRUE(count == 0 || op->decompose) << op->name;
    for (size_t k = op->outputs.size() - count; k < op->outputs.size(); ++k) {
      EXPECT_EQ(op->outputs[k].arity, Arity::internal) << op->name;
    }
  }
}

}  // namespace
}  // namespace autograph
