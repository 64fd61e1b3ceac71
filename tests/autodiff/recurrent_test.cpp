// The rule of LSTM layers as most are, in all directions, with and without biases and first states; what is left to the
// body is drawn by rules_test.cpp.
#include <gtest/gtest.h>

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

OpSample draw_layer(Random& random, const std::string& direction, int64_t length, bool has_more, int num_outputs) {
  const int64_t directions = direction == "bidirectional" ? 2 : 1, batch = 2, width = 3, hidden = 2;
  OpSample sample{.inputs = {}, .attributes = {{"direction", direction}}, .num_outputs = num_outputs};
  for (const Dims& dims : {Dims{length, batch, width}, Dims{directions, 4 * hidden, width},
                           Dims{directions, 4 * hidden, hidden}, Dims{directions, 8 * hidden}}) {
    sample.inputs.emplace_back(draw_tensor(random, DType::f64, dims, -1, 1));
  }
  if (!has_more) {
    sample.inputs.pop_back();
    return sample;
  }
  sample.inputs.emplace_back();
  for (int k = 0; k < 2; ++k) {
    sample.inputs.emplace_back(draw_tensor(random, DType::f64, {directions, batch, hidden}, -1, 1));
  }
  return sample;
}

TEST(LstmGradient, AgreesWithDifferences) {
  Random random(3);
  for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
    for (const int64_t length : {1, 3}) {
      for (const bool has_more : {false, true}) {
        for (const int num_outputs : {1, 3, 4}) {
          const GradientCase test =
              make_gradient_case(lstm_def(), draw_layer(random, direction, length, has_more, num_outputs));
          const std::string text = print_text(*test.graph);
          ASSERT_EQ(check_gradients(test, random), "") << text;
        }
      }
    }
  }
}

TEST(LstmGradient, KeepsTheLayerAndAddsOneOpForEachDirection) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {5, 2, 3});
  const Var w = graph.input("w", DType::f32, {2, 16, 3}), r = graph.input("r", DType::f32, {2, 16, 4});
  const Var y = lstm(x, w, r, {}, "bidirectional")[0];
  const std::vector<Var> gradients = grad(reduce_sum(y * y, {}, false), {x, w, r});
  EXPECT_EQ(count_nodes(x.graph(), lstm_gates_grad_def()), 2);
  EXPECT_EQ(count_nodes(x.graph(), scan_def()), 0);
  EXPECT_EQ(to_string(gradients[2].type()), "f32[2,16,4]");
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
