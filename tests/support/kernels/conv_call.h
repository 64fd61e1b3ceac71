// A convolution as kernels are asked about it: for tests of what kernels cost.
#pragma once

#include <vector>

#include "autograph/kernel.h"
#include "autograph/op_def.h"

namespace autograph {

/// 32 -> 32 channels, 3x3, on 14x14 pixels, with known weights, on one thread.
struct ConvCall {
  Attributes attributes{{"group", int64_t{1}},
                        {"strides", std::vector<int64_t>{1, 1}},
                        {"dilations", std::vector<int64_t>{1, 1}},
                        {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                        {"auto_pad", std::string("NOTSET")}};
  std::vector<Type> inputs{Type(DType::f32, {1, 32, 14, 14}), Type(DType::f32, {32, 32, 3, 3})};
  std::vector<Type> outputs{Type(DType::f32, {1, 32, 14, 14})};
  std::vector<Tensor> constants{Tensor(), Tensor::zeros(DType::f32, {32, 32, 3, 3})};
  KernelCall call{get_op("conv"), attributes, inputs, outputs, constants, 1};

  /// All candidates of a catalog but those that stand by only.
  std::vector<KernelCandidate> candidates(const KernelCatalog& catalog) const {
    std::vector<KernelCandidate> list;
    for (const KernelCandidate& candidate : catalog.candidates(call).candidates) {
      if (candidate.variant.cost_us < kLastResortUs) list.push_back(candidate);
    }
    return list;
  }
};

}  // namespace autograph
