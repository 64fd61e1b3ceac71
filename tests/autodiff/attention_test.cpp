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
  DType mask_dtype = DType::boolean;  // else it learns
  Attributes attributes = {};
  int64_t past = 0;                  // keys and values in a cache
  std::vector<int64_t> counts = {};  // of keys that are no padding
  int outputs = 1;
};

// q, k, v, the cache and a mask of floats are wanted.
GradientCase make_case(Random& random, const Call& call) {
  const int64_t batch = 2, size = 3, value_size = 2;
  GradientCase test;
  test.graph = std::make_shared<Graph>("attention");
  test.is_f64 = true;
  std::vector<Var> inputs;
  const auto add = [&](int64_t heads, int64_t length, int64_t width, bool packed) {
    const Dims dims = packed ? Dims{batch, length, heads * width} : Dims{batch, heads, length, width};
    const Tensor elements = draw_tensor(random, DType::f64, dims, -1, 1);
    test.inputs.emplace_back(elements);
    test.wanted.emplace_back(*test.graph, test.graph->add_input(elements.type()));
    inputs.push_back(test.wanted.back());
  };
  add(call.heads, call.queries, size, call.packed);
  add(call.kv_heads, call.keys, size, call.packed);
  add(call.kv_heads, call.keys, value_size, call.packed);
  inputs.emplace_back();
  if (!call.mask.empty() && call.mask_dtype == DType::boolean) {
    inputs.back() = constant(*test.graph, draw_tensor(random, DType::boolean, call.mask, 0, 1));
  } else if (!call.mask.empty()) {
    const Tensor elements = draw_tensor(random, call.mask_dtype, call.mask, -1, 1);
    test.inputs.emplace_back(elements);
    test.wanted.emplace_back(*test.graph, test.graph->add_input(elements.type()));
    inputs.back() = test.wanted.back();
  }
  if (call.past > 0) {
    add(call.kv_heads, call.past, size, false);
    add(call.kv_heads, call.past, value_size, false);
  }
  inputs.resize(6);
  if (!call.counts.empty()) inputs.push_back(constant(*test.graph, Tensor::of<int64_t>({batch}, call.counts)));
  Attributes attributes = call.attributes;
  if (call.packed) attributes.set("q_num_heads", call.heads);
  if (call.packed) attributes.set("kv_num_heads", call.kv_heads);
  test.outputs = apply_all(attention_def(), inputs, attributes, call.outputs);
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
    {.past = 2},
    {.heads = 4, .kv_heads = 2, .packed = true, .attributes = {{"is_causal", int64_t{1}}}, .past = 3, .outputs = 3},
    {.attributes = {{"left_window_size", int64_t{3}}, {"right_window_size", int64_t{0}}}, .past = 2},
    {.packed = true, .mask = {3, 6}, .past = 2, .outputs = 3},
    {.counts = {4, 2}},
    {.packed = true, .counts = {0, 3}, .outputs = 3},
    {.heads = 4, .kv_heads = 2, .mask = {2, 1, 3, 3}, .counts = {1, 4}},
    {.mask = {3, 1}, .mask_dtype = DType::f64, .attributes = {{"is_causal", int64_t{1}}}, .counts = {3, 4}},
    {.attributes = {{"left_window_size", int64_t{1}}, {"right_window_size", int64_t{1}}}, .counts = {3, 2}},
    {.heads = 4, .kv_heads = 2, .mask = {4, 3, 4}, .mask_dtype = DType::f64, .attributes = {{"softcap", 1.5F}}},
    {.packed = true, .mask = {2, 1, 3, 3}, .mask_dtype = DType::f64},
    {.mask = {3, 5}, .mask_dtype = DType::f64, .attributes = {{"is_causal", int64_t{1}}}, .past = 2},
};

TEST(AttentionGradient, InTilesAgreesWithDifferences) {
  Random random(1);
  for (const Call& call : kCalls) {
    for (int i = 0; i < 4; ++i) {
      GradientCase test = make_case(random, call);
      const std::string text = print_text(*test.graph);
      ASSERT_EQ(check_gradients(test, random, true), "") << text;
      EXPECT_GT(count_nodes(*test.graph, tiled_attention_def()), 0) << text;
      test.graph->erase_dead();
      EXPECT_EQ(count_nodes(*test.graph, attention_def()), 0) << text;
    }
  }
}

void expect_kernel_and_reference(const Graph& step, const std::vector<Datum>& inputs) {
  const Executable program = compile(step);
  const std::vector<KernelChoice> choices = program.kernel_choices();
  EXPECT_TRUE(std::any_of(choices.begin(), choices.end(),
                          [](const auto& choice) { return choice.kernel == "cpu.tiled_attention_grad_simd"; }));
  const std::vector<Tensor> expected = interpret_tensors(step, inputs);
  const Outputs actual = program.run(inputs);
  for (size_t k = 0; k < expected.size(); ++k) {
    EXPECT_EQ(difference(actual[k], Datum(expected[k]), {.rtol = 1e-3, .atol = 1e-4}), "") << k;
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
    expect_kernel_and_reference(graph.build(), inputs);
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

// Neither cached nor padded keys make it larger, and both have a kernel.
TEST(AttentionGradient, OfCachedAndPaddedKeysKeepsNoWeights) {
  Random random(3);
  const int64_t length = 256, size = 8;
  for (const bool is_padded : {false, true}) {
    GraphBuilder graph;
    std::vector<Var> operands;
    std::vector<Datum> inputs;
    const auto add = [&](int64_t extent) {
      inputs.emplace_back(draw_tensor(random, DType::f32, {2, 1, extent, size}, -1, 1));
      operands.push_back(graph.input("x" + std::to_string(operands.size()), DType::f32, {2, 1, extent, size}));
    };
    for (int k = 0; k < 3; ++k) add(length);
    std::vector<Var> given = operands;
    given.resize(is_padded ? 7 : 6);
    if (is_padded) given[6] = constant(graph.graph(), Tensor::of<int64_t>({2}, {200, 3}));
    for (size_t k = 4; !is_padded && k < 6; ++k) {
      add(5);
      given[k] = operands.back();
    }
    const Var y = apply(attention_def(), given, {{"is_causal", int64_t{!is_padded}}});
    for (const Var& gradient : grad(reduce_sum(y * y), operands)) graph.output("", gradient);
    Graph step = graph.build();
    step.erase_dead();
    for (const NodeId id : step.nodes()) {
      for (const ValueId output : step.node(id).outputs()) {
        EXPECT_LT(step.type(output).shape().num_elements().value(), length * length) << print_text(step);
      }
    }
    expect_kernel_and_reference(step, inputs);
  }
}

// What is as large as the weights is what flows into the mask, of all samples at once.
TEST(AttentionGradient, OfMasksIsSummedOverTheBatch) {
  Random random(4);
  for (const Dims& dims : {Dims{1, 4, 70, 70}, Dims{70, 60}, Dims{3, 1, 1, 70}, Dims{4, 1, 70}}) {
    GraphBuilder graph;
    std::vector<Var> operands;
    std::vector<Datum> inputs;
    for (const Dims& extents : {Dims{3, 4, 70, 8}, Dims{3, 2, 70, 8}, Dims{3, 2, 70, 8}, dims}) {
      inputs.emplace_back(draw_tensor(random, DType::f32, extents, -1, 1));
      operands.push_back(graph.input("x" + std::to_string(operands.size()), DType::f32, Shape::of(extents)));
    }
    const Var y = attention(operands[0], operands[1], operands[2], {.mask = operands[3], .is_causal = true});
    for (const Var& gradient : grad(reduce_sum(y * y), operands)) graph.output("", gradient);
    Graph step = graph.build();
    step.erase_dead();
    EXPECT_EQ(count_nodes(step, attention_def()), 0);
    expect_kernel_and_reference(step, inputs);
  }
}

}  // namespace
}  // namespace autograph
