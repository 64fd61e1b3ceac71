// conv, of floats and of bytes: the weights of a group times the input, which is read through the window as a matrix of
// taps by positions; with few channels in a group (depthwise ones above all) one work item an output element.
#include <algorithm>
#include <functional>

#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/quantized/quantized.h"
#include "backends/gpu/emit/text/epilogue.h"
#include "backends/gpu/emit/text/product.h"
#include "backends/gpu/emit/text/window.h"
#include "ops/defs.h"
#include "ops/window/conv_transpose_windows.h"

namespace autograph::gpu {
namespace {

// Below this a tile would be mostly empty.
constexpr int64_t kFewChannels = 8;
constexpr int64_t kFewTaps = 8;
// As Product::right_us, through a window.
constexpr double kTapUs = 0.03;

struct Conv {
  int64_t batch, groups;
  int64_t in_channels, out_channels;  // of a group
  int64_t kernel_positions, in_positions, out_positions;
  std::vector<WindowAxis> axes;
};

Conv conv_of(const Attributes& attributes, const Dims& x, const Dims& w) {
  Conv conv;
  conv.axes =
      resolve_windows(window_spec(attributes, Dims(w.begin() + 2, w.end())), std::span<const int64_t>(x).subspan(2));
  conv.batch = x[0];
  conv.groups = attributes.integer("group");
  conv.in_channels = w[1];
  conv.out_channels = w[0] / conv.groups;
  conv.kernel_positions = num_elements(kernel_extents(conv.axes));
  conv.in_positions = num_elements(in_extents(conv.axes));
  conv.out_positions = num_elements(out_extents(conv.axes));
  return conv;
}

// What a convolution multiplies, and what becomes of its sums.
struct ConvText {
  std::vector<Parameter> parameters;
  std::string type;  // of sums
  // Elements of x and w, of the type of sums; `channel` is that of the output.
  std::function<std::string(const std::string& at)> x;
  std::function<std::string(const std::string& at, const std::string& channel)> w;
  // Writes the statements that store the sum as element `at` of the output.
  std::function<void(const std::string& at, const std::string& channel, const std::string& sum)> store;
  bool are_plain_f32 = false;  // x and w: four neighbours may be read at once
};

std::vector<Parameter> parameters_of(const KernelCall& call) {
  const std::string_view type = storage_type(call.inputs[0].dtype());
  std::vector<Parameter> list{input_parameter("x", type, 0), input_parameter("w", type, 1)};
  if (call.has_input(2)) list.push_back(input_parameter("bias", type, 2));
  list.push_back(output_parameter("y", type));
  return list;
}

std::vector<Parameter> parameters_of(const KernelCall& call, const Epilogue& epilogue) {
  std::vector<Parameter> list{epilogue.operand("x", 0), epilogue.operand("w", 1)};
  if (call.has_input(2)) list.push_back(epilogue.operand("bias", 2));
  for (const Parameter& parameter : epilogue.parameters()) list.push_back(parameter);
  return list;
}

std::string with_bias(const KernelCall& call, const std::string& sum, const std::string& channel) {
  return call.has_input(2) ? fmt::format("{} + {}", sum, load(call.inputs[2].dtype(), "bias", channel)) : sum;
}

void write_direct(Writer& writer, const Conv& conv, const ConvText& text) {
  const IndexType& index = writer.index();
  const auto lit = [&](int64_t value) { return index.literal(value); };
  const int64_t channels = conv.groups * conv.out_channels;
  writer.begin_items(text.parameters, conv.batch * channels * conv.out_positions);
  writer.line("const Index o = i % {};", lit(conv.out_positions));
  writer.line("const Index m = i / {} % {};", lit(conv.out_positions), lit(channels));
  writer.line("const Index n = i / {};", lit(conv.out_positions * channels));
  writer.line("const Index first = (n * {0} + m / {1}) * {2};", lit(conv.groups), lit(conv.out_channels),
              lit(conv.in_channels * conv.in_positions));
  writer.line("{} total = 0;", text.type);
  writer.open("for (Index c = 0; c < {}; ++c)", lit(conv.in_channels));
  writer.line("const Index x_at = first + c * {};", lit(conv.in_positions));
  writer.line("const Index w_at = (m * {} + c) * {};", lit(conv.in_channels), lit(conv.kernel_positions));
  write_taps(writer, conv.axes, "o",
             [&] { writer.line("total += {} * {};", text.x("x_at + p"), text.w("w_at + k", "m")); });
  writer.close();
  text.store("i", "m", "total");
  writer.end();
}

// Is the matrix that the window reads the input itself?
bool reads_in_place(const Conv& conv) {
  return conv.kernel_positions == 1 && conv.in_positions == conv.out_positions &&
         std::all_of(conv.axes.begin(), conv.axes.end(),
                     [](const WindowAxis& axis) { return axis.stride == 1 && axis.pad_begin == 0; });
}

// One product for each image and group.
void write_as_product(Writer& writer, const Conv& conv, const ConvText& text) {
  const IndexType& index = writer.index();
  const auto lit = [&](int64_t value) { return index.literal(value); };
  Product product;
  product.batches = conv.batch * conv.groups;
  product.rows = conv.out_channels;
  product.inner = conv.in_channels * conv.kernel_positions;
  product.columns = conv.out_positions;
  product.type = text.type;
  product.can_split = true;
  if (conv.kernel_positions > 1) product.right_us = kTapUs;
  const auto channel_of = [&](const std::string& b, const std::string& m) {
    return fmt::format("{} % {} * {} + {}", b, lit(conv.groups), lit(conv.out_channels), m);
  };
  const auto weight_at = [&](const std::string& b, const std::string& m, const std::string& k) {
    return fmt::format("({}) * {} + {}", channel_of(b, m), lit(product.inner), k);
  };
  product.left = [&](const std::string& b, const std::string& m, const std::string& k) {
    return text.w(weight_at(b, m, k), channel_of(b, m));
  };
  if (text.are_plain_f32 && product.inner % 4 == 0) {
    product.left_four = [&](const std::string& b, const std::string& m, const std::string& k) {
      return fmt::format("&w[{}]", weight_at(b, m, k));
    };
  }
  if (text.are_plain_f32 && reads_in_place(conv) && conv.in_positions % 4 == 0) {
    product.right_four = [&](const std::string& b, const std::string& k, const std::string& o) {
      return fmt::format("&x[({} * {} + {}) * {} + {}]", b, lit(conv.in_channels), k, lit(conv.in_positions), o);
    };
  }
  product.split_right = {
      .column = [&](const std::string& o, const std::string& id) { write_window(writer, conv.axes, o, id); },
      .row =
          [&](const std::string& k, const std::string& id) {
            const std::string tap = fmt::format("({} % {})", k, lit(conv.kernel_positions));
            write_tap_alone(writer, conv.axes, tap, id);
            writer.line("const Index from{} = (b * {} + {} / {}) * {} + tap{};", id, lit(conv.in_channels), k,
                        lit(conv.kernel_positions), lit(conv.in_positions), id);
          },
      .inside = [&](const std::string& column,
                    const std::string& row) { return inside_of(writer, conv.axes, column, row); },
      .element = [&](const std::string& column,
                     const std::string& row) { return text.x(fmt::format("from{} + window{}", row, column)); },
  };
  product.write = [&](const std::string& b, const std::string& m, const std::string& o, const std::string& sum) {
    writer.line("const Index channel = {};", channel_of(b, m));
    writer.line("const Index at = ({} * {} + {}) * {} + {};", b, lit(conv.out_channels), m, lit(conv.out_positions), o);
    text.store("at", "channel", sum);
  };
  write_product(writer, text.parameters, product);
}

// Positions of operands must be covered.
void write_conv(Writer& writer, const Conv& conv, const ConvText& text) {
  cover_windows(writer.index(), conv.axes);
  const bool is_small = conv.out_channels < kFewChannels || conv.in_channels * conv.kernel_positions < kFewTaps;
  const bool is_empty = conv.batch * conv.groups * conv.out_channels * conv.out_positions == 0;
  if (is_small || is_empty) {
    write_direct(writer, conv, text);
  } else {
    write_as_product(writer, conv, text);
  }
}

}  // namespace

Emitted emit_conv(const KernelCall& whole, const Target& target) {
  Epilogue epilogue(whole, conv_def());
  if (!epilogue.refusal().empty()) return refused(epilogue.refusal());
  const KernelCall call = epilogue.producer();
  const DType dtype = call.inputs[0].dtype();
  if (!can_multiply(dtype, target)) return refused("dtype");
  Writer writer(target);
  epilogue.cover(writer.index());
  const ConvText text{
      .parameters = parameters_of(call, epilogue),
      .type = product_type(dtype),
      .x = [&](const std::string& at) { return load(dtype, "x", at); },
      .w = [&](const std::string& at, const std::string&) { return load(dtype, "w", at); },
      .store = [&](const std::string& at, const std::string& channel,
                   const std::string& sum) { epilogue.store(writer, at, with_bias(call, sum, channel)); },
      .are_plain_f32 = dtype == DType::f32,
  };
  write_conv(writer, conv_of(call.attributes, call.input_dims(0), call.input_dims(1)), text);
  if (!epilogue.refusal().empty()) return refused(epilogue.refusal());
  writer.in_place_inputs = epilogue.in_place_inputs();
  return writer.finish();
}

// Padding stands for the zero point of x: it adds nothing.
Emitted emit_byte_conv(const KernelCall& call, const Target& target) {
  const Dims w = call.input_dims(ByteProduct::right_slot(call));
  const Conv conv = conv_of(call.attributes, call.input_dims(0), w);
  const ByteProduct bytes(call, target, conv.in_channels * conv.kernel_positions);
  if (const std::string refusal = bytes.refusal(); !refusal.empty()) return refused(refusal);
  Writer writer(target);
  cover_operands(writer.index(), call);
  const ConvText text{
      .parameters = bytes.parameters(),
      .type = bytes.sum_type(),
      .x = [&](const std::string& at) { return bytes.left(at, "0"); },
      .w = [&](const std::string& at, const std::string& channel) { return bytes.right(at, channel); },
      .store = [&](const std::string& at, const std::string& channel,
                   const std::string& sum) { bytes.store(writer, at, "0", channel, sum); },
  };
  write_conv(writer, conv, text);
  return writer.finish();
}

// One work item an output element, which looks at every tap that may have come from the input.
Emitted emit_conv_transpose(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const Dims x = call.input_dims(0);
  const Dims w = call.input_dims(1);
  const Dims y = call.output_dims(0);
  const std::vector<WindowAxis> axes = conv_transpose_windows(call.attributes, x, w);
  const int64_t groups = call.attributes.integer("group");
  Writer writer(target);
  for (const Dims& dims : {x, w, y}) writer.index().cover(num_elements(dims));
  cover_windows(writer.index(), axes);
  const IndexType& index = writer.index();
  const auto lit = [&](int64_t value) { return index.literal(value); };
  const int64_t positions = num_elements(in_extents(axes));
  const int64_t from = num_elements(out_extents(axes));
  const int64_t taps = num_elements(kernel_extents(axes));
  writer.begin_items(parameters_of(call), num_elements(y));
  writer.line("const Index place = i % {};", lit(std::max<int64_t>(positions, 1)));
  writer.line("const Index m = i / {} % {};", lit(std::max<int64_t>(positions, 1)), lit(y[1]));
  writer.line("const Index n = i / {};", lit(std::max<int64_t>(positions * y[1], 1)));
  writer.line("const Index group = m / {};", lit(w[1]));
  writer.line("{} total = 0;", compute_type(dtype));
  write_windows_over(writer, axes, "place", [&] {
    writer.open("for (Index c = 0; c < {}; ++c)", lit(x[1] / groups));
    writer.line("const Index channel = group * {} + c;", lit(x[1] / groups));
    writer.line("total += {} * {};", load(dtype, "x", fmt::format("(n * {} + channel) * {} + o", lit(x[1]), lit(from))),
                load(dtype, "w", fmt::format("(channel * {} + m % {}) * {} + k", lit(w[1]), lit(w[1]), lit(taps))));
    writer.close();
  });
  writer.line("{}", store(dtype, "y", "i", with_bias(call, "total", "m")));
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
