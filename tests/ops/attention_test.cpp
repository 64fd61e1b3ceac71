// Attention and rotary embedding against values worked out by hand.
#include "autograph/ops/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograph/compile.h"
#include "ops/defs.h"
#include "ops/run_op.h"

namespace autograph {
namespace {

// One head, two queries, two keys, size 1: scores 0 everywhere, so that weights are the shares of visible keys.
struct Flat {
  Tensor q = Tensor::zeros(DType::f32, {1, 1, 2, 1});
  Tensor k = Tensor::zeros(DType::f32, {1, 1, 2, 1});
  Tensor v = Tensor::of<float>({1, 1, 2, 1}, {2, 4});
};

TEST(Attention, AveragesValuesOfEqualScores) {
  const Flat x;
  expect_near(run_op(attention_def(), {x.q, x.k, x.v}), {3, 3}, 1e-6);
}

TEST(Attention, CausalHidesLaterKeys) {
  const Flat x;
  expect_near(run_op(attention_def(), {x.q, x.k, x.v}, {{"is_causal", int64_t{1}}}), {2, 3}, 1e-6);
}

TEST(Attention, RowsThatSeeNoKeyAreZero) {
  const Flat x;
  const Tensor mask = Tensor::of<bool>({2, 2}, {false, false, false, true});
  expect_near(run_op(attention_def(), {x.q, x.k, x.v, mask}), {0, 4}, 1e-6);
}

TEST(Attention, MaskShorterThanTheKeysHidesTheRest) {
  const Flat x;
  expect_near(run_op(attention_def(), {x.q, x.k, x.v, Tensor::of<float>({1}, {0})}), {2, 2}, 1e-6);
}

TEST(Attention, PastComesFirstAndShiftsTheCausalFrontier) {
  const Flat x;
  const Tensor past = Tensor::of<float>({1, 1, 1, 1}, {0});
  const Tensor past_value = Tensor::of<float>({1, 1, 1, 1}, {8});
  const auto y =
      run_op_all(attention_def(), {x.q, x.k, x.v, Tensor(), past, past_value}, {{"is_causal", int64_t{1}}}, 3);
  expect_near(y[0], {5, 14.0 / 3}, 1e-6);
  expect_near(y[2], {8, 2, 4}, 0);
}

TEST(Attention, QueryHeadsShareKeyHeadsInOrder) {
  const Tensor q = Tensor::zeros(DType::f32, {1, 1, 4});  // packed: 4 heads of size 1
  const Tensor k = Tensor::zeros(DType::f32, {1, 1, 2});
  const Tensor v = Tensor::of<float>({1, 1, 2}, {1, 2});
  expect_near(run_op(attention_def(), {q, k, v}, {{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}}),
              {1, 1, 2, 2}, 0);
}

TEST(Attention, ShowsScoresAfterTheAskedStage) {
  const Tensor one = Tensor::of<float>({1, 1, 1, 1}, {2});
  const Attributes soft{{"scale", 1.0f}, {"softcap", 2.0f}};
  const double expected[] = {4, 2 * std::tanh(2.0), 2 * std::tanh(2.0) + 1, 1};
  for (int64_t mode = 0; mode < 4; ++mode) {
    Attributes attributes = soft;
    attributes.set("qk_matmul_output_mode", mode);
    const auto y = run_op_all(attention_def(), {one, one, one, Tensor::of<float>({1}, {1})}, attributes, 4);
    expect_near(y[3], {expected[mode]}, 1e-6);
  }
}

TEST(Attention, RejectsWhatDoesNotFit) {
  const Flat x;
  EXPECT_EQ(error_of(attention_def(), {x.q, x.k, x.v, Tensor(), x.k}),
            "[attention] past_key: must be given together with past_value");
  EXPECT_EQ(error_of(attention_def(), {x.q, x.k, x.v, Tensor::zeros(DType::f32, {3, 2})}),
            "[attention] attn_mask: [3,2] does not broadcast to [1,1,2,2]");
  EXPECT_EQ(error_of(attention_def(), {x.q, x.k, x.v, Tensor(), Tensor(), Tensor(), Tensor::vector({3})}),
            "[attention] nonpad_kv_seqlen: expected 0..2, got 3");
}

TEST(RotaryEmbedding, RotatesHalvesOrNeighbours) {
  const Tensor x = Tensor::of<float>({1, 1, 1, 4}, {1, 2, 3, 4});
  const Tensor cosines = Tensor::of<float>({1, 1, 2}, {0, 1});
  const Tensor sines = Tensor::of<float>({1, 1, 2}, {1, 0});
  expect_near(run_op(rotary_embedding_def(), {x, cosines, sines}), {-3, 2, 1, 4}, 1e-6);
  expect_near(run_op(rotary_embedding_def(), {x, cosines, sines}, {{"interleaved", int64_t{1}}}), {-2, 1, 3, 4}, 1e-6);
}

TEST(RotaryEmbedding, RejectsPositionsOutsideTheCache) {
  const Tensor x = Tensor::zeros(DType::f32, {1, 1, 1, 2});
  const Tensor cache = Tensor::zeros(DType::f32, {3, 1});
  EXPECT_EQ(error_of(rotary_embedding_def(), {x, cache, cache, Tensor::of<int64_t>({1, 1}, {3})}),
            "[rotary_embedding] position_ids: expected -3..2, got 3");
}

TEST(LinearAttention, DeltaRuleWritesWhatIsMissing) {
  const Tensor one = Tensor::of<float>({1, 2, 1}, {1, 1});
  const Tensor v = Tensor::of<float>({1, 2, 1}, {4, 8});
  const Tensor beta = Tensor::of<float>({1, 2, 1}, {0.5, 0.5});
  const auto y =
      run_op_all(linear_attention_def(), {one, one, v, Tensor(), Tensor(), beta},
                 {{"q_num_heads", int64_t{1}}, {"kv_num_heads", int64_t{1}}, {"update_rule", std::string("delta")}}, 2);
  expect_near(y[0], {2, 5}, 1e-6);
  expect_near(y[1], {5}, 1e-6);
}

// ---- flex_attention --------------------------------------------------------------------------------------------

// y = x <op> factor, the factor being captured.
GraphRef mod(const OpDef& op) {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->add_input(Type(DType::f32, Shape::of_rank(4)), "x");
  const ValueId factor = graph->add_input(Type(DType::f32, Shape{}), "factor");
  graph->add_output(graph->node(graph->add_node(op, {x, factor})).output(0), "y");
  return graph;
}

Tensor run_flex(const std::vector<Tensor>& inputs, Attributes attributes) {
  Graph graph;
  std::vector<ValueId> values;
  for (const Tensor& input : inputs) values.push_back(graph.add_input(input.type()));
  attributes.set("num_captures", static_cast<int64_t>(inputs.size()) - 3);
  graph.add_output(graph.node(graph.add_node(flex_attention_def(), values, attributes)).output(0));
  return compile(graph, {.device = "reference"}).run({inputs.begin(), inputs.end()})[0].tensor();
}

TEST(FlexAttention, WithoutModsIsAttention) {
  const Tensor q = Tensor::of<float>({1, 2, 1, 1}, {1, 2});
  const Tensor k = Tensor::of<float>({1, 1, 2, 1}, {0, 1});
  const Tensor v = Tensor::of<float>({1, 1, 2, 1}, {2, 4});
  EXPECT_NEAR(run_flex({q, k, v}, {}).to_f64()[1], run_op(attention_def(), {q, k, v}).to_f64()[1], 1e-6);
}

TEST(FlexAttention, ModsWorkBeforeAndAfterTheSoftmax) {
  const Flat x;
  const Tensor factor = Tensor::scalar(3.0F);
  const Tensor k = Tensor::of<float>({1, 1, 2, 1}, {0, 1});
  const Tensor q = Tensor::of<float>({1, 1, 2, 1}, {1, 1});
  expect_near(run_flex({x.q, x.k, x.v, factor}, {{"prob_mod", mod(mul_def())}}), {9, 9}, 1e-6);
  expect_near(run_flex({x.q, x.k, x.v, factor}, {{"score_mod", mod(add_def())}}), {3, 3}, 1e-6);
  const double weight = 1 / (1 + std::exp(-3.0));
  expect_near(run_flex({q, k, x.v, factor}, {{"score_mod", mod(mul_def())}}), {2 + 2 * weight, 2 + 2 * weight}, 1e-5);
}

TEST(FlexAttention, RefusesModsOfAnotherType) {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->add_input(Type(DType::f32, Shape::of_rank(4)), "x");
  graph->add_output(graph->node(graph->add_node(cast_def(), {x}, {{"to", DType::f64}})).output(0));
  const Flat flat;
  EXPECT_THROW(run_flex({flat.q, flat.k, flat.v}, {{"score_mod", GraphRef(graph)}}), TypeError);
  EXPECT_THROW(run_flex({flat.q, Tensor::zeros(DType::f32, {1, 1, 2, 2}), flat.v}, {}), ShapeError);
}

}  // namespace
}  // namespace autograph
