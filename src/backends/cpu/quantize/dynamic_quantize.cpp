// dynamic_quantize_linear: the range of x, then its bytes. Each number equals the reference's: every step is the same
// f32 arithmetic, in an order that changes nothing.
#include "backends/cpu/quantize/dynamic_quantize.h"

#include <array>

#include "backends/cpu/multiversion.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"

namespace autograph {
namespace {

constexpr int kMaxThreads = 64;

struct Range {
  float low = 0, high = 0;
};

// NaN is passed over: it compares false.
AG_MULTIVERSION void find_range(const float* x, int64_t count, Range* range) {
  float low = 0, high = 0;
#pragma omp simd reduction(min : low) reduction(max : high)
  for (int64_t i = 0; i < count; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  *range = {low, high};
}

// Adding and taking off 1.5 * 2^23 rounds to the nearest whole number, ties to even; quotients are small, or infinite
// or NaN. NaN becomes 0.
AG_MULTIVERSION void quantize(const float* x, int64_t count, float scale, float zero, uint8_t* y) {
  constexpr float kRounding = 12582912.0F;
  for (int64_t i = 0; i < count; ++i) {
    const float whole = (x[i] / scale + kRounding) - kRounding;
    float v = whole + zero;
    v = v > 0.0F ? v : 0.0F;
    v = v < 255.0F ? v : 255.0F;
    y[i] = static_cast<uint8_t>(static_cast<int32_t>(v));
  }
}

class DynamicQuantizeKernel : public Kernel {
 public:
  explicit DynamicQuantizeKernel(const KernelCall& call)
      : count_(call.inputs[0].shape().num_elements().value()),
        threads_(std::min(useful_threads(call.threads, count_), kMaxThreads)) {}

  void run(const KernelArgs& args) const override {
    const auto* x = args.inputs[0].data<float>();
    std::array<Range, kMaxThreads> ranges;
    for_shares(threads_, count_, [&](int64_t begin, int64_t end, int thread) {
      find_range(x + begin, end - begin, &ranges[static_cast<size_t>(thread)]);
    });
    Range range;
    for (const Range& part : ranges) {
      range.low = std::min(range.low, part.low);
      range.high = std::max(range.high, part.high);
    }
    const float scale = (range.high == range.low ? 1.0F : range.high - range.low) / 255.0F;
    uint8_t zero = 0;
    const float shift = -range.low;
    quantize(&shift, 1, scale, 0.0F, &zero);
    auto* y = args.outputs[0].mutable_data<uint8_t>();
    for_shares(threads_, count_, [&](int64_t begin, int64_t end, int) {
      quantize(x + begin, end - begin, scale, static_cast<float>(zero), y + begin);
    });
    if (args.outputs.size() > 1 && args.outputs[1].is_present()) args.outputs[1].mutable_data<float>()[0] = scale;
    if (args.outputs.size() > 2 && args.outputs[2].is_present()) args.outputs[2].mutable_data<uint8_t>()[0] = zero;
  }

 private:
  const int64_t count_;
  const int threads_;
};

std::string why_not(const KernelCall&) { return ""; }

Prepared prepare(const KernelCall& call) { return {std::make_unique<DynamicQuantizeKernel>(call), ""}; }

}  // namespace

KernelDef dynamic_quantize_kernel() {
  return {
      .name = "cpu.dynamic_quantize", .op = dynamic_quantize_linear_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph
