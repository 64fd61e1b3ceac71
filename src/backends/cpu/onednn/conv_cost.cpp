#include "backends/cpu/onednn/conv_cost.h"

#include "autograph/op_def.h"

namespace autograph::onednn {
namespace {

// Weights that oneDNN transforms in about 4 ms.
constexpr int64_t kMaxWinogradWeights = int64_t{9} * 128 * 128;

// Part of the peak that an implementation reaches on layers that keep it busy.
double efficiency(const AnchoredCall& conv, std::string_view implementation) {
  const int64_t group = conv.attributes().integer("group");
  const bool is_depthwise = group > 1 && group == conv.dims(0)[1];
  if (is_depthwise) return implementation.find("dw") != std::string_view::npos ? 0.3 : 0.02;
  if (implementation.find("wino") != std::string_view::npos) {
    if (conv.operand(1).type.shape().num_elements().value_or(0) > kMaxWinogradWeights) return 0.3;
    return 1.25;  // counted in flops of the direct form
  }
  if (implementation.find("brg") != std::string_view::npos) return 0.75;
  if (implementation.find("gemm") != std::string_view::npos) return 0.1;  // and slow to start
  return 0.8;
}

}  // namespace

double conv_cost_us(const AnchoredCall& conv, std::string_view implementation, int threads) {
  constexpr double kFlopsPerUsAndThread = 130e3;
  constexpr double kBytesPerUs = 20e3;
  constexpr double kStartUs = 3;
  const KernelCall anchor = conv.anchor_call(threads);
  const OpCost cost = cost_of(conv.op(), {conv.attributes(), anchor.inputs, anchor.outputs});
  const double compute = cost.flops / (kFlopsPerUsAndThread * threads * efficiency(conv, implementation));
  return kStartUs + compute + cost.bytes / kBytesPerUs;
}

}  // namespace autograph::onednn
