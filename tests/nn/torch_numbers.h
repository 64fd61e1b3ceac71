// Modules filled by a formula, so that what PyTorch computes with the same numbers can stand in a test.
//
// Element i of the k-th parameter is 0.4 sin(0.7 i + k + 1), element i of an input cos(1.3 i). Numbers in tests are
// those of PyTorch 2.1.2: the first elements of a result, its sum, and its sum weighted with sin(i).
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "autograph/nn/module.h"

namespace autograph::nn {

inline void fill_by_formula(Module& module) {
  const std::vector<Parameter*> parameters = module.parameters();
  for (size_t k = 0; k < parameters.size(); ++k) {
    Tensor value = Tensor::empty(DType::f32, parameters[k]->dims());
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      const double angle = 0.7 * static_cast<double>(i) + static_cast<double>(k) + 1;
      value.mutable_data<float>()[i] = static_cast<float>(0.4 * std::sin(angle));
    }
    parameters[k]->set_value(value);
  }
}

inline Tensor input_by_formula(const Dims& dims, double scale = 1) {
  Tensor value = Tensor::empty(DType::f32, dims);
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    value.mutable_data<float>()[i] = static_cast<float>(scale * std::cos(1.3 * static_cast<double>(i)));
  }
  return value;
}

/// What PyTorch gives.
struct TorchNumbers {
  std::vector<double> first;
  double sum = 0;
  double weighted = 0;
};

inline void expect_torchs(const Tensor& actual, const TorchNumbers& expected) {
  const std::vector<double> elements = actual.to_f64();
  double sum = 0, weighted = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    sum += elements[i];
    weighted += elements[i] * std::sin(static_cast<double>(i));
  }
  for (size_t i = 0; i < expected.first.size(); ++i) EXPECT_NEAR(elements[i], expected.first[i], 2e-5) << i;
  EXPECT_NEAR(sum, expected.sum, 2e-4);
  EXPECT_NEAR(weighted, expected.weighted, 2e-4);
}

}  // namespace autograph::nn
