// Random graphs of differentiable ops: their gradients against differences, and compiled for the processor against the
// reference implementations. AG_RANDOM_GRAPHS=5000 draws so many instead of the few that take seconds.
#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/gradient_check.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "autograph/text.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// Draws graphs whose values are all [rows, columns] or vectors of columns, and stay small.
class GraphDrawer {
 public:
  GraphDrawer(Random& random, DType dtype) : random_(random) {
    test.graph = std::make_shared<Graph>("random");
    test.is_f64 = dtype == DType::f64;
    rows_ = draw(random, 1, 4);
    columns_ = draw(random, 1, 4);
    for (const Dims& dims : {Dims{rows_, columns_}, Dims{columns_}, Dims{columns_, columns_}, Dims{rows_, 1}}) {
      const Tensor elements = draw_tensor(random, dtype, dims, -1, 1);
      const ValueId id = test.graph->add_input(elements.type(), "x" + std::to_string(test.wanted.size()));
      test.inputs.emplace_back(elements);
      test.wanted.emplace_back(*test.graph, id);
      values_.push_back(test.wanted.back());
    }
    values_.erase(values_.begin() + 2);  // square: for products
  }

  void add_nodes(int count) {
    for (int i = 0; i < count; ++i) values_.push_back(tame(draw_node()));
    test.outputs = {values_.back(), values_[values_.size() / 2]};
  }

  GradientCase test;

 private:
  const Var& any() { return values_[static_cast<size_t>(draw(random_, 0, static_cast<int64_t>(values_.size()) - 1))]; }
  const Var& square() { return test.wanted[2]; }
  Var matrix() { return any() + test.wanted[0]; }
  // Far from 0.
  Var positive() {
    const Var x = any();
    return x * x * 0.5 + 0.5;
  }
  // Values do not grow from node to node.
  static Var tame(const Var& x) { return x.rank() > 0 ? softsign(x * 0.5) * 2 : x; }

  Var draw_node() {
    switch (draw(random_, 0, 25)) {
      case 0: return any() + any();
      case 1: return any() - any();
      case 2: return any() * any();
      case 3: return any() / positive();
      case 4: return sin(any());
      case 5: return exp(any());
      case 6: return log(positive());
      case 7: return sqrt(positive());
      case 8: return tanh(any());
      case 9: return sigmoid(any());
      case 10: return gelu(any(), draw_bool(random_));
      case 11: return relu(any());
      case 12: return swish(any());
      case 13: return softmax(matrix());
      case 14: return log_softmax(matrix(), 0);
      case 15: return matmul(matrix(), square());
      case 16: return gemm(matrix(), square(), any(), {.alpha = 0.5F, .transpose_b = true});
      case 17: return reduce_mean(matrix(), {0}, false);
      case 18: return reduce_max(matrix(), {1});
      case 19: return reduce_log_sum_exp(matrix(), {1});
      case 20: return layer_normalization(matrix(), test.wanted[1], test.wanted[1]);
      case 21: return transpose(reshape(transpose(matrix(), {1, 0}), {columns_, rows_}), {1, 0});
      case 22: return slice(concat({matrix(), matrix()}, 0), {1}, {1 + rows_}, {0});
      case 23: return where(less(any(), any()), any(), any());
      case 24: return max({any(), any()});
      default: return pow(positive(), any());
    }
  }

  Random& random_;
  std::vector<Var> values_;
  int64_t rows_ = 0, columns_ = 0;
};

// Layer norms keep their statistics in f32, which differences in f64 see.
void use_wide_statistics(Graph& graph) {
  for (const NodeId id : graph.nodes()) {
    if (graph.node(id).attributes().contains("stash_type")) graph.set_attribute(id, "stash_type", DType::f64);
  }
}

TEST(RandomGraphs, GradientsAgreeWithDifferences) {
  const int graphs = number_of_graphs(1500);
  for (int seed = 0; seed < graphs; ++seed) {
    Random random(static_cast<uint64_t>(seed));
    GraphDrawer drawer(random, DType::f64);
    drawer.add_nodes(static_cast<int>(draw(random, 1, 12)));
    use_wide_statistics(*drawer.test.graph);
    const std::string text = print_text(*drawer.test.graph);
    ASSERT_EQ(check_gradients(drawer.test, random, seed % 8 == 0), "") << "seed " << seed << "\n" << text;
  }
}

TEST(RandomGraphs, CompiledGradientsAgreeWithTheReference) {
  const int graphs = number_of_graphs(300);
  for (int seed = 0; seed < graphs; ++seed) {
    Random random(static_cast<uint64_t>(10'000 + seed));
    GraphDrawer drawer(random, DType::f32);
    drawer.add_nodes(static_cast<int>(draw(random, 1, 12)));
    ASSERT_EQ(check_compiled_gradients(drawer.test), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace autograph
