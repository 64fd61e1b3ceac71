#include "backends/cpu/onednn/conv/conv_cost.h"

#include <algorithm>

#include "autograph/op_def.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "ops/defs.h"

namespace autograph::onednn {
namespace {

// Weights that oneDNN transforms in about 4 ms.
constexpr int64_t kMaxWinogradWeights = int64_t{9} * 128 * 128;

// Part of the peak that an implementation reaches on layers that keep it busy, counted in flops of the direct form.
// From
// `--tune` on some 110 layers of six networks (AVX-512 without AMX): how far behind the best of each layer an
// implementation is on average. What is not listed was slow everywhere.
struct Efficiency {
  std::string_view implementation;  // beginning of oneDNN's name
  double blocked;                   // also for row-major
  double channels_last;
};
constexpr double kSlow = 0.1;
constexpr Efficiency kPointwise[] = {
    {"brgconv_1x1", 0.72, 0.75}, {"jit_1x1", 0.73, 0.64}, {"jit:avx512", 0.53, 0.57}, {"x64:gemm", 0.58, kSlow}};
constexpr Efficiency kDepthwise[] = {{"jit_dw", 0.25, 0.29}, {"brdgmm_dw", 0.18, 0.18}};
// Where AVX2 is the best there is, beside our own loops (`bench_kernels conv`, `bench_kernels depthwise`).
constexpr Efficiency kAvx2Pointwise[] = {
    {"jit_1x1:avx2", 0.72, 0.75}, {"jit_1x1", 0.3, 0.3}, {"x64:gemm", 0.58, kSlow}};
constexpr Efficiency kAvx2Depthwise[] = {{"jit_dw:avx2", 0.6, 0.6}, {"jit_dw", 0.25, 0.29}};
constexpr Efficiency kOther[] = {{"jit_fp32_wino_2x3", 0.78, 0.78}, {"jit_wino_4x3", 0.70, 0.70},
                                 {"brgconv", 0.81, 0.81},           {"jit:avx512", 0.67, 0.61},
                                 {"jit:avx2", 0.45, 0.39},          {"jit:sse41", 0.3, 0.25}};
constexpr double kSlowDepthwise = 0.008;  // gemm, for each channel by itself

template <size_t size>
double look_up(const Efficiency (&table)[size], std::string_view implementation, Layout layout, double otherwise) {
  for (const Efficiency& row : table) {
    if (!implementation.starts_with(row.implementation)) continue;
    return layout == Layout::channels_last ? row.channels_last : row.blocked;
  }
  return otherwise;
}

bool is_gemm(std::string_view implementation) { return implementation.find("gemm:") != std::string_view::npos; }
bool is_winograd(std::string_view implementation) { return implementation.find("wino") != std::string_view::npos; }

// gemm computes an epilogue other than relu one element at a time.
bool is_slow_gemm(const AnchoredCall& conv, std::string_view implementation) {
  if (!is_gemm(implementation)) return false;
  const auto& epilogue = conv.epilogue();
  return epilogue.size() > 1 || (epilogue.size() == 1 && epilogue[0].op != &relu_def());
}

// What brgconv reaches of its best where it has few sums at a time, or few input channels for each.
double brgconv_part(const AnchoredCall& conv, std::string_view implementation) {
  if (!implementation.starts_with("brgconv")) return 1;
  const Dims w = conv.dims(1);
  constexpr int64_t kFewOut = 16, kFewIn = 4;
  return (w[0] <= kFewOut ? 0.85 : 1) * (w[1] <= kFewIn ? 0.85 : 1);
}

bool has_avx2_at_best() {
  return native_block() == Layout::blocked8 && dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx2;
}

double efficiency(const AnchoredCall& conv, std::string_view implementation, Layout layout) {
  const int64_t group = conv.attributes().integer("group");
  const Dims w = conv.dims(1);
  if (group > 1 && group == conv.dims(0)[1]) {
    return has_avx2_at_best() ? look_up(kAvx2Depthwise, implementation, layout, kSlowDepthwise)
                              : look_up(kDepthwise, implementation, layout, kSlowDepthwise);
  }
  if (is_slow_gemm(conv, implementation)) return kSlow;
  const bool is_pointwise = std::all_of(w.begin() + 2, w.end(), [](int64_t extent) { return extent == 1; });
  if (is_pointwise) {
    return has_avx2_at_best() ? look_up(kAvx2Pointwise, implementation, layout, kSlow)
                              : look_up(kPointwise, implementation, layout, kSlow);
  }
  if (is_winograd(implementation) && conv.operand(1).type.shape().num_elements().value_or(0) > kMaxWinogradWeights)
    return kSlow;
  return look_up(kOther, implementation, layout, kSlow) * brgconv_part(conv, implementation);
}

// How much of its last vector of output channels a layer fills, and of input channels where these are transformed, too:
// the rest is computed as well.
double filled_part(const AnchoredCall& conv, std::string_view implementation) {
  if (conv.attributes().integer("group") != 1 || is_gemm(implementation)) return 1;
  const int64_t block = native_block() == Layout::blocked16 ? 16 : 8;
  const auto filled = [&](int64_t channels) {
    const int64_t blocks = (channels + block - 1) / block;
    return static_cast<double>(channels) / static_cast<double>(blocks * block);
  };
  const Dims w = conv.dims(1);
  if (!is_winograd(implementation)) return filled(w[0]);
  // Products at points take as long to begin as some more input channels.
  constexpr double kDepthToStart = 4;
  const auto depth = static_cast<double>(w[1]);
  return filled(w[0]) * filled(w[1]) * depth / (depth + kDepthToStart);
}

// How much longer weights take to come where a pixel or two are all that they are multiplied with: brgconv does not
// fetch them ahead.
double waiting(const AnchoredCall& conv, std::string_view implementation) {
  constexpr int64_t kFewPixels = 2;
  if (!implementation.starts_with("brgconv_1x1")) return 1;
  const int64_t pixels = conv.output().shape().num_elements().value_or(0) / std::max<int64_t>(1, conv.dims(1)[0]);
  return pixels <= kFewPixels ? 1.1 : 1;
}

}  // namespace

double conv_cost_us(const AnchoredCall& conv, const OpCost& cost, std::string_view implementation, Layout layout,
                    int threads, double speedup) {
  constexpr double kFlopsPerUsAndThread = 130e3;
  constexpr double kBytesPerUs = 20e3;
  constexpr double kStartUs = 3;
  const double compute = cost.flops / (kFlopsPerUsAndThread * speedup * threads *
                                       efficiency(conv, implementation, layout) * filled_part(conv, implementation));
  return (kStartUs + compute + cost.bytes / kBytesPerUs) * waiting(conv, implementation);
}

}  // namespace autograph::onednn
