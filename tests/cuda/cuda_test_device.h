// The CUDA device of tests: the stand-in for NVIDIA's driver, compiler and libraries.
#pragma once

#include <gtest/gtest.h>

#include "autograph/compile.h"
#include "autograph/devices.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/ml.h"
#include "cuda/standin/standin.h"

namespace autograph {

inline CompileOptions on_cuda() {
  CompileOptions options;
  options.device = "cuda";
  return options;
}

inline CompileOptions on_reference() {
  CompileOptions options;
  options.device = "reference";
  return options;
}

/// The second column of a matrix, found by the host: classic models have no kernels.
inline Var column_on_host(const Var& x) { return array_feature_extractor(x, constant_like(x, Tensor::vector({1}))); }

/// So many kernels, none of which is joined with another.
inline Var softmaxes(Var x, int count) {
  for (int k = 0; k < count; ++k) x = softmax(x, k % 2);
  return x;
}

/// A test at whose end nothing may have been done that must not be done with a driver.
class CudaTest : public testing::Test {
 protected:
  void SetUp() override { standin::take_misuses(); }
  void TearDown() override {
    EXPECT_EQ(testing::PrintToString(standin::take_misuses()), testing::PrintToString(std::vector<std::string>()));
  }
};

}  // namespace autograph
