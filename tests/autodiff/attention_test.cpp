// The gradient of attention: in tiles where nothing else is asked for, which random calls of the ops cannot tell
// (rules_test.cpp draws those).
#include <gtest/gtest.h>

#include "autodiff/gradient_check.h"
#include "autograph/autodiff.h"
#include "autograph/compile.h"
#include "autograph/ops/attention.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/random.h"
#include "autograph/text.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"

namespace autograph {
namespace {

int count_nodes(const Graph& graph, const OpDef& op) {
  int count = 0;
  for (const NodeId id : graph.nodes()) count += &graph.node(id).op() == &op ? 1 : 0;
  return count;
}

struct Call {
  int64_t heads = 2, kv_heads = 2, queries = 3, keys = 4;
  bool packed = false;
  Dims mask = {};
  Attributes attributes = {};
};

// q, k, v and a mask that nobody wants a gradient of.
GradientCase make_case(Random& random, const Call& call) {
  const int64_t batch = 2, size = 3, value_size = 2;
  GradientCase test;
  test.graph = std::make_shared<Graph>("attention");
  test.is_f64 = true;
  std::vector<Var> inputs;
  const auto add = [&](int64_t heads, int64_t length, int64_t width) {
    const Dims dims = call.packed ? Dims{batch, length, heads * width} : Dims{batch, heads, length, width};
    const Tensor elements = draw_tensor(random, DType::f64, dims, -1, 1);
    test.inputs.emplace_back(elements);
    test.wanted.emplace_back(*test.graph, test.graph->add_input(elements.type()));
    inputs.push_back(test.wanted.back());
  };
  add(call.heads, call.queries, size);
  add(call.kv_heads, call.keys, size);
  add(call.kv_heads, call.keys, value_size);
  if (!call.mask.empty()) inputs.push_back(constant(*test.graph, draw_tensor(random, DType::boolean, call.mask, 0, 1)));
  Attributes attributes = call.attributes;
  if (call.packed) attributes.set("q_num_heads", call.heads);
  if (call.packed) attributes.set("kv_num_heads", call.kv_heads);
  test.outputs = {apply(attention_def(), inputs, attributes)};
  return test;
}

const std::vector<Call> kCalls{
    {},
    {.packed = true},
    {.heads = 4, .kv_heads = 2, .packed = true, .attributes = {{"is_causal", int64_t{1}}}},
    {.heads = 6, .kv_heads = 2, .mask = {2, 1, 3, 4}},
    {.mask = {3, 3}, .attributes = {{"softcap", 1.5F}, {"scale", 0.3F}}},
    {.packed = true, .attributes = {{"left_window_size", int64_t{1}}, {"right_window_size", int64_t{0}}}},
    {.queries = 1, .keys = 1},
};

TEST(AttentionGradient, InTilesAgreesWithDifferences) {
  Random random(1);
  for (const Call& call : kCalls) {
    for (int i = 0; i < 4; ++i) {
      GradientCase test = make_case(random, call);
      const std::string text = print_text(*test.graph);
      ASSERT_EQ(check_gradients(test, random, true), "") << text;
      EXPECT_GT(count_nodes(*test.graph, tiled_attention_def()), 0) << text;
    }
  }
}

// What the compiled step computes, against the reference.
TEST(AttentionGradient, CompiledAgreesWithTheReference) {
  Random random(2);
  for (const bool packed : {false, true}) {
    const int64_t heads = 4, length = 70, size = 16;
    GraphBuilder graph;
    std::vector<Datum> inputs;
    std::vector<Var> operands;
    for (int k = 0; k < 3; ++k) {
      const Dims dims = packed ? Dims{2, length, heads * size} : Dims{2, heads, length, size};
      inputs.emplace_back(draw_tensor(random, DType::f32, dims, -1, 1));
      operands.push_back(graph.input("x" + std::to_string(k), DType::f32, Shape::of(dims)));
    }
    AttentionOptions options{.is_causal = true};
    if (packed) options.q_num_heads = options.kv_num_heads = heads;
    const Var y = attention(operands[0], operands[1], operands[2], options);
    for (const Var& gradient : grad(reduce_sum(y * y), operands)) graph.output("", gradient);
    const Executable program = compile(graph.build());
    const std::vector<KernelChoice> choices = program.kernel_choices();
    EXPECT_TRUE(std::any_of(choices.begin(), choices.end(),
                            [](const auto& choice) { return choice.kernel == "cpu.tiled_attention_grad_simd"; }));
    const std::vector<Tensor> expected = interpret_tensors(graph.build(), inputs);
    const Outputs actual = program.run(inputs);
    for (size_t k = 0; k < expected.size(); ++k) {
      EXPECT_EQ(difference(actual[k], Datum(expected[k]), {.rtol = 1e-3, .atol = 1e-4}), "") << k;
    }
  }
}

// No tensor of the step is as large as the weights of all queries and keys.
TEST(AttentionGradient, KeepsNothingOfTheSizeOfAllWeights) {
  GraphBuilder graph;
  const int64_t length = 256, size = 8;
  std::vector<Var> operands;
  for (const char* name : {"q", "k", "v"}) operands.push_back(graph.input(name, DType::f32, {1, 1, length, size}));
  for (const Var& gradient : grad(reduce_sum(attention(operands[0], operands[1], operands[2])), operands)) {
    graph.output("", gradient);
  }
  Graph step = graph.build();
  step.erase_dead();
  for (const NodeId id : step.nodes()) {
    for (const ValueId output : step.node(id).outputs()) {
      EXPECT_LT(step.type(output).shape().num_elements().value(), length * length) << print_text(step);
    }
  }
  EXPECT_EQ(count_nodes(step, tiled_attention_def()), 1);
  EXPECT_EQ(count_nodes(step, attention_def()), 0);
}

// A mask that learns needs the weights.
TEST(AttentionGradient, OfMasksComesFromTheWeights) {
  GraphBuilder graph;
  const Var q = graph.input("q", DType::f32, {1, 2, 3, 4}), mask = graph.input("mask", DType::f32, {3, 3});
  const std::vector<Var> gradients = grad(reduce_sum(attention(q, q, q, {.mask = mask})), {mask});
  EXPECT_EQ(gradients[0].shape(), (Shape{3, 3}));
  EXPECT_EQ(count_nodes(graph.graph(), tiled_attention_def()), 0);
}

}  // namespace
}  // namespace autograph
