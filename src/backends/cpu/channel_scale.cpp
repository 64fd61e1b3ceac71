#include "backends/cpu/channel_scale.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/defs.h"

namespace autograph {
namespace {

// Numbers, one for each channel of `output`, that are known?
bool is_of_channels(const Operand& operand, const Type& output) {
  const Tensor& numbers = operand.constant;
  if (!numbers.is_present() || !numbers.raw() || numbers.dtype() != DType::f32) return false;
  const Dims dims = output.shape().static_dims();
  const auto behind = static_cast<int64_t>(dims.size()) - 2;  // spatial dims
  const int64_t axis = numbers.rank() - 1 - behind;
  return dims[1] > 1 && axis >= 0 && numbers.num_elements() == dims[1] &&
         numbers.dims()[static_cast<size_t>(axis)] == dims[1];
}

// Factors that take no usual weight out of the range of f32, whose digits tiny numbers lack.
bool are_moderate(const Tensor& factors) {
  constexpr float kMost = 1e9F;
  return std::all_of(factors.data<float>(), factors.data<float>() + factors.num_elements(), [](float factor) {
    const float magnitude = std::fabs(factor);
    return factor == 0 || (magnitude <= kMost && magnitude >= 1 / kMost);
  });
}

}  // namespace

ChannelScale read_channel_scale(const AnchoredCall& conv) {
  ChannelScale scale;
  for (const EpilogueOp& op : conv.epilogue()) {
    if (op.operands.size() != 2 || !is_of_channels(other_operand(op), conv.output())) break;
    const Tensor& numbers = other_operand(op).constant;
    if (op.op == &mul_def() && scale.num_ops == 0 && are_moderate(numbers)) {
      scale.factors = numbers;
    } else if (op.op == &add_def() && !scale.shifts.is_present()) {
      scale.shifts = numbers;
    } else {
      break;
    }
    ++scale.num_ops;
  }
  return scale;
}

std::string ChannelScale::name() const {
  std::string name;
  if (factors.is_present()) name += " by " + to_string(factors.content_hash());
  if (shifts.is_present()) name += " and " + to_string(shifts.content_hash());
  return name;
}

Tensor ChannelScale::scaled(const Tensor& weights) const {
  if (!factors.is_present()) return weights;
  Tensor result = Tensor::empty(DType::f32, weights.dims());
  const int64_t row = weights.num_elements() / factors.num_elements();
  for (int64_t i = 0; i < weights.num_elements(); ++i) {
    result.mutable_data<float>()[i] = weights.data<float>()[i] * factors.data<float>()[i / row];
  }
  return result;
}

Tensor ChannelScale::shifted(const Tensor& bias) const {
  if (num_ops == 0) return bias;
  const int64_t channels = factors.is_present() ? factors.num_elements() : shifts.num_elements();
  Tensor result = Tensor::empty(DType::f32, {channels});
  for (int64_t c = 0; c < channels; ++c) {
    const float given = bias.is_present() ? bias.data<float>()[c] : 0.0F;
    const float factor = factors.is_present() ? factors.data<float>()[c] : 1.0F;
    result.mutable_data<float>()[c] = given * factor + (shifts.is_present() ? shifts.data<float>()[c] : 0.0F);
  }
  return result;
}

WeightForm ChannelScale::of_weights(WeightForm form) const {
  if (num_ops == 0) return form;
  form.name += name();
  form.pack = [scale = *this, pack = std::move(form.pack)](const std::vector<Tensor>& elements, float* to) {
    std::vector<Tensor> changed{scale.scaled(elements[0])};
    if (elements.size() > 1) changed.push_back(scale.shifted(elements[1]));
    pack(changed, to);
  };
  return form;
}

WeightForm ChannelScale::of_bias(int64_t size) const {
  WeightForm form = padded_form(size);
  if (num_ops == 0) return form;
  form.name += name();
  form.pack = [scale = *this, pad = std::move(form.pack)](const std::vector<Tensor>& elements, float* to) {
    pad({scale.shifted(elements[0])}, to);
  };
  return form;
}

}  // namespace autograph
