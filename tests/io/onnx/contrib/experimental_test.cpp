// Ops on trial and small contrib ops against their formulas.
#include <cmath>

#include "autograph/error.h"
#include "autograph/random.h"
#include "io/contrib_node.h"
#include "ops/sample.h"

namespace autograph::tests {
namespace {

using Numbers = std::vector<double>;

ContribNode on_trial(const std::string& op) { return ContribNode(op, ""); }

TEST(ContribExperimental, Functions) {
  const Tensor x = f32({3}, {-1, 0.5F, 2});
  expect_near(on_trial("Affine").input(x).set("alpha", 2.0F).set("beta", 1.0F).result(), {-1, 2, 5});
  expect_near(on_trial("Affine").input(x).result(), {-1, 0.5, 2});
  expect_near(on_trial("Scale").input(x).set("scale", 3.0F).result(), {-3, 1.5, 6});
  Numbers of_tanh, of_softplus;
  for (const double v : x.to_f64()) {
    of_tanh.push_back(1.7 * std::tanh(0.6 * v));
    of_softplus.push_back(1.7 * std::log1p(std::exp(0.6 * v)));
  }
  expect_near(on_trial("ScaledTanh").input(x).set("alpha", 1.7F).set("beta", 0.6F).result(), of_tanh);
  expect_near(on_trial("ParametricSoftplus").input(x).set("alpha", 1.7F).set("beta", 0.6F).result(), of_softplus);
}

TEST(ContribExperimental, Images) {
  const Tensor x = f32({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6});
  const std::vector<float> bias{10, 20};
  expect_near(on_trial("ImageScaler").input(x).set("scale", 2.0F).set("bias", bias).result(), {12, 14, 16, 28, 30, 32});
  const Tensor plane = f32({1, 1, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const auto cropped = [&](const std::vector<int64_t>& border) {
    return on_trial("Crop").input(plane).set("border", border);
  };
  expect_near(cropped({1, 0, 2, 1}).result(), {1, 5});
  expect_near(cropped({2, 1, 0, 0}).result(), {6, 7, 10, 11});
  expect_near(cropped({1, 1, 9, 9}).set("scale", std::vector<int64_t>{2, 2}).result(), {5, 6, 9, 10});
  EXPECT_THROW(cropped({1, 1}).result(), UnsupportedError);
}

TEST(ContribExperimental, ShapesAndDistances) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_near(on_trial("DynamicSlice").input(x).input(i64({1}, {1})).input(i64({1}, {3})).input(i64({1}, {1})).result(),
              {2, 3, 5, 6});
  EXPECT_EQ(ContribNode("ExpandDims").input(x).constant(i32({}, {-1})).result().dims(), (Dims{2, 3, 1}));
  EXPECT_THROW(ContribNode("ExpandDims").input(x).input(i32({}, {0})).result(), UnsupportedError);
  const Tensor other = f32({1, 3}, {1, 2, 7});
  expect_near(ContribNode("CDist").input(x).input(other).result(), {16, 19});
  expect_near(ContribNode("CDist").input(x).input(other).set("metric", "euclidean").result(), {4, std::sqrt(19.0)});
  EXPECT_THROW(ContribNode("CDist").input(x).input(other).set("metric", "cosine").result(), UnsupportedError);
}

}  // namespace
}  // namespace autograph::tests
