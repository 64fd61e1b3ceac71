// A module in a graph, on eager values line by line, and captured: what it gives, and the gradient of its input, are
// PyTorch's in all three.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "autograph/autodiff.h"
#include "autograph/capture.h"
#include "autograph/eager.h"
#include "nn/module_check.h"
#include "nn/torch_numbers.h"

namespace autograph::nn {

/// y of the inputs, and the gradient of the first one where cos(0.9 i) flows into element i of y.
inline std::vector<Var> with_slope(const std::vector<Var>& in, const EagerFunction& make) {
  const Var y = make(in)[0];
  Tensor weights = Tensor::empty(DType::f32, y.shape().static_dims());
  for (int64_t i = 0; i < weights.num_elements(); ++i) {
    weights.mutable_data<float>()[i] = static_cast<float>(std::cos(0.9 * static_cast<double>(i)));
  }
  return {y, vjp({y}, {constant_like(y, weights)}, {in[0]})[0]};
}

inline void expect_torchs(const std::string& what, const Tensor& x, const EagerFunction& make, const Dims& dims,
                          const TorchNumbers& y, const TorchNumbers& slope) {
  const EagerFunction both = [&](const std::vector<Var>& in) { return with_slope(in, make); };
  std::vector<std::vector<Tensor>> results{evaluate({x}, both)};
  Captured captured = capture(both);
  for (const EagerFunction& function : {both, EagerFunction(std::ref(captured))}) {
    results.emplace_back();
    for (const Var& result : function({variable(x)})) results.back().push_back(elements(result));
  }
  const char* ways[] = {"in a graph", "line by line", "captured"};
  for (size_t k = 0; k < results.size(); ++k) {
    SCOPED_TRACE(what + ", " + ways[k]);
    EXPECT_EQ(results[k][0].dims(), dims);
    expect_torchs(results[k][0], y);
    expect_torchs(results[k][1], slope);
  }
}

inline void expect_torchs(const std::string& what, Module& module, const Tensor& x, const Dims& dims,
                          const TorchNumbers& y, const TorchNumbers& slope) {
  expect_torchs(
      what, x, [&](const std::vector<Var>& in) { return std::vector<Var>{module(in[0])}; }, dims, y, slope);
}

}  // namespace autograph::nn
