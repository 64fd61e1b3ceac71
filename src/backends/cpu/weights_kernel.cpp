#include "backends/cpu/weights_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/cpu/machine/cache_sizes.h"
#include "runtime/memory/packed_constants.h"

namespace autograph {

KnownWeight KnownWeight::of(const KernelCall& call, size_t slot) {
  const Tensor* constant = call.constant(slot);
  return {static_cast<int>(slot), constant ? *constant : Tensor()};
}

PackedWeights::PackedWeights(PackedConstants* shared, const std::vector<KnownWeight>& weights, WeightForm form)
    : form_(std::move(form)) {
  std::vector<Tensor> elements;
  for (const KnownWeight& weight : weights) {
    inputs_.push_back(weight.input);
    elements.push_back(weight.elements);
  }
  pack(shared, elements, {});
  // Forms that are shared keep what they were made of; others let it be released.
  if (shared && weights.size() > 1) elements_ = std::move(elements);
}

bool PackedWeights::are_of(size_t slot) const {
  return std::find(inputs_.begin(), inputs_.end(), static_cast<int>(slot)) != inputs_.end();
}

bool PackedWeights::is_written(std::span<const StateContents> written) const {
  for (size_t slot = 0; slot < written.size(); ++slot) {
    if (written[slot].tensor.is_present() && are_of(slot)) return true;
  }
  return false;
}

bool PackedWeights::can_renew(std::span<const StateContents> written) const {
  return inputs_.size() == 1 || !elements_.empty() || !is_written(written);
}

void PackedWeights::renew(std::span<const StateContents> written, PackedConstants* shared) {
  if (!is_written(written)) return;
  std::vector<Tensor> elements = std::move(elements_);
  elements.resize(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] < 0) continue;
    const Tensor& now = written[static_cast<size_t>(inputs_[i])].tensor;
    if (now.is_present()) elements[i] = now;
  }
  pack(shared, elements, PackedConstants::take_back(shared, std::move(packed_)));
  if (elements.size() > 1) elements_ = std::move(elements);
}

void PackedWeights::pack(PackedConstants* shared, const std::vector<Tensor>& elements, Tensor room) {
  packed_ = PackedConstants::share(shared, elements, form_.name, [&] {
    Tensor to = room.is_present() ? std::move(room) : Tensor::empty(DType::f32, {form_.size});
    form_.pack(elements, to.mutable_data<float>());
    return to;
  });
}

bool WeightsKernel::renew(std::span<const StateContents> inputs, PackedConstants* packed) {
  // Of what is neither packed nor read it has made something else: a step of its epilogue.
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    const auto is_packed = [&](const PackedWeights& weights) { return weights.are_of(slot); };
    const bool is_known = reads_input(slot) || std::any_of(weights_.begin(), weights_.end(), is_packed);
    if (inputs[slot].tensor.is_present() && !is_known) return false;
  }
  const auto can_renew = [&](const PackedWeights& weights) { return weights.can_renew(inputs); };
  if (!std::all_of(weights_.begin(), weights_.end(), can_renew)) return false;
  for (PackedWeights& weights : weights_) weights.renew(inputs, packed);
  return true;
}

size_t WeightsKernel::weight_bytes() const {
  size_t bytes = 0;
  for (const PackedWeights& weights : weights_) bytes += weights.size_bytes();
  return bytes;
}

const PackedWeights& WeightsKernel::packed(const KernelCall& call, const std::vector<KnownWeight>& weights,
                                           WeightForm form) {
  return weights_.emplace_back(call.packed, weights, std::move(form));
}

const PackedWeights& WeightsKernel::padded(const KernelCall& call, const KnownWeight& bias, int64_t size) {
  return packed(call, {bias}, padded_form(size));
}

WeightForm padded_form(int64_t size) {
  const auto pad = [size](const std::vector<Tensor>& elements, float* to) {
    const int64_t given = elements[0].is_present() ? elements[0].num_elements() : 0;
    if (given > 0) std::copy_n(elements[0].data<float>(), given, to);
    std::fill_n(to + given, size - given, 0.0F);
  };
  return {fmt::format("padded {}", size), size, pad};
}

bool are_weights_near(const KernelCall& call, size_t bytes) {
  static const size_t kNear = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 0);
  return std::max(bytes, call.plan_constant_bytes) <= kNear;
}

}  // namespace autograph
