// Kernels of our own that pack weights which are known when they are prepared, and pack them again in the same place
// when they were written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/anchored_call.h"
#include "runtime/packing_kernel.h"

namespace autograph {

/// A weight as a kernel is given it.
struct KnownWeight {
  int input = -1;   ///< Of the call; -1: a constant of a body, which nobody writes.
  Tensor elements;  ///< Absent where it is not given.

  /// Input `slot` of a call.
  static KnownWeight of(const KernelCall& call, size_t slot);
  /// An operand of an anchor.
  static KnownWeight of(const Operand& operand) { return {operand.input, operand.constant}; }
};

/// How floats are made of weights.
struct WeightForm {
  std::string name;  ///< With all that the floats depend on besides the weights: who has the same shares them.
  int64_t size = 0;
  /// Makes them of the elements of all weights, in order. The kernel keeps it.
  std::function<void(const std::vector<Tensor>& elements, float* to)> pack;
};

/// A bias, which may be absent, and zeros up to `size` floats.
WeightForm padded_form(int64_t size);

/// Floats that were made of some weights.
class PackedWeights {
 public:
  PackedWeights(PackedConstants* shared, const std::vector<KnownWeight>& weights, WeightForm form);

  const float* data() const { return packed_->data<float>(); }
  size_t size_bytes() const { return packed_->size_bytes(); }
  /// Is input `slot` of the call one of the weights?
  bool are_of(size_t slot) const;
  /// Are the elements of all weights known, where these were written?
  bool can_renew(std::span<const StateContents> written) const;
  /// Packs what was written, where the old form lies unless somebody else holds that, too.
  void renew(std::span<const StateContents> written, PackedConstants* shared);

 private:
  bool is_written(std::span<const StateContents> written) const;
  void pack(PackedConstants* shared, const std::vector<Tensor>& elements, Tensor room);

  WeightForm form_;
  std::vector<int> inputs_;       // of the call, by weight
  std::vector<Tensor> elements_;  // by weight, for when another one is written; empty: they are not kept for that
  std::shared_ptr<const Tensor> packed_;
};

/// Does the second cache hold `bytes` of weights from one run to the next? It does where it has room for all of the
/// plan.
bool are_weights_near(const KernelCall& call, size_t bytes);

/// A kernel that has made nothing of its inputs but packed weights. What its runs read it takes as it comes.
class WeightsKernel : public PackingKernel {
 public:
  bool renew(std::span<const StateContents> inputs, PackedConstants* packed) final;
  size_t weight_bytes() const override;

 protected:
  /// Packed weights, as they are from now on.
  const PackedWeights& packed(const KernelCall& call, const std::vector<KnownWeight>& weights, WeightForm form);
  /// In padded_form().
  const PackedWeights& padded(const KernelCall& call, const KnownWeight& bias, int64_t size);

 private:
  std::deque<PackedWeights> weights_;  // stay where they are
};

}  // namespace autograph
