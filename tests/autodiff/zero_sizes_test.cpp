// Gradients of tensors without elements: those of the tensor have none either, those of weights beside it are 0.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "autograph/autodiff.h"
#include "autograph/compile.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/attention.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/loss.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/vision.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "ops/sample.h"

namespace autograph {
namespace {

Tensor drawn(Dims dims) {
  Random random(1);
  return draw_tensor(random, DType::f32, std::move(dims), 0.5, 1.5);
}

struct ZeroCase {
  std::string name;
  Dims x;
  std::vector<Dims> weights;
  std::function<Var(const Var& x, const std::vector<Var>& weights)> y;
};

using Vars = std::vector<Var>;

std::vector<ZeroCase> elementwise_and_reductions() {
  return {
      {"exp", {0, 3}, {}, [](const Var& x, const Vars&) { return exp(x); }},
      {"gelu", {3, 0}, {}, [](const Var& x, const Vars&) { return gelu(x); }},
      {"mul, broadcast", {0, 3}, {{3}}, [](const Var& x, const Vars& w) { return x * w[0]; }},
      {"mul, broadcast to nothing", {0, 1}, {{1, 3}}, [](const Var& x, const Vars& w) { return x / w[0]; }},
      {"where", {0, 3}, {{3}}, [](const Var& x, const Vars& w) { return where(less(x, w[0]), x, w[0]); }},
      {"softmax", {0, 3}, {}, [](const Var& x, const Vars&) { return softmax(x); }},
      {"log_softmax", {2, 0}, {}, [](const Var& x, const Vars&) { return log_softmax(x); }},
      {"reduce_sum", {0, 3}, {}, [](const Var& x, const Vars&) { return reduce_sum(x, {0}); }},
      {"reduce_sum_square", {3, 0}, {}, [](const Var& x, const Vars&) { return reduce_sum_square(x, {1}); }},
      {"reduce_l2", {0, 3}, {}, [](const Var& x, const Vars&) { return reduce_l2(x, {0}); }},
      {"reduce_prod", {0, 3}, {}, [](const Var& x, const Vars&) { return reduce_prod(x, {0}); }},
      {"reduce_max", {0, 3}, {}, [](const Var& x, const Vars&) { return reduce_max(x, {1}); }},
      {"cum_sum", {0, 3}, {}, [](const Var& x, const Vars&) { return cum_sum(x, 0); }},
  };
}

std::vector<ZeroCase> layers_and_moves() {
  return {
      {"matmul, no rows", {0, 3}, {{3, 2}}, [](const Var& x, const Vars& w) { return matmul(x, w[0]); }},
      {"matmul, no terms", {2, 0}, {{0, 3}}, [](const Var& x, const Vars& w) { return matmul(x, w[0]); }},
      {"matmul, no batch", {0, 2, 3}, {{3, 4}}, [](const Var& x, const Vars& w) { return matmul(x, w[0]); }},
      {"gemm", {0, 3}, {{3, 2}, {2}}, [](const Var& x, const Vars& w) { return gemm(x, w[0], w[1]); }},
      {"conv", {0, 2, 5, 5}, {{4, 2, 3, 3}}, [](const Var& x, const Vars& w) { return conv(x, w[0]); }},
      {"max_pool",
       {0, 2, 4, 4},
       {},
       [](const Var& x, const Vars&) {
         return max_pool(x, {.kernel = {2, 2}});
       }},
      {"average_pool",
       {0, 2, 4, 4},
       {},
       [](const Var& x, const Vars&) {
         return average_pool(x, {.kernel = {2, 2}});
       }},
      {"global_average_pool", {0, 2, 4, 4}, {}, [](const Var& x, const Vars&) { return global_average_pool(x); }},
      {"layer_normalization",
       {0, 4},
       {{4}, {4}},
       [](const Var& x, const Vars& w) { return layer_normalization(x, w[0], w[1]); }},
      {"rms_normalization", {0, 4}, {{4}}, [](const Var& x, const Vars& w) { return rms_normalization(x, w[0]); }},
      {"group_normalization",
       {0, 4, 3},
       {{4}, {4}},
       [](const Var& x, const Vars& w) { return group_normalization(x, w[0], w[1], 2); }},
      {"attention", {0, 2, 3, 4}, {}, [](const Var& x, const Vars&) { return attention(x, x, x); }},
      {"concat",
       {0, 3},
       {{2, 3}},
       [](const Var& x, const Vars& w) {
         return concat({x, w[0]}, 0);
       }},
      {"transpose",
       {0, 3},
       {},
       [](const Var& x, const Vars&) {
         return transpose(x, {1, 0});
       }},
      {"reshape",
       {0, 6},
       {},
       [](const Var& x, const Vars&) {
         return reshape(x, {0, 2, 3});
       }},
      {"slice", {0, 6}, {}, [](const Var& x, const Vars&) { return slice(x, {1}, {4}, {1}); }},
      {"pad",
       {0, 3},
       {},
       [](const Var& x, const Vars&) {
         return pad(x, {0, 1, 0, 2});
       }},
      {"tile",
       {0, 3},
       {},
       [](const Var& x, const Vars&) {
         return tile(x, {2, 2});
       }},
      {"expand",
       {0, 1},
       {},
       [](const Var& x, const Vars&) {
         return expand(x, {1, 3});
       }},
      {"einsum",
       {0, 3},
       {{3, 2}},
       [](const Var& x, const Vars& w) {
         return einsum("ij,jk->ik", {x, w[0]});
       }},
      {"prelu", {0, 3}, {{3}}, [](const Var& x, const Vars& w) { return prelu(x, w[0]); }},
      {"conv_transpose", {0, 2, 4}, {{2, 3, 3}}, [](const Var& x, const Vars& w) { return conv_transpose(x, w[0]); }},
      {"instance_normalization",
       {0, 2, 4},
       {{2}, {2}},
       [](const Var& x, const Vars& w) { return instance_normalization(x, w[0], w[1]); }},
      {"batch_normalization",
       {0, 2, 4},
       {{2}, {2}, {2}, {2}},
       [](const Var& x, const Vars& w) { return batch_normalization(x, w[0], w[1], w[2], w[3]); }},
      {"lp_pool", {0, 2, 4}, {}, [](const Var& x, const Vars&) { return lp_pool(x, 2, {.kernel = {2}}); }},
      {"lstm", {3, 0, 2}, {{1, 8, 2}, {1, 8, 2}}, [](const Var& x, const Vars& w) { return lstm(x, w[0], w[1])[0]; }},
      {"gru", {3, 0, 2}, {{1, 6, 2}, {1, 6, 2}}, [](const Var& x, const Vars& w) { return gru(x, w[0], w[1])[0]; }},
      {"resize",
       {0, 2, 4},
       {},
       [](const Var& x, const Vars&) {
         return resize(x, {1, 1, 2}, {{"mode", "linear"}});
       }},
      {"gather of no rows",
       {0, 3},
       {{5, 3}},
       [](const Var& x, const Vars& w) { return x + gather(w[0], constant_like(x, Tensor::of<int64_t>({0}, {}))); }},
  };
}

TEST(ZeroSizes, HaveGradientsOfZeroSizeAndWeightsBesideThemNone) {
  std::vector<ZeroCase> cases = elementwise_and_reductions();
  std::ranges::copy(layers_and_moves(), std::back_inserter(cases));
  for (const ZeroCase& test : cases) {
    SCOPED_TRACE(test.name);
    for (const char* device : {"reference", "cpu"}) {
      SCOPED_TRACE(device);
      GraphBuilder graph;
      const Var x = graph.input("x", DType::f32, Shape::of(test.x));
      std::vector<Var> wanted{x};
      std::vector<Datum> inputs{Tensor::zeros(DType::f32, test.x)};
      for (size_t k = 0; k < test.weights.size(); ++k) {
        wanted.push_back(graph.input("w" + std::to_string(k), DType::f32, Shape::of(test.weights[k])));
        inputs.push_back(drawn(test.weights[k]));
      }
      const Var y = test.y(x, std::vector<Var>(wanted.begin() + 1, wanted.end()));
      const std::vector<Var> gradients = grad(reduce_sum(y * y), wanted);
      Graph copy = graph.build();
      for (const Var& gradient : gradients) copy.add_output(gradient.id());
      CompileOptions options;
      options.device = device;
      const Outputs found = compile(copy, options).run(inputs);
      EXPECT_EQ(found[0].tensor().dims(), test.x);
      for (size_t k = 0; k < test.weights.size(); ++k) {
        const Tensor& gradient = found[k + 1].tensor();
        EXPECT_EQ(gradient.dims(), test.weights[k]);
        const std::vector<double> elements = gradient.to_f64();
        const bool reads_weight = test.name == "concat";  // 2 w
        EXPECT_TRUE(reads_weight || std::all_of(elements.begin(), elements.end(), [](double g) { return g == 0; }));
      }
    }
  }
}

}  // namespace
}  // namespace autograph
