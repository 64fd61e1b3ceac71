#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr int64_t kBatch = 2, kLength = 5, kHeads = 3, kSize = 4, kWidth = kHeads * kSize;

Var number(Var x, double value) { return scalar_like(x, value); }

Var packed_input(Graph& graph, const std::string& name, int64_t width = kWidth) {
  return input(graph, DType::f32, {kBatch, kLength, width}, name);
}

// [batch, length, heads * size] -> [batch, heads, length, size].
Var split_heads(Var x, int64_t heads = kHeads) {
  return transpose(reshape(x, std::vector<int64_t>{kBatch, kLength, heads, -1}), {0, 2, 1, 3});
}

Var split_keys(Var x) {
  return transpose(reshape(x, std::vector<int64_t>{kBatch, kLength, kHeads, kSize}), {0, 2, 3, 1});
}

Var merge_heads(Var y) { return reshape(transpose(y, {0, 2, 1, 3}), std::vector<int64_t>{kBatch, kLength, -1}); }

struct Qkv {
  Var q, k, v;
};

Qkv inputs_of(Graph& graph) { return {packed_input(graph, "q"), packed_input(graph, "k"), packed_input(graph, "v")}; }

// The usual spelling; `scores` may change the scores before the softmax.
Graph usual(const std::function<Var(Var)>& scores) {
  Graph graph;
  const auto [q, k, v] = inputs_of(graph);
  const Var weights = softmax(scores(matmul(split_heads(q), split_keys(k))));
  graph.add_output(merge_heads(matmul(weights, split_heads(v))).id(), "y");
  return graph;
}

Var halved(Var scores) { return mul(scores, number(scores, 0.5)); }

void expect_packed(const Graph& graph, float scale, size_t num_inputs = 3) {
  const Node& node = only_node(graph);
  EXPECT_EQ(node.op().name, "attention");
  EXPECT_EQ(node.inputs().size(), num_inputs);
  for (size_t k = 0; k < 3; ++k) EXPECT_EQ(node.input(k), graph.inputs()[k]);
  EXPECT_EQ(node.attributes().integer("q_num_heads"), kHeads);
  EXPECT_FLOAT_EQ(node.attributes().real("scale"), scale);
}

TEST(FuseAttention, SwallowsTheHeadSplit) {
  expect_packed(after_pass(fuse_attention, usual(halved)), 0.5F);
  expect_packed(after_pass(fuse_attention, usual([](Var s) { return div(s, number(s, std::sqrt(4.0))); })), 0.5F);
  expect_packed(after_pass(fuse_attention, usual([](Var s) { return s; })), 1.0F);
}

TEST(FuseAttention, FindsTheScaleOnTheOperands) {
  for (const bool before_split : {true, false}) {
    Graph graph;
    auto [q, k, v] = inputs_of(graph);
    const auto quarter = [](Var x) { return mul(number(x, 0.25), x); };
    if (before_split) q = quarter(q);
    Var keys = before_split ? split_keys(quarter(k)) : quarter(split_keys(k));
    Var queries = before_split ? split_heads(q) : quarter(split_heads(q));
    graph.add_output(merge_heads(matmul(softmax(matmul(queries, keys)), split_heads(v))).id());
    expect_packed(after_pass(fuse_attention, graph), 0.0625F);
  }
}

TEST(FuseAttention, TakesKeysTransposedAfterTheSplit) {
  Graph graph;
  const auto [q, k, v] = inputs_of(graph);
  const Var keys = transpose(split_heads(k), {0, 1, 3, 2});
  graph.add_output(merge_heads(matmul(softmax(halved(matmul(split_heads(q), keys))), split_heads(v))).id());
  expect_packed(after_pass(fuse_attention, graph), 0.5F);
}

TEST(FuseAttention, AddsAMask) {
  for (const Dims& dims : {Dims{kBatch, 1, 1, kLength}, Dims{kLength, kLength}, Dims{1, kHeads, kLength, kLength}}) {
    Random random(5);
    const Tensor mask = draw_tensor(random, DType::f32, dims);
    for (const bool mask_first : {true, false}) {
      const Graph before = usual([&](Var s) {
        const Var m = constant(s.graph(), mask);
        return mask_first ? add(m, halved(s)) : add(halved(s), m);
      });
      expect_packed(after_pass(fuse_attention, before), 0.5F, 4);
    }
  }
}

TEST(FuseAttention, AddsUpSeveralMasks) {
  Random random(6);
  const Tensor bias = draw_tensor(random, DType::f32, {1, kHeads, kLength, kLength});
  const Tensor mask = draw_tensor(random, DType::f32, {kBatch, 1, 1, kLength});
  const Graph after = after_pass(fuse_attention, usual([&](Var s) {
                                   return add(add(halved(s), constant(s.graph(), bias)), constant(s.graph(), mask));
                                 }));
  // Two finite masks may add up to minus infinity: for such rows the model gives NaN, and attention 0.
  EXPECT_EQ(ops_of(after), "add reduce_max equal where attention");
}

// Keys up to the query are seen.
Tensor causal(bool seen) {
  std::vector<bool> elements;
  for (int64_t i = 0; i < kLength; ++i) {
    for (int64_t j = 0; j < kLength; ++j) elements.push_back((j <= i) == seen);
  }
  Tensor mask = Tensor::zeros(DType::boolean, {kLength, kLength});
  for (size_t i = 0; i < elements.size(); ++i) mask.mutable_data<bool>()[i] = elements[i];
  return mask;
}

TEST(FuseAttention, TakesConditionsAsMasks) {
  const auto selected = [](Tensor mask, bool hides, double hidden) {
    return usual([=](Var s) {
      const Var condition = constant(s.graph(), mask);
      const Var other = number(s, hidden);
      return hides ? where(condition, other, halved(s)) : where(condition, halved(s), other);
    });
  };
  const double infinite = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(ops_of(after_pass(fuse_attention, selected(causal(true), false, infinite))), "attention");
  EXPECT_EQ(ops_of(after_pass(fuse_attention, selected(causal(false), true, infinite))), "not attention");
  EXPECT_EQ(ops_of(after_pass(fuse_attention, selected(causal(true), false, -3.4e38))), "where attention");
  EXPECT_EQ(ops_of(after_pass(fuse_attention, selected(causal(false), true, -3.4e38))), "where attention");
  // -10 is a score like any other.
  expect_untouched(fuse_attention, selected(causal(true), false, -10));
}

// What the keys hide, and how: a bool mask as an input, of which two rows hide everything.
Tensor seen_keys(uint64_t seed) {
  Random random(seed);
  Tensor mask = draw_tensor(random, DType::boolean, {kBatch, 1, kLength, kLength});
  std::fill_n(mask.mutable_data<bool>() + 2 * kLength, 2 * kLength, false);
  return mask;
}

// Compares on given elements: after_pass() draws at random.
std::string difference_with_masks(const Graph& before) {
  Graph after = before;
  PassContext context = willing_device();
  EXPECT_TRUE(fuse_attention(after, context));
  after.erase_dead();
  verify(after);
  Random random(3);
  std::vector<Datum> inputs = random_inputs(before, random);
  for (size_t k = 3; k < inputs.size(); ++k) inputs[k] = seen_keys(k);
  CompileOptions plain;
  plain.device = "reference";
  plain.expert.use_passes = false;
  const std::vector<Datum> expected = compile(before, plain).run(inputs);
  const std::string difference_after = difference(compile(after, plain).run(inputs), expected);
  return difference_after.empty() ? difference(compile(before, {.threads = 1}).run(inputs), expected)
                                  : difference_after;
}

TEST(FuseAttention, GivesWhatTheModelGivesForRowsWithoutKeys) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double finite = std::numeric_limits<float>::lowest();
  using Masked = std::function<Var(Var, Var, double)>;
  const Masked select = [](Var s, Var seen, double hidden) { return where(seen, s, number(s, hidden)); };
  const Masked select_hidden = [](Var s, Var seen, double hidden) {
    return where(logical_not(seen), number(s, hidden), s);
  };
  const Masked pad = [](Var s, Var seen, double hidden) {
    return add(s, where(seen, number(s, 0), number(s, hidden)));
  };
  const auto mask_input = [](Var s, const char* name) {
    return input(s.graph(), DType::boolean, {kBatch, 1, kLength, kLength}, name);
  };
  for (const double first : {finite, -kInfinity, -1e4}) {
    for (const double second : {finite, -kInfinity}) {
      for (const Masked& inner : {select, select_hidden, pad}) {
        for (const Masked& outer : {select, select_hidden, pad}) {
          if (first == -1e4 && &inner != &pad) continue;  // a score like any other
          SCOPED_TRACE(testing::Message() << first << " then " << second);
          const auto both = [&](Var s) {
            return outer(inner(halved(s), mask_input(s, "a"), first), mask_input(s, "b"), second);
          };
          EXPECT_EQ(difference_with_masks(usual(both)), "");
        }
        if (first == -1e4) continue;
        const auto one = [&](Var s) { return inner(halved(s), mask_input(s, "a"), first); };
        EXPECT_EQ(difference_with_masks(usual(one)), "");
      }
    }
  }
}

TEST(FuseAttention, AddsMasksOfTwoPrecisions) {
  Graph graph;
  std::vector<Var> operands;
  for (const char* name : {"q", "k", "v"}) {
    operands.push_back(input(graph, DType::f16, {kBatch, kHeads, kLength, kSize}, name));
  }
  const Var scores = matmul(operands[0], transpose(operands[1], {0, 1, 3, 2}));
  const Var near = cast(add(scores, input(graph, DType::f16, {kLength, kLength}, "near")), DType::f32);
  const Var weights = softmax(add(near, input(graph, DType::f32, {kBatch, 1, 1, kLength}, "far")));
  graph.add_output(matmul(cast(weights, DType::f16), operands[2]).id());
  const Graph after = after_pass(fuse_attention, graph, true, {1e-2, 1e-2});
  EXPECT_NE(ops_of(after).find("attention"), std::string::npos) << ops_of(after);
}

TEST(FuseAttention, TakesSequencesWithoutPositions) {
  Graph graph;
  std::vector<Var> operands;
  for (const char* name : {"q", "k", "v"}) {
    const Var x = input(graph, DType::f32, {1, 0, kWidth}, name);
    operands.push_back(transpose(reshape(x, std::vector<int64_t>{1, -1, kHeads, kSize}), {0, 2, 1, 3}));
  }
  const Var scores = matmul(operands[0], transpose(operands[1], {0, 1, 3, 2}));
  const Var y = transpose(matmul(softmax(scores), operands[2]), {0, 2, 1, 3});
  graph.add_output(y.id());
  PassContext context = willing_device();
  Graph after = graph;
  if (fuse_attention(after, context)) verify(after);
  Random random(1);
  EXPECT_EQ(numeric_difference(graph, after, random), "");
}

TEST(FuseAttention, LeavesScalesThatOverflow) {
  Graph graph;
  const auto [q, k, v] = inputs_of(graph);
  const Var scores = mul(matmul(split_heads(q), split_keys(k)), number(q, 1e30));
  graph.add_output(merge_heads(matmul(softmax(scores), split_heads(v))).id());
  expect_untouched(fuse_attention, graph);
}

TEST(FuseAttention, CutsOneTensorWithAllThreeOnce) {
  // As timm writes it: [batch, length, 3, heads, size] -> [3, batch, heads, length, size].
  Graph graph;
  const Var qkv = packed_input(graph, "qkv", 3 * kWidth);
  const Var parts = transpose(reshape(qkv, std::vector<int64_t>{kBatch, kLength, 3, kHeads, kSize}), {2, 0, 3, 1, 4});
  const auto part = [&](int64_t i, bool by_slice) {
    if (!by_slice) return gather(parts, constant(graph, Tensor::scalar<int64_t>(i)), 0);
    return squeeze(slice(parts, {i}, {i + 1}, {0}), {0});
  };
  const Var keys = transpose(part(1, true), {0, 1, 3, 2});
  const Var weights = softmax(halved(matmul(part(0, false), keys)));
  graph.add_output(merge_heads(matmul(weights, part(2, false))).id());
  const Graph after = after_pass(fuse_attention, graph);
  EXPECT_EQ(ops_of(after), "split attention");
}

TEST(FuseAttention, CutsOneTensorThatTheModelUnbinds) {
  Graph graph;
  const Var qkv = packed_input(graph, "qkv", 3 * kWidth);
  const Var parts = transpose(reshape(qkv, std::vector<int64_t>{kBatch, kLength, 3, kHeads, kSize}), {2, 0, 3, 1, 4});
  std::vector<Var> heads;
  for (const Var& part : split(parts, {1, 1, 1}, 0)) heads.push_back(squeeze(part, {0}));
  const Var weights = softmax(halved(matmul(heads[0], transpose(heads[1], {0, 1, 3, 2}))));
  graph.add_output(merge_heads(matmul(weights, heads[2])).id());
  EXPECT_EQ(ops_of(after_pass(fuse_attention, graph)), "split attention");
}

TEST(FuseAttention, KeepsHeadsApartWhereTheyComeThatWay) {
  Graph graph;
  const Shape shape{kBatch, kHeads, kLength, kSize};
  const Var q = input(graph, DType::f32, shape, "q");
  const Var k = input(graph, DType::f32, shape, "k");
  const Var v = input(graph, DType::f32, shape, "v");
  const Var weights = softmax(halved(matmul(q, transpose(k, {0, 1, 3, 2}))));
  graph.add_output(merge_heads(matmul(weights, v)).id());
  const Graph after = after_pass(fuse_attention, graph);
  EXPECT_EQ(ops_of(after), "attention transpose reshape");
}

TEST(FuseAttention, LetsQueryHeadsShareKeys) {
  constexpr int64_t kKeyHeads = 2, kRepeats = 3, kAll = kKeyHeads * kRepeats;
  for (const bool repeats_inside : {true, false}) {
    Graph graph;
    const Var q = packed_input(graph, "q", kAll * kSize);
    const auto shared = [&](const std::string& name) {
      const Var heads = split_heads(packed_input(graph, name, kKeyHeads * kSize), kKeyHeads);
      const Var apart = unsqueeze(heads, {repeats_inside ? 2 : 1});
      const std::vector<int64_t> inside{kBatch, kKeyHeads, kRepeats, kLength, kSize};
      const std::vector<int64_t> outside{kBatch, kRepeats, kKeyHeads, kLength, kSize};
      const Var repeated = expand(apart, repeats_inside ? inside : outside);
      return reshape(repeated, std::vector<int64_t>{kBatch, kAll, kLength, kSize});
    };
    const Var keys = transpose(shared("k"), {0, 1, 3, 2});
    const Var weights = softmax(halved(matmul(split_heads(q, kAll), keys)));
    graph.add_output(merge_heads(matmul(weights, shared("v"))).id());
    const Graph after = after_pass(fuse_attention, graph);
    if (repeats_inside) {
      EXPECT_EQ(only_node(after).attributes().integer("kv_num_heads"), kKeyHeads);
    } else {
      // Heads in another order stay expanded.
      EXPECT_NE(ops_of(after).find("expand"), std::string::npos);
      EXPECT_NE(ops_of(after).find("attention"), std::string::npos);
    }
  }
}

TEST(FuseAttention, TakesBatchAndHeadsInOneExtent) {
  for (const bool with_mask : {true, false}) {
    Graph graph;
    const auto [q, k, v] = inputs_of(graph);
    const auto merged = [](Var x) {
      return reshape(split_heads(x), std::vector<int64_t>{kBatch * kHeads, kLength, kSize});
    };
    Var scores = halved(matmul(merged(q), transpose(merged(k), {0, 2, 1})));
    if (with_mask) {
      Random random(8);
      const Var mask = constant(graph, draw_tensor(random, DType::f32, {kBatch, 1, kLength, kLength}));
      const std::vector<int64_t> apart{kBatch, kHeads, kLength, kLength};
      scores = reshape(add(reshape(scores, apart), mask), std::vector<int64_t>{kBatch * kHeads, kLength, kLength});
    }
    const Var y = matmul(softmax(scores), merged(v));
    graph.add_output(merge_heads(reshape(y, std::vector<int64_t>{kBatch, kHeads, kLength, kSize})).id());
    const Graph after = after_pass(fuse_attention, graph);
    EXPECT_EQ(ops_of(after), "attention");
    EXPECT_EQ(only_node(after).attributes().integer("q_num_heads"), kHeads);
  }
}

TEST(FuseAttention, TakesHeadsFromTensorsWithTheLengthInFront) {
  // As torch's MultiheadAttention writes it: [length, batch, heads * size] -> [batch * heads, length, size] and on.
  Graph graph;
  std::vector<Var> operands;
  for (const char* name : {"q", "k", "v"}) {
    const Var x = input(graph, DType::f32, {kLength, kBatch, kWidth}, name);
    const Var merged = reshape(x, std::vector<int64_t>{kLength, kBatch * kHeads, kSize});
    operands.push_back(transpose(merged, {1, 0, 2}));
  }
  const std::vector<int64_t> apart{kBatch, kHeads, kLength, kSize};
  const Var keys = reshape(transpose(operands[1], {0, 2, 1}), std::vector<int64_t>{kBatch, kHeads, kSize, kLength});
  const Var weights = softmax(halved(matmul(reshape(operands[0], apart), keys)));
  const Var y = transpose(matmul(weights, reshape(operands[2], apart)), {2, 0, 1, 3});
  graph.add_output(reshape(y, std::vector<int64_t>{kLength, kBatch, kWidth}).id());
  const Graph after = after_pass(fuse_attention, graph);
  EXPECT_EQ(ops_of(after).find("matmul"), std::string::npos) << ops_of(after);
  EXPECT_NE(ops_of(after).find("attention"), std::string::npos) << ops_of(after);
}

TEST(FuseAttention, TransposesKeysThatAreNeverPerHead) {
  Graph graph;
  const Var q = input(graph, DType::f32, {kBatch, kHeads, kLength, kSize}, "q");
  const Var k = input(graph, DType::f32, {kBatch, kHeads, kSize, kLength}, "k");
  const Var v = input(graph, DType::f32, {kBatch, kHeads, kLength, kSize}, "v");
  graph.add_output(matmul(softmax(halved(matmul(q, k))), v).id());
  EXPECT_EQ(ops_of(after_pass(fuse_attention, graph)), "transpose attention");
}

TEST(FuseAttention, WorksOnSymbolicBatches) {
  Graph graph;
  const Dim batch = Dim::symbol("batch");
  std::vector<Var> operands;
  for (const char* name : {"q", "k", "v"}) {
    operands.push_back(input(graph, DType::f32, {batch, kLength, kWidth}, name));
  }
  const auto heads = [](Var x, const std::vector<int64_t>& perm) {
    return transpose(reshape(x, std::vector<int64_t>{0, 0, kHeads, kSize}), perm);
  };
  const Var scores = matmul(heads(operands[0], {0, 2, 1, 3}), heads(operands[1], {0, 2, 3, 1}));
  const Var y = matmul(softmax(scores), heads(operands[2], {0, 2, 1, 3}));
  graph.add_output(reshape(transpose(y, {0, 2, 1, 3}), std::vector<int64_t>{0, 0, kWidth}).id());
  PassContext context = willing_device();
  EXPECT_TRUE(fuse_attention(graph, context));
  graph.erase_dead();
  verify(graph);
  EXPECT_EQ(ops_of(graph), "attention");
}

TEST(FuseAttention, WorksOnSymbolicBatchesInOneExtentWithHeads) {
  Graph graph;
  const Dim batch = Dim::symbol("batch");
  std::vector<Var> operands;
  for (const char* name : {"q", "k", "v"}) {
    operands.push_back(input(graph, DType::f32, {batch, kHeads, kLength, kSize}, name));
  }
  const auto apart = [](Var x) { return reshape(x, std::vector<int64_t>{-1, kLength, kSize}); };
  const Var scores = matmul(apart(operands[0]), transpose(apart(operands[1]), {0, 2, 1}));
  graph.add_output(matmul(softmax(scores), apart(operands[2])).id());
  // The number of heads is not known from the operands alone: [3*batch, ...].
  PassContext context = willing_device();
  EXPECT_FALSE(fuse_attention(graph, context));
  verify(graph);
}

TEST(FuseAttention, TakesTheGuardAgainstRowsWithoutKeys) {
  Graph graph;
  const auto [q, k, v] = inputs_of(graph);
  const Var weights = softmax(halved(matmul(split_heads(q), split_keys(k))));
  const Var guarded = where(is_nan(weights), number(weights, 0), weights);
  graph.add_output(merge_heads(matmul(guarded, split_heads(v))).id());
  expect_packed(after_pass(fuse_attention, graph), 0.5F);
}

TEST(FuseAttention, KeepsBoolMasksBehindTheGuard) {
  Graph graph;
  const auto [q, k, v] = inputs_of(graph);
  const Var seen = input(graph, DType::boolean, {kBatch, 1, kLength, kLength}, "seen");
  const Var scores = halved(matmul(split_heads(q), split_keys(k)));
  const Var weights = softmax(where(seen, scores, number(scores, -std::numeric_limits<double>::infinity())));
  const Var guarded = where(is_nan(weights), number(weights, 0), weights);
  graph.add_output(merge_heads(matmul(guarded, split_heads(v))).id());
  EXPECT_EQ(ops_of(after_pass(fuse_attention, graph)), "attention");
  EXPECT_EQ(difference_with_masks(graph), "");
}

TEST(FuseAttention, GivesTheOriginsToAllNewNodes) {
  Graph graph;
  const auto [q, k, v] = inputs_of(graph);
  {
    const ProvenanceScope scope("layer");
    const Var weights = softmax(halved(matmul(split_heads(q), split_keys(k))));
    const Var merged = merge_heads(matmul(weights, split_heads(v)));
    graph.add_output(reshape(merged, std::vector<int64_t>{kBatch * kLength, kWidth}).id());
  }
  PassContext context = willing_device();
  ASSERT_TRUE(simplify_shapes(graph, context));
  ASSERT_TRUE(fuse_attention(graph, context));
  ASSERT_TRUE(simplify_shapes(graph, context));
  EXPECT_EQ(ops_of(graph), "attention reshape");
  for (const NodeId id : graph.nodes()) {
    EXPECT_NE(graph.node(id).provenance().to_string().find("layer/softmax"), std::string::npos);
  }
}

TEST(FuseAttention, LeavesValuesThatAreReadElsewhere) {
  for (const bool weights_as_output : {true, false}) {
    Graph graph;
    const auto [q, k, v] = inputs_of(graph);
    const Var scores = halved(matmul(split_heads(q), split_keys(k)));
    const Var weights = softmax(scores);
    graph.add_output(merge_heads(matmul(weights, split_heads(v))).id());
    graph.add_output(weights_as_output ? weights.id() : relu(scores).id());
    expect_untouched(fuse_attention, graph);
  }
}

TEST(FuseAttention, LeavesNearMisses) {
  // Another axis.
  Graph graph;
  {
    const auto [q, k, v] = inputs_of(graph);
    const Var weights = softmax(matmul(split_heads(q), split_keys(k)), -2);
    graph.add_output(merge_heads(matmul(weights, split_heads(v))).id());
    expect_untouched(fuse_attention, graph);
  }
  // A scale behind the mask, a negative scale, a mask with one column.
  const auto column = [](Var s) { return constant(s.graph(), Tensor::zeros(DType::f32, {kLength, 1})); };
  const auto row = [](Var s) { return constant(s.graph(), Tensor::zeros(DType::f32, {kLength})); };
  expect_untouched(fuse_attention, usual([&](Var s) { return halved(add(s, row(s))); }));
  expect_untouched(fuse_attention, usual([&](Var s) { return neg(s); }));
  expect_untouched(fuse_attention, usual([&](Var s) { return mul(s, number(s, -0.5)); }));
  expect_untouched(fuse_attention, usual([&](Var s) { return add(s, column(s)); }));
  // Weights on the right.
  Graph right;
  const Var x = input(right, DType::f32, {1, 1, 4, 4}, "x");
  right.add_output(matmul(x, softmax(matmul(x, x))).id());
  expect_untouched(fuse_attention, right);
}

TEST(FuseAttention, LeavesDoublesAndAsksForAKernel) {
  Graph doubles;
  const Var x = input(doubles, DType::f64, {1, 2, 4, 4}, "x");
  doubles.add_output(matmul(softmax(matmul(x, transpose(x, {0, 1, 3, 2}))), x).id());
  expect_untouched(fuse_attention, doubles);
  Graph graph = usual(halved);
  const size_t nodes = graph.num_nodes();
  PassContext context;
  EXPECT_FALSE(fuse_attention(graph, context));
  verify(graph);
  EXPECT_EQ(graph.num_nodes(), nodes);
}

}  // namespace
}  // namespace autograph
