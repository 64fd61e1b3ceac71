#include "optimize/passes/passes.h"

#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/sequence.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "autograph/verify.h"
#include "ops/sample.h"
#include "optimize/pass.h"
#include "support/compare.h"
#include "support/graphs/sample_graph.h"

namespace autograph {
namespace {

std::string scoped_origin(const Graph& graph, Var v) {
  return graph.node(graph.value(v.id()).producer()).provenance().to_string();
}

TEST(FoldConstants, ComputesNodesOfConstantsAndKeepsTheRest) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  graph.add_output(relu(x).id());
  graph.add_output(relu(relu(constant(graph, Tensor::of<float>({2}, {-1, 2})))).id());
  PassContext context;
  EXPECT_TRUE(fold_constants(graph, context));
  verify(graph);
  EXPECT_EQ(graph.num_nodes(), 1u);
  const Value& folded = graph.value(graph.outputs()[1]);
  ASSERT_TRUE(folded.is_constant());
  EXPECT_EQ(folded.constant().to_f64(), (std::vector<double>{0, 2}));
  EXPECT_FALSE(fold_constants(graph, context));
}

TEST(FoldConstants, FoldsTheShapesOfInputs) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  graph.add_output(reshape(x, slice(shape(reshape(x, std::vector<int64_t>{3, 2})), {0}, {2}, {0})).id());
  graph.add_output(shape(relu(input(graph, DType::f32, {Dim::symbol("n")}, "y"))).id());
  PassContext context;
  EXPECT_TRUE(fold_constants(graph, context));
  verify(graph);
  EXPECT_EQ(graph.num_nodes(), 3u);
  const Node& folded = graph.node(graph.value(graph.outputs()[0]).producer());
  EXPECT_EQ(graph.value(folded.input(1)).constant().to_i64(), (std::vector<int64_t>{3, 2}));
}

// Elements that inference keeps no track of, for there are many, say what the types behind them are.
TEST(FoldConstants, TypesFollowFromWhatWasComputed) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3000}, "x"), y = input(graph, DType::f32, {6000}, "y");
  const Var ones = add(constant(graph, Tensor::zeros(DType::i64, {3000})), constant(graph, Tensor::scalar(int64_t{1})));
  const Var extents = slice(concat({constant(graph, Tensor::vector({3, 2000})), ones}, 0), {0}, {2}, {0});
  graph.add_output(reshape(x, extents).id());
  graph.add_output(reshape(y, shape(x)).id());
  PassContext context;
  EXPECT_TRUE(fold_constants(graph, context));
  EXPECT_EQ(graph.num_nodes(), 2u);
  EXPECT_EQ(to_string(graph.type(graph.outputs()[0])), "f32[3,2000]");
  EXPECT_EQ(to_string(graph.type(graph.outputs()[1])), "f32[2,3000]");
  verify(graph);
}

TEST(FoldConstants, LeavesResultsAboveTheLimit) {
  Graph graph;
  graph.add_output(relu(constant(graph, Tensor::zeros(DType::f32, {64}))).id());
  PassContext context;
  context.max_folded_bytes = 0;
  // The result is as large as its input, so folding costs nothing.
  EXPECT_TRUE(fold_constants(graph, context));
}

// Else every run would dequantize them.
TEST(FoldConstants, ComputesWeightsAboveTheLimit) {
  for (const bool is_turned : {false, true}) {
    Graph graph;
    const Var x = input(graph, DType::f32, {2, 8}, "x");
    const Var q = constant(graph, Tensor::zeros(DType::u8, {8, 8})), scale = constant(graph, Tensor::scalar(2.0F));
    const Var w = apply(get_op("dequantize_linear"), {q, scale});
    graph.add_output(matmul(x, is_turned ? transpose(w, {1, 0}) : w).id());
    PassContext context;
    context.max_folded_bytes = 0;
    EXPECT_TRUE(fold_constants(graph, context));
    EXPECT_EQ(graph.num_nodes(), 1U);
  }
}

TEST(CommonSubexpressions, MergesEqualNodesAndTheirProvenance) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  std::vector<Var> branches;
  for (const char* name : {"left", "right"}) {
    const ProvenanceScope scope(name);
    branches.push_back(softmax(relu(x), 1));
  }
  const Var other = softmax(relu(x), 0);
  for (const Var& v : {branches[0], branches[1], other}) graph.add_output(v.id());
  PassContext context;
  EXPECT_TRUE(common_subexpressions(graph, context));
  verify(graph);
  EXPECT_EQ(graph.num_nodes(), 3u);
  EXPECT_EQ(graph.outputs()[0], graph.outputs()[1]);
  EXPECT_NE(graph.outputs()[0], graph.outputs()[2]);
  EXPECT_EQ(scoped_origin(graph, branches[0]), "left/softmax + right/softmax");
  EXPECT_FALSE(common_subexpressions(graph, context));
}

TEST(CommonSubexpressions, MergesEqualConstants) {
  Graph graph;
  for (int i = 0; i < 2; ++i) graph.add_output(relu(constant(graph, Tensor::of<float>({1}, {3}))).id());
  PassContext context;
  EXPECT_TRUE(common_subexpressions(graph, context));
  EXPECT_EQ(graph.constants().size(), 1u);
  EXPECT_EQ(graph.num_nodes(), 1u);
}

// conv -> batch normalization, with random weights and an epsilon of its own.
Graph conv_norm_graph(Random& random, bool with_bias, bool share_conv) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 4, 5, 5}, "x");
  const auto weight = [&](Dims dims, double low) {
    return constant(graph, draw_tensor(random, DType::f32, std::move(dims), low, 2.0));
  };
  const Var y =
      conv(x, weight({6, 2, 3, 3}, -2), with_bias ? weight({6}, -2) : Var(), {.pads = {1, 1, 1, 1}, .group = 2});
  const std::vector<Var> inputs{y, weight({6}, -2), weight({6}, -2), weight({6}, -2), weight({6}, 0.1)};
  graph.add_output(apply(get_op("batch_normalization"), inputs, {{"epsilon", 0.01f}}).id());
  if (share_conv) graph.add_output(y.id());
  return graph;
}

TEST(SpellOutBatchNorm, GivesAFactorAndASumPerChannel) {
  const OpDef& norm = get_op("batch_normalization");
  Random random(21);
  int changed = 0;
  for (int i = 0; i < 30; ++i) {
    OpSample sample = norm.sample(random);
    const TestGraph test = make_sample_graph(norm, sample, true);
    Graph before = test.graph;
    // Statistics are constants, as in a trained model.
    for (size_t k = 1; k < test.inputs.size(); ++k) {
      const ValueId input = before.inputs()[1];
      before.replace_uses(input, before.add_constant(test.inputs[k].tensor()));
      before.erase_value(input);
    }
    Graph after = before;
    PassContext context;
    if (!lower_batch_norm(after, context)) continue;
    ++changed;
    verify(after);
    CompileOptions options;
    options.device = "reference";
    options.expert.use_passes = false;
    const std::vector<Datum> x{test.inputs[0]};
    EXPECT_EQ(difference(compile(after, options).run(x), compile(before, options).run(x), {1e-4, 1e-4}), "");
  }
  EXPECT_GT(changed, 5);
}

TEST(FoldBatchNorm, ComputesTheSameWithoutTheNormalization) {
  Random random(3);
  for (int round = 0; round < 10; ++round) {
    const Graph before = conv_norm_graph(random, round % 2 == 0, false);
    Graph after = before;
    PassContext context;
    EXPECT_TRUE(fold_batch_norm(after, context));
    verify(after);
    EXPECT_EQ(after.num_nodes(), 1u);
    const std::vector<Datum> inputs{draw_tensor(random, DType::f32, {2, 4, 5, 5})};
    CompileOptions options;
    options.device = "reference";
    options.expert.use_passes = false;
    EXPECT_EQ(difference(compile(after, options).run(inputs), compile(before, options).run(inputs)), "");
  }
}

// Two convolutions (or one and its input) joined along `axis`, then normalised.
Graph joined_norm_graph(int64_t axis, bool both_are_convolutions) {
  Random random(9);
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 4, 5, 5}, "x");
  const auto weight = [&](Dims dims, double low) {
    return constant(graph, draw_tensor(random, DType::f32, std::move(dims), low, 2.0));
  };
  const Var left = conv(x, weight({4, 4, 1, 1}, -2), weight({4}, -2), {});
  const Var right = both_are_convolutions ? conv(x, weight({4, 4, 1, 1}, -2), Var(), {}) : x;
  const int64_t channels = axis == 1 ? 8 : 4;
  std::vector<Var> inputs{concat({left, right}, axis)};
  for (const double low : {-2.0, -2.0, -2.0, 0.1}) inputs.push_back(weight({channels}, low));
  graph.add_output(apply(get_op("batch_normalization"), inputs, {{"epsilon", 0.01f}}).id());
  return graph;
}

TEST(FoldBatchNorm, GoesIntoAllConvolutionsOfAConcat) {
  const Graph before = joined_norm_graph(1, true);
  Graph after = before;
  PassContext context;
  EXPECT_TRUE(fold_batch_norm(after, context));
  verify(after);
  EXPECT_EQ(after.num_nodes(), 3u);
  Random random(10);
  const std::vector<Datum> inputs{draw_tensor(random, DType::f32, {2, 4, 5, 5})};
  CompileOptions options;
  options.device = "reference";
  options.expert.use_passes = false;
  EXPECT_EQ(difference(compile(after, options).run(inputs), compile(before, options).run(inputs)), "");
  for (Graph untouched : {joined_norm_graph(1, false), joined_norm_graph(2, true)}) {
    EXPECT_FALSE(fold_batch_norm(untouched, context));
  }
}

TEST(FoldBatchNorm, LeavesStatisticsThatTakeTheWeightsOutOfRange) {
  const auto normed = [](float weight, float scale, float bias, float variance) {
    Graph graph;
    const Var x = input(graph, DType::f32, {1, 1, 4, 4}, "x");
    const auto vector = [&](float element) { return constant(graph, Tensor::of<float>({1}, {element})); };
    const Var y = conv(x, constant(graph, Tensor::of<float>({1, 1, 1, 1}, {weight})));
    const std::vector<Var> inputs{y, vector(scale), vector(bias), vector(0), vector(variance)};
    graph.add_output(apply(get_op("batch_normalization"), inputs, {{"epsilon", 0.0f}}).id());
    return graph;
  };
  PassContext context;
  for (const Graph& before : {normed(1e5F, 1e20F, 1, 1e-38F), normed(1, 1, 1, 0), normed(1, 1e-40F, 0, 1)}) {
    Graph after = before;
    EXPECT_FALSE(fold_batch_norm(after, context));
  }
  for (Graph after : {normed(1, 1, 1, 0), normed(1, 1e-40F, 0, 1)}) EXPECT_FALSE(lower_batch_norm(after, context));
  // A channel that training has given up, next to what is added to it.
  Graph dead = normed(1, 1e-40F, 0.5F, 1);
  EXPECT_TRUE(fold_batch_norm(dead, context));
}

TEST(FoldBatchNorm, LeavesAConvolutionThatIsReadElsewhere) {
  Random random(4);
  Graph graph = conv_norm_graph(random, true, true);
  PassContext context;
  EXPECT_FALSE(fold_batch_norm(graph, context));
}

TEST(FoldConstants, ThrowsTheOpsOwnErrorWhereAFoldedValueIsIllegal) {
  Graph graph;
  const Var delta = relu(constant(graph, Tensor::scalar(-1.f)));
  const Var start = constant(graph, Tensor::scalar(0.f));
  const Var end = constant(graph, Tensor::scalar(4.f));
  graph.add_output(apply(get_op("range"), {start, end, delta}).id());
  PassContext context;
  try {
    run_passes(graph, context);
    FAIL() << "accepted a range without step";
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("[range] delta: expected a number other than 0"), std::string::npos)
        << error.what();
  }
}

TEST(Decompose, ReplacesFunctionOpsWithoutAKernelAndKeepsTheirProvenance) {
  int replaced = 0;
  for (const OpDef* op : all_ops()) {
    if (!op->decompose || op->scalar || op->reference || op->evaluate) continue;
    Random random(5);
    TestGraph test = make_sample_graph(*op, op->sample(random));
    const NodeId node = test.graph.nodes()[0];
    test.graph.set_provenance(node, Provenance::named("origin"));
    PassContext keep;
    keep.has_kernel = [](const Graph&, NodeId) { return true; };
    EXPECT_FALSE(decompose(test.graph, keep)) << op->name;
    PassContext context;
    EXPECT_TRUE(decompose(test.graph, context)) << op->name;
    verify(test.graph);
    for (const NodeId id : test.graph.nodes()) {
      EXPECT_NE(&test.graph.node(id).op(), op);
      EXPECT_EQ(test.graph.node(id).provenance().to_string(), "origin") << op->name;
    }
    ++replaced;
  }
  EXPECT_GT(replaced, 0);
}

TEST(Decompose, KeepsWhatAKernelWillTakeOnceExtentsAreKnown) {
  const auto make = [](const Shape& shape) {
    Graph graph;
    const Var x(graph, graph.add_input(Type(DType::f32, shape), "x"));
    graph.add_output(apply(get_op("bias_gelu"), {x, input(graph, DType::f32, {3}, "bias")}).id());
    return graph;
  };
  PassContext context;
  context.has_kernel = [](const Graph&, NodeId) { return false; };
  context.expects_kernel = [](const Graph&, NodeId) { return true; };
  Graph open = make(Shape{Dim::symbol("n"), Dim(3)});
  EXPECT_FALSE(decompose(open, context));
  Graph known = make(Shape::of({2, 3}));
  EXPECT_TRUE(decompose(known, context));
}

TEST(EliminateIdentity, RemovesViewsThatKeepTheShape) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  const Var same = apply(get_op("identity"), {reshape(x, std::vector<int64_t>{2, 3})});
  graph.add_output(relu(same).id());
  graph.add_output(reshape(x, std::vector<int64_t>{3, 2}).id());
  PassContext context;
  EXPECT_TRUE(eliminate_identity(graph, context));
  verify(graph);
  EXPECT_EQ(graph.num_nodes(), 2u);
  EXPECT_EQ(graph.node(graph.value(graph.outputs()[0]).producer()).input(0), x.id());
  EXPECT_FALSE(eliminate_identity(graph, context));
}

TEST(EliminateIdentity, KeepsAReshapeOfUnknownEffect) {
  Graph graph;
  const Var x = input(graph, DType::f32, {Dim::unknown(), 3}, "x");
  graph.add_output(reshape(x, std::vector<int64_t>{-1, 3}).id());
  PassContext context;
  EXPECT_FALSE(eliminate_identity(graph, context));
}

TEST(DeadCode, ReportsWhetherItRemovedAnything) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  relu(x);
  graph.add_output(x.id());
  PassContext context;
  EXPECT_TRUE(dead_code(graph, context));
  EXPECT_FALSE(dead_code(graph, context));
}

TEST(Pipeline, RejectsUnknownPassNamesWithTheNearest) {
  Graph graph;
  PassContext context;
  PipelineOptions options;
  options.disabled = {"dead_cod"};
  try {
    run_passes(graph, context, options);
    FAIL() << "accepted an unknown pass";
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "[passes] name: no pass 'dead_cod' (did you mean 'dead_code'?)");
  }
}

TEST(Pipeline, TellsWhatEachPassDid) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var factor = exp(neg(constant(graph, Tensor::of<float>({2}, {0.0F, 1.0F}))));
  graph.add_output(relu(x * factor).id());
  PassContext context;
  std::vector<PassReport> changed;
  for (PassReport& report : run_passes(graph, context)) {
    EXPECT_TRUE(report.changed || report.ops.empty()) << report.name;
    if (report.changed) changed.push_back(std::move(report));
  }
  using Ops = std::vector<std::pair<std::string, int64_t>>;
  ASSERT_FALSE(changed.empty());
  EXPECT_EQ(changed[0].name, "fold_constants");
  EXPECT_EQ(changed[0].nodes, 2U);
  EXPECT_EQ(changed[0].ops, (Ops{{"exp", -1}, {"neg", -1}}));
  EXPECT_EQ(changed.size(), 1U);
}

TEST(Pipeline, TellsOfConstantsThatBecameOne) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const auto number = [&] { return constant(graph, Tensor::of<float>({2}, {0.5F, 1.5F})); };
  graph.add_output(add(mul(x, number()), number()).id());
  PassContext context;
  using Ops = std::vector<std::pair<std::string, int64_t>>;
  int told = 0;
  for (const PassReport& report : run_passes(graph, context)) {
    if (!report.changed) continue;
    ++told;
    EXPECT_EQ(report.name, "common_subexpressions");
    EXPECT_EQ(report.ops, (Ops{{"constant", -1}}));
  }
  EXPECT_EQ(told, 1);
}

TEST(Pipeline, TakesNodesWithoutInputs) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var list = sequence_insert(sequence_empty(graph), relu(x));
  graph.add_output(sequence_at(list, constant(graph, Tensor::scalar(int64_t{0}))).id());
  PassContext context;
  run_passes(graph, context);
  verify(graph);
  EXPECT_EQ(graph.num_nodes(), 4U);
}

TEST(Pipeline, RunsOnlyRequiredPassesWithoutOptimisation) {
  Graph graph;
  relu(input(graph, DType::f32, {2}, "x"));
  PassContext context;
  PipelineOptions options;
  options.use_passes = false;
  run_passes(graph, context, options);
  EXPECT_EQ(graph.num_nodes(), 1u);
  options.use_passes = true;
  options.disabled = {"dead_code"};
  run_passes(graph, context, options);
  EXPECT_EQ(graph.num_nodes(), 1u);
  options.disabled.clear();
  EXPECT_EQ(run_passes(graph, context, options).back().name, "dead_code");
  EXPECT_EQ(graph.num_nodes(), 0u);
}

}  // namespace
}  // namespace autograph
