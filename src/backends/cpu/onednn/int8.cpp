// oneDNN adds the bias to the accumulator, multiplies by a scale per channel, adds the scaled residual, clips, rounds
// to even, adds the zero point and saturates. We fold the scale of the output into all of them. The result is that of
// the definition up to one step of the output: scales are rounded to f32 once more, so that a value which lies within a
// few 2^-24 of its size from the middle between two steps may go to the other one.
//
// Without VNNI oneDNN multiplies pairs of bytes into 16 bits, where 2 * 255 * w overflows for |w| > 64. There we take
// only weights that are known to be smaller (quantizers call that a reduced range), and only u8 on the left: for i8 it
// would halve the weights to make room.
#include "backends/cpu/onednn/int8.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/quantize/integer_cost.h"

namespace autograph {

bool has_vnni() {
  static const bool kHasVnni = [] {
    const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
    for (const dnnl::cpu_isa with : {dnnl::cpu_isa::avx512_core_vnni, dnnl::cpu_isa::avx512_core_bf16,
                                     dnnl::cpu_isa::avx512_core_amx, dnnl::cpu_isa::avx2_vnni}) {
      if (isa == with) return true;
    }
    return false;
  }();
  return kHasVnni;
}

namespace onednn {
namespace {

constexpr int kMaxWeightWithoutVnni = 64;
// Integers up to here are exact in f32, by way of which oneDNN writes them.
constexpr double kExactInFloat = 1 << 24;

// Largest sum of |w| over what one output element reads, and the largest |w|.
std::pair<double, int> magnitudes(const QuantizedCall& call, const Tensor& weights) {
  int64_t inner = 1;
  for (size_t a = call.channel_axis_of_weights() + 1; a < call.w_dims.size(); ++a) inner *= call.w_dims[a];
  std::vector<double> sums(static_cast<size_t>(call.num_channels()), 0.0);
  int largest = 0;
  const int8_t* w = weights.data<int8_t>();
  for (int64_t i = 0; i < weights.num_elements(); ++i) {
    const int magnitude = std::abs(static_cast<int>(w[i]));
    sums[static_cast<size_t>(i / inner % call.num_channels())] += magnitude;
    largest = std::max(largest, magnitude);
  }
  return {*std::max_element(sums.begin(), sums.end()), largest};
}

// Do the sums of two products, which instructions before VNNI keep in 16 bits, fit there?
bool fits_without_vnni(const QuantizedCall& call) {
  const Tensor weights = call.signed_weights();
  return call.x.dtype == DType::u8 && weights.is_present() && magnitudes(call, weights).second <= kMaxWeightWithoutVnni;
}

std::string why_not_on_this_cpu(const QuantizedCall& call) {
  if (has_vnni() || fits_without_vnni(call)) return "";
  if (call.x.dtype != DType::u8) return "i8 on the left on a CPU without VNNI";
  return "a CPU without VNNI, where sums of bytes may overflow: needs weights known to lie in [-64, 64]";
}

// i32 results must be exact.
std::string why_not_exact(const QuantizedCall& call) {
  if (call.y.dtype != DType::i32) return "";
  const Tensor weights = call.signed_weights();
  if (!weights.is_present()) return "sums that must be exact, of weights that are not known";
  const int low = call.x.dtype == DType::u8 ? 0 : -128;
  const int reach = std::max(std::abs(low - call.x.zero), std::abs(low + 255 - call.x.zero));
  if (magnitudes(call, weights).first * reach <= kExactInFloat) return "";
  return "sums of more than 24 bits";
}

}  // namespace

std::optional<QuantizedCall> read_int8(const KernelCall& call, std::string& why_not) {
  auto read = QuantizedCall::read(call, why_not);
  if (!read) return std::nullopt;
  why_not = read->why_not_signed_weights();
  if (why_not.empty()) why_not = why_not_on_this_cpu(*read);
  if (why_not.empty()) why_not = why_not_exact(*read);
  if (!why_not.empty()) return std::nullopt;
  return read;
}

dnnl::primitive_attr int8_attributes(const QuantizedCall& call, size_t channel_axis, Use use) {
  dnnl::primitive_attr attributes = new_attributes(use);
  std::vector<float> scales = call.scale;
  for (float& s : scales) s /= call.y.scale;
  const bool per_channel = scales.size() > 1;
  if (per_channel || scales[0] != 1.0F) attributes.set_output_scales(per_channel ? 1 << channel_axis : 0, scales);
  if (call.x.zero != 0) attributes.set_zero_points(DNNL_ARG_SRC, 0, {call.x.zero});
  if (call.y.zero != 0) attributes.set_zero_points(DNNL_ARG_DST, 0, {call.y.zero});
  dnnl::post_ops post_ops;
  if (call.residual) post_ops.append_sum(call.residual->scale / call.y.scale, 0, data_type_of(call.residual->dtype));
  if (call.is_clipped()) {
    const float low = call.low / call.y.scale;
    const float high = call.high / call.y.scale;
    if (low == 0 && std::isinf(high)) {
      post_ops.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0, 0);
    } else {
      post_ops.append_eltwise(1.0F, dnnl::algorithm::eltwise_clip, low, high);
    }
  }
  attributes.set_post_ops(post_ops);
  return attributes;
}

Tensor int8_bias(const QuantizedCall& call) {
  const float shift = call.residual ? static_cast<float>(call.residual->zero) * call.residual->scale : 0.0F;
  if (call.bias.empty() && shift == 0) return {};
  std::vector<float> bias(static_cast<size_t>(call.num_channels()), -shift);
  for (size_t c = 0; c < bias.size(); ++c) {
    if (!call.bias.empty()) bias[c] += call.bias[c];
    bias[c] /= call.scale[call.scale.size() > 1 ? c : 0];
  }
  return Tensor::of<float>({call.num_channels()}, bias);
}

Argument int8_weights(const QuantizedCall& call, const dnnl::memory::desc& given, const dnnl::memory::desc& wanted) {
  return {DNNL_ARG_WEIGHTS, false, static_cast<size_t>(call.w), given, wanted, call.signed_weights()};
}

std::vector<KernelVariant> integer_gemm_variants(const KernelCall& call) {
  // Both sides are packed in each run. With tiles (AMX) not measured: by the rates of the instructions.
  const bool has_tiles = dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::avx512_core_amx;
  return integer_kernel_variants(call, has_tiles ? 800e3 : 200e3);
}

bool may_overflow(const QuantizedCall& call, std::string_view implementation) {
  return implementation.find("uni_int8") != std::string_view::npos && !fits_without_vnni(call);
}

double int8_speedup(std::string_view implementation) {
  if (implementation.find("amx") != std::string_view::npos) return 8;
  if (implementation.find("vnni") != std::string_view::npos) return 3;
  if (implementation.find("ref") != std::string_view::npos) return 0.02;
  return implementation.find("gemm") != std::string_view::npos ? 0.7 : 2.1;
}

}  // namespace onednn
}  // namespace autograph
