// Contrib ops of images in ONNX Runtime's own layouts.
//
// com.ms.internal.nhwc: the ops of the main domain with channels last, weights as ever.
#include "io/onnx/contrib/body.h"

namespace autograph::io {
namespace {

// The first input and the outputs have their channels last.
template <const std::string_view& kOp>
std::vector<Var> transposed(ContribCall& call) {
  const OpDef& op = get_op(kOp);
  std::vector<Var> inputs;
  for (const Param& param : op.inputs) inputs.push_back(call[param.name]);
  inputs[0] = channels_first(call, inputs[0]);
  return {channels_last(call, apply(op, inputs, call.attributes()))};
}

constexpr std::string_view kConv = "conv";
constexpr std::string_view kConvTranspose = "conv_transpose";
constexpr std::string_view kMaxPool = "max_pool";
constexpr std::string_view kAveragePool = "average_pool";
constexpr std::string_view kGlobalAveragePool = "global_average_pool";
constexpr std::string_view kGlobalMaxPool = "global_max_pool";

}  // namespace

std::vector<ContribOp> contrib_channels_last() {
  constexpr std::string_view kDomain = "com.ms.internal.nhwc";
  return {
      contrib_op("Conv", "x, w, b?", "y", "conv", transposed<kConv>, attributes_of("conv"), kDomain),
      contrib_op("ConvTranspose", "x, w, b?", "y", "conv_transpose", transposed<kConvTranspose>,
                 attributes_of("conv_transpose"), kDomain),
      contrib_op("MaxPool", "x", "y", "max_pool", transposed<kMaxPool>, attributes_of("max_pool"), kDomain),
      contrib_op("AveragePool", "x", "y", "average_pool", transposed<kAveragePool>, attributes_of("average_pool"),
                 kDomain),
      contrib_op("GlobalAveragePool", "x", "y", "global_average_pool", transposed<kGlobalAveragePool>,
                 attributes_of("global_average_pool"), kDomain),
      contrib_op("GlobalMaxPool", "x", "y", "global_max_pool", transposed<kGlobalMaxPool>,
                 attributes_of("global_max_pool"), kDomain),
      contrib_op("NhwcMaxPool", "x", "y", "max_pool", transposed<kMaxPool>, attributes_of("max_pool")),
  };
}

}  // namespace autograph::io
