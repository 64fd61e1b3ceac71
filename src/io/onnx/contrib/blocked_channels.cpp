// Contrib ops of com.microsoft.nchwc: images with channels in blocks, which the optimiser writes at its highest level.
//
// Blocks are a layout, and layouts are no matter of the graph: here all tensors are channels first, padded to whole
// blocks where the file pads them. Weights lie in the file as the kernels want them, and are put back in order.
#include "io/onnx/contrib/blocked_channels.h"

#include <algorithm>
#include <unordered_map>

#include "autograph/ops/elementwise.h"
#include "autograph/ops/window.h"
#include "base/check.h"
#include "io/onnx/contrib/body.h"

namespace autograph::io {
namespace {

constexpr std::string_view kBlockedDomain = "com.microsoft.nchwc";
constexpr const char* kBlock = "channel_block";

int64_t rounded_up(int64_t count, int64_t block) { return (count + block - 1) / block * block; }

int64_t block_of(const ContribCall& call) {
  const int64_t block = call.attributes().integer(kBlock);
  if (block != 8 && block != 16) call.refuse("attribute 'channel_block'", "expected 8 or 16");
  return block;
}

// ---- Weights ---------------------------------------------------------------------------------------------------

// Weights [outputs, inputs, kernel...] from their order in the file: blocks of outputs, then of inputs where these are
// blocked, then the window, then inputs and outputs within the blocks.
Tensor in_order(const Tensor& blocked, int64_t block, bool inputs_are_blocked) {
  const int64_t outputs = blocked.dims()[0], inputs = blocked.dims()[1];
  const int64_t window = outputs * inputs == 0 ? 0 : blocked.num_elements() / (outputs * inputs);
  const int64_t inner = inputs_are_blocked ? block : 1;
  Tensor plain = Tensor::empty(DType::f32, blocked.dims());
  const auto* from = blocked.data<float>();
  auto* to = plain.mutable_data<float>();
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t i = 0; i < inputs; ++i) {
      for (int64_t k = 0; k < window; ++k) {
        const int64_t group = (o / block * (inputs / inner) + i / inner) * window + k;
        to[(o * inputs + i) * window + k] = from[(group * inner + i % inner) * block + o % block];
      }
    }
  }
  return plain;
}

Var weights_in_order(const ContribCall& call) {
  const auto blocked = call.known(call["W"]);
  if (!blocked || blocked->dtype() != DType::f32 || blocked->rank() < 3) {
    call.refuse("input 'W'", "weights that are no constant of f32 are not supported");
  }
  const int64_t block = block_of(call);
  const int64_t inputs = blocked->dims()[1];
  // Few inputs are read from tensors without blocks, and depthwise windows have one.
  const bool is_depthwise = inputs == 1 && call.attributes().integer("group") > 1;
  const bool inputs_are_blocked = !is_depthwise && inputs >= block;
  if (blocked->dims()[0] % block != 0 || (inputs_are_blocked && inputs % block != 0)) {
    call.refuse("input 'W'", to_string(call["W"].type()) + " is not made of blocks of " + std::to_string(block));
  }
  return call.constant(in_order(*blocked, block, inputs_are_blocked));
}

// ---- Bodies ----------------------------------------------------------------------------------------------------

std::vector<Var> blocked_conv(ContribCall& call) {
  Var y = apply(get_op("conv"), {call["X"], weights_in_order(call), call["B"]}, shared_attributes(call, "conv"));
  if (call.has("Sum")) y = add(y, call["Sum"]);
  return {activated(call, y, call.attributes().get_or<std::vector<float>>("activation_params", {}))};
}

std::vector<Var> reorder_input(ContribCall& call) {
  const Var x = call.attributes().flag("channels_last") ? channels_first(call, call["X"]) : call["X"];
  const int64_t channels = call.extent(x, 1);
  const int64_t missing = rounded_up(channels, block_of(call)) - channels;
  if (missing == 0) return {x};
  const auto rank = static_cast<size_t>(call.rank(x));
  std::vector<int64_t> pads(2 * rank, 0);
  pads[rank + 1] = missing;
  return {pad(x, pads)};
}

std::vector<Var> reorder_output(ContribCall& call) {
  const int64_t channels = call.attributes().integer("channels");
  Var y = call["X"];
  if (channels > 0 && call.extent(y, 1) != channels) y = slice(y, {0}, {channels}, {1});
  return {call.attributes().flag("channels_last") ? channels_last(call, y) : y};
}

std::vector<Var> blocked_max_pool(ContribCall& call) {
  return {apply(get_op("max_pool"), {call["X"]}, shared_attributes(call, "max_pool"))};
}

std::vector<Var> blocked_average_pool(ContribCall& call) {
  return {apply(get_op("average_pool"), {call["X"]}, shared_attributes(call, "average_pool"))};
}

std::vector<Var> blocked_global_max_pool(ContribCall& call) { return {global_max_pool(call["X"])}; }

std::vector<Var> blocked_global_average_pool(ContribCall& call) { return {global_average_pool(call["X"])}; }

std::vector<Var> blocked_upsample(ContribCall& call) {
  const Attributes& attributes = call.attributes();
  std::vector<float> scales;
  for (const int64_t scale : attributes.get_or<std::vector<int64_t>>("scales", {})) {
    scales.push_back(static_cast<float>(scale));
  }
  Attributes options{{"mode", attributes.text("mode")},
                     {"coordinate_transformation_mode", attributes.text("coordinate_transformation_mode")}};
  if (attributes.text("mode") == "nearest") options.set("nearest_mode", std::string("floor"));
  const auto count = static_cast<int64_t>(scales.size());
  return {apply(get_op("resize"), {call["X"], Var(), call.constant(Tensor::of<float>({count}, scales))}, options)};
}

// ---- The block -------------------------------------------------------------------------------------------------

bool is_blocked(const onnx::NodeProto& node) { return node.domain() == kBlockedDomain; }

int64_t integer_of(const onnx::NodeProto& node, const std::string& name) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return attribute.i();
  }
  return 0;
}

// Could the channels of this graph be in blocks of `block`?
bool fits(const onnx::GraphProto& graph, int64_t block) {
  std::unordered_map<std::string, int64_t> channels;  // of blocked tensors, as far as convolutions make them
  std::unordered_map<std::string, int64_t> outputs;   // of weights
  for (const auto& tensor : graph.initializer()) {
    if (tensor.dims_size() > 0) outputs[tensor.name()] = tensor.dims(0);
  }
  for (const auto& node : graph.node()) {
    if (!is_blocked(node) || node.input_size() < 1 || node.output_size() < 1) continue;
    const auto known = channels.find(node.input(0));
    if (node.op_type() == "Conv" && node.input_size() > 1) {
      const auto weights = outputs.find(node.input(1));
      if (weights == outputs.end()) continue;
      if (weights->second % block != 0) return false;
      channels[node.output(0)] = weights->second;
    } else if (known != channels.end() && node.op_type() == "ReorderOutput") {
      const int64_t count = integer_of(node, "channels");
      if (count > 0 && rounded_up(count, block) != known->second) return false;
    } else if (known != channels.end()) {
      channels[node.output(0)] = known->second;
    }
  }
  return true;
}

}  // namespace

void mark_channel_blocks(onnx::ModelProto& model, int64_t told) {
  auto& graph = *model.mutable_graph();
  if (std::none_of(graph.node().begin(), graph.node().end(), is_blocked)) return;
  const bool narrow = fits(graph, 8), wide = fits(graph, 16);
  AG_CHECK_USER(
      told != 0 || narrow != wide, UnsupportedError,
      "[com.microsoft.nchwc] weights: in blocks of 8 or of 16 channels, as the processor wanted them where ONNX "
      "Runtime optimised the file; which one the file does not say: give --channel-block 16 (processors with "
      "AVX-512) or 8 (others), or optimise with ORT_ENABLE_EXTENDED for a file that runs everywhere");
  const int64_t block = told != 0 ? told : (wide ? 16 : 8);
  AG_CHECK_USER(block == 8 ? narrow : block == 16 && wide, ValueError,
                "[com.microsoft.nchwc] weights: expected blocks of {} channels, as told, which do not fit this file",
                block);
  for (auto& node : *graph.mutable_node()) {
    if (!is_blocked(node)) continue;
    auto& attribute = *node.add_attribute();
    attribute.set_name(kBlock);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(block);
  }
}

std::vector<ContribOp> contrib_blocked_channels() {
  const AttributeSpec block = required_attribute(kBlock);
  const AttributeSpec last = with_default("channels_last", int64_t{0});
  const auto row = [](std::string_view name, std::string_view inputs, std::string_view becomes, ContribBody body,
                      std::vector<AttributeSpec> attributes) {
    return contrib_op(name, inputs, "Y", becomes, body, std::move(attributes), kBlockedDomain);
  };
  return {
      row("Conv", "X, W, B?, Sum?", "conv, add, activation", blocked_conv,
          attributes_of("conv", {block, optional_attribute("activation", AttributeType::text),
                                 optional_attribute("activation_params", AttributeType::reals)})),
      row("ReorderInput", "X", "transpose, pad", reorder_input, {block, last}),
      row("ReorderOutput", "X", "slice, transpose", reorder_output,
          {block, last, with_default("channels", int64_t{0})}),
      row("MaxPool", "X", "max_pool", blocked_max_pool, attributes_of("max_pool", {block})),
      row("AveragePool", "X", "average_pool", blocked_average_pool, attributes_of("average_pool", {block})),
      row("GlobalMaxPool", "X", "global_max_pool", blocked_global_max_pool, {block}),
      row("GlobalAveragePool", "X", "global_average_pool", blocked_global_average_pool, {block}),
      row("Upsample", "X", "resize", blocked_upsample,
          {block, optional_attribute("scales", AttributeType::integers), with_default("mode", std::string("nearest")),
           with_default("coordinate_transformation_mode", std::string("asymmetric"))}),
  };
}

}  // namespace autograph::io
