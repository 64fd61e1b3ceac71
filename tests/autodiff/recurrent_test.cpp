// The rules of recurrent layers as most are, in all directions, with and without biases and first states; what is left
// to the bodies is drawn by rules_test.cpp as well.
#include <gtest/gtest.h>

#include <utility>

#include "autodiff/gradient_check.h"
#include "autograph/autodiff.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/reduction.h"
#include "autograph/random.h"
#include "autograph/text.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

int count_nodes(const Graph& graph, const OpDef& op) {
  int count = 0;
  for (const NodeId id : graph.nodes()) count += &graph.node(id).op() == &op ? 1 : 0;
  return count;
}

struct Layer {
  const OpDef& op;
  int64_t gates;
  size_t states;  // first ones that it may be given
};

OpSample draw_layer(Random& random, const Layer& layer, const std::string& direction, int64_t length, bool has_more) {
  const int64_t directions = direction == "bidirectional" ? 2 : 1, batch = 2, width = 3, hidden = 2;
  const int64_t rows = layer.gates * hidden;
  OpSample sample{.inputs = {}, .attributes = {{"direction", direction}}, .num_outputs = 1};
  for (const Dims& dims : {Dims{length, batch, width}, Dims{directions, rows, width}, Dims{directions, rows, hidden},
                           Dims{directions, 2 * rows}}) {
    sample.inputs.emplace_back(draw_tensor(random, DType::f64, dims, -1, 1));
  }
  if (!has_more) {
    sample.inputs.pop_back();
    return sample;
  }
  sample.inputs.emplace_back();
  for (size_t k = 0; k < layer.states; ++k) {
    sample.inputs.emplace_back(draw_tensor(random, DType::f64, {directions, batch, hidden}, -1, 1));
  }
  return sample;
}

// Over directions, lengths, inputs and the numbers of outputs in `counts`.
void expect_differences(const Layer& layer, const Attributes& attributes, const std::vector<int>& counts) {
  Random random(3);
  for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
    for (const int64_t length : {1, 3}) {
      for (const bool has_more : {false, true}) {
        for (const int num_outputs : counts) {
          OpSample sample = draw_layer(random, layer, direction, length, has_more);
          for (const auto& [name, value] : attributes) sample.attributes.set(name, value);
          sample.num_outputs = num_outputs;
          const GradientCase test = make_gradient_case(layer.op, sample);
          const std::string text = print_text(*test.graph);
          ASSERT_EQ(check_gradients(test, random), "") << text;
        }
      }
    }
  }
}

TEST(LstmGradient, AgreesWithDifferences) { expect_differences({lstm_def(), 4, 2}, {}, {1, 3, 4}); }

TEST(GruGradient, AgreesWithDifferences) {
  for (const int64_t linear : {0, 1}) {
    SCOPED_TRACE(linear);
    expect_differences({gru_def(), 3, 1}, {{"linear_before_reset", linear}}, {1, 2, 3});
  }
}

TEST(RnnGradient, AgreesWithDifferences) { expect_differences({rnn_def(), 1, 1}, {}, {1, 2}); }

TEST(RnnGradient, TakesItsOwnFunctionByName) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {5, 2, 3});
  const Var w = graph.input("w", DType::f32, {1, 4, 3}), r = graph.input("r", DType::f32, {1, 4, 4});
  const Var y = apply_all(rnn_def(), {x, w, r}, {{"activations", std::vector<std::string>{"Tanh"}}}, 2)[0];
  grad(reduce_sum(y, {}, false), {w});
  EXPECT_EQ(count_nodes(x.graph(), rnn_gates_grad_def()), 1);
  EXPECT_EQ(count_nodes(x.graph(), scan_def()), 0);
}

// Nodes of `op` and scans in the graph of gradients of a layer of both directions.
std::pair<int, int> count_of_gradient(std::vector<Var> (*layer)(Var, Var, Var, Var, const std::string&), int64_t gates,
                                      const OpDef& op) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {5, 2, 3});
  const Var w = graph.input("w", DType::f32, {2, gates * 4, 3}), r = graph.input("r", DType::f32, {2, gates * 4, 4});
  const Var y = layer(x, w, r, {}, "bidirectional")[0];
  const std::vector<Var> gradients = grad(reduce_sum(y * y, {}, false), {x, w, r});
  EXPECT_EQ(gradients[2].type(), r.type());
  return {count_nodes(x.graph(), op), count_nodes(x.graph(), scan_def())};
}

TEST(RecurrentGradient, KeepsTheLayerAndAddsOneOpForEachDirection) {
  const std::pair<int, int> two_ops(2, 0);
  EXPECT_EQ(count_of_gradient(lstm, 4, lstm_gates_grad_def()), two_ops);
  EXPECT_EQ(count_of_gradient(gru, 3, gru_gates_grad_def()), two_ops);
  EXPECT_EQ(count_of_gradient(rnn, 1, rnn_gates_grad_def()), two_ops);
}

// Functions of their own, lengths, layouts and bounds are no matter of the rule.
TEST(GruGradient, LeavesOthersToTheBody) {
  const std::vector<std::pair<std::string, AttributeValue>> others = {
      {"activations", std::vector<std::string>{"HardSigmoid", "Softsign"}}, {"clip", 0.5F}, {"layout", int64_t{1}}};
  Random random(4);
  for (const auto& [name, value] : others) {
    OpSample sample = draw_layer(random, {gru_def(), 3, 1}, "forward", 3, false);
    sample.attributes.set(name, value);
    const GradientCase test = make_gradient_case(gru_def(), sample);
    EXPECT_EQ(check_gradients(test, random), "") << name;
  }
  OpSample sample = draw_layer(random, {gru_def(), 3, 1}, "reverse", 3, false);
  sample.inputs.resize(4);
  sample.inputs.emplace_back(Tensor::of<int32_t>({2}, {3, 1}));
  const GradientCase test = make_gradient_case(gru_def(), sample);
  EXPECT_EQ(check_gradients(test, random), "") << "sequence_lens";
}

// Peepholes are no matter of the rule: the scan that the layer stands for is differentiated.
TEST(LstmGradient, LeavesOthersToTheBody) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {5, 2, 3});
  const Var w = graph.input("w", DType::f32, {1, 16, 3}), r = graph.input("r", DType::f32, {1, 16, 4});
  const Var p = graph.input("p", DType::f32, {1, 12});
  const Var y = apply_all(lstm_def(), {x, w, r, {}, {}, {}, {}, p}, {}, 3)[0];
  grad(reduce_sum(y, {}, false), {p});
  EXPECT_EQ(count_nodes(x.graph(), lstm_gates_grad_def()), 0);
  EXPECT_EQ(count_nodes(x.graph(), scan_def()), 2);
}

}  // namespace
}  // namespace autograph
