#include "backends/cpu/onednn/conv/backward_cost.h"

namespace autograph::onednn {
namespace {

// Flops in a microsecond on a thread that an implementation reaches on layers that keep it busy; the first row whose
// name is part of its own counts.
struct Speed {
  std::string_view implementation;
  double blocked;
  double plain;  // row-major and channels-last
};
constexpr Speed kSpeeds[] = {{"jit_dw", 25e3, 20e3},     {"brgconv", 85e3, 85e3},  {"jit_1x1", 85e3, 60e3},
                             {"jit:avx512", 85e3, 60e3}, {"jit:avx2", 45e3, 35e3}, {"gemm", 30e3, 30e3},
                             {"jit:sse41", 15e3, 15e3}};
constexpr double kSlow = 5e3;

double speed_of(std::string_view implementation, Layout layout) {
  for (const Speed& row : kSpeeds) {
    if (implementation.find(row.implementation) == std::string_view::npos) continue;
    return channel_block(layout) > 1 ? row.blocked : row.plain;
  }
  return kSlow;
}

}  // namespace

double backward_cost_us(const OpCost& cost, std::string_view implementation, Layout layout, int threads) {
  constexpr double kBytesPerUs = 20e3;
  constexpr double kStartUs = 3;
  return kStartUs + cost.flops / (speed_of(implementation, layout) * threads) + cost.bytes / kBytesPerUs;
}

}  // namespace autograph::onednn
