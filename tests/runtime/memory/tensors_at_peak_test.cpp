// Who owns the peak of memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/train.h"
#include "ops/defs.h"

namespace autograph {
namespace {

CompileOptions as_it_stands() {
  CompileOptions options;
  options.device = "reference";
  options.expert.use_passes = false;
  return options;
}

size_t sum_of(const std::vector<PeakTensor>& tensors) {
  size_t bytes = 0;
  for (const PeakTensor& tensor : tensors) bytes += tensor.bytes;
  return bytes;
}

// x -> big -> small, and big is read again at the end: at the peak both products of big are there.
TEST(TensorsAtPeak, NamesMakersAndLastReaders) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {64, 64});
  const auto named = [&](const char* name, const auto& make) {
    const ProvenanceScope scope(name);
    return make();
  };
  const Var kept = named("kept", [&] { return matmul(x, x); });
  const Var first = named("first", [&] { return matmul(kept, x); });
  const Var second = named("second", [&] { return matmul(first, first); });
  graph.output("y", named("last", [&] { return matmul(second, kept); }));
  const Executable program = compile(graph.build(), as_it_stands());
  const std::vector<PeakTensor> tensors = program.memory_at_peak();
  ASSERT_EQ(tensors.size(), 3U);
  EXPECT_EQ(sum_of(tensors), program.memory().lower_bound_bytes);
  const auto kept_at = std::find_if(tensors.begin(), tensors.end(),
                                    [](const PeakTensor& tensor) { return tensor.node == "kept/matmul"; });
  ASSERT_NE(kept_at, tensors.end());
  EXPECT_EQ(kept_at->type, "f32[64,64]");
  EXPECT_EQ(kept_at->op, "matmul");
  EXPECT_EQ(kept_at->last_reader, "last/matmul");
  EXPECT_EQ(kept_at->bytes, 64U * 64 * 4);
}

// Exporters of PyTorch write the line of the model into each node.
TEST(TensorsAtPeak, TellTheLineThatMadeThem) {
  Graph graph;
  const ValueId x = graph.add_input(Type(DType::f32, Shape{64, 64}), "x");
  const auto square = [&](ValueId of, const char* name, const char* place) {
    return graph.node(graph.add_node(matmul_def(), {of, of}, {}, {.provenance = Provenance::named(name, place)}))
        .output(0);
  };
  graph.add_output(square(square(x, "inner", "model.py:7"), "outer", "model.py:8"), "y");
  const std::vector<PeakTensor> tensors = compile(graph, as_it_stands()).memory_at_peak();
  EXPECT_TRUE(std::any_of(tensors.begin(), tensors.end(), [](const PeakTensor& tensor) {
    return tensor.node == "inner (model.py:7)";
  })) << (tensors.empty() ? "" : tensors[0].node);
}

// What the forward pass keeps for the backward pass.
TEST(TensorsAtPeak, OfATrainingStepLeadToGradients) {
  GraphBuilder graph("deep");
  Var x = graph.input("x", DType::f32, {4096, 4});
  const Var weight = graph.state("weight", Tensor::zeros(DType::f32, {4, 4}));
  for (int i = 0; i < 4; ++i) {
    const ProvenanceScope scope("layer" + std::to_string(i));
    x = tanh(matmul(x, weight));
  }
  minimize(reduce_mean(x, {}, false), {weight}, Sgd{});
  const Executable program = compile(graph.build(), as_it_stands());
  const std::vector<PeakTensor> tensors = program.memory_at_peak();
  EXPECT_GE(sum_of(tensors), program.memory().lower_bound_bytes);
  EXPECT_LE(sum_of(tensors), program.memory().arena_bytes);
  EXPECT_TRUE(std::is_sorted(tensors.begin(), tensors.end(),
                             [](const PeakTensor& a, const PeakTensor& b) { return a.bytes > b.bytes; }));
  EXPECT_TRUE(std::any_of(tensors.begin(), tensors.end(), [](const PeakTensor& tensor) {
    return tensor.node == "layer0/tanh" && tensor.last_reader.find("gradient/layer0") != std::string::npos;
  }));
}

}  // namespace
}  // namespace autograph
