#include "ops/window/window_geometry.h"

#include "base/checked_int.h"
#include "base/join.h"

namespace autograph {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

// Extent that one window covers, gaps included.
int64_t span_of(int64_t kernel, int64_t dilation) {
  return checked_add(checked_mul(kernel - 1, dilation, "window"), 1, "window");
}

bool is_same(const WindowSpec& spec) { return spec.auto_pad == "SAME_UPPER" || spec.auto_pad == "SAME_LOWER"; }

void check_list(const InferContext& context, std::string_view name, int64_t length, int64_t least) {
  const auto* list = context.attributes().find_as<std::vector<int64_t>>(name);
  if (!list) return;
  if (static_cast<int64_t>(list->size()) != length) {
    context.fail<ValueError>(name, fmt::format("expected {} values, got {}", length, bracketed(*list)));
  }
  for (const int64_t value : *list) {
    if (value < least) {
      context.fail<ValueError>(name, fmt::format("expected {} or more, got {}", least, bracketed(*list)));
    }
  }
}

}  // namespace

TapRange WindowAxis::taps_within(int64_t o, int64_t before, int64_t after) const {
  const int64_t start = o * stride - pad_begin;
  TapRange range;
  if (start < -before) range.kernel = ceil_div(-before - start, dilation);
  range.input = start + range.kernel * dilation;
  const int64_t room = in + after - range.input;
  if (room > 0) range.count = std::max<int64_t>(0, std::min(kernel - range.kernel, ceil_div(room, dilation)));
  return range;
}

std::vector<AttributeSpec> window_attributes(std::vector<AttributeSpec> extra) {
  std::vector<AttributeSpec> specs{
      {"strides", AttributeType::integers, "Step of the window on each spatial axis; default 1."},
      {"pads", AttributeType::integers,
       "Padding: begin of each spatial axis, then end of each; default 0. Read only when auto_pad is NOTSET."},
      {"dilations", AttributeType::integers, "Distance between window taps on each spatial axis; default 1."},
      {"auto_pad",
       AttributeType::text,
       "Explicit padding, none, or as much as makes the output ceil(input / stride).",
       std::string("NOTSET"),
       false,
       {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}},
  };
  specs.insert(specs.end(), extra.begin(), extra.end());
  return specs;
}

void check_window_attributes(const InferContext& context, int64_t spatial_rank) {
  check_list(context, "kernel_shape", spatial_rank, 1);
  check_list(context, "strides", spatial_rank, 1);
  check_list(context, "dilations", spatial_rank, 1);
  check_list(context, "pads", 2 * spatial_rank, 0);
}

WindowSpec window_spec(const Attributes& attributes, Dims kernel) {
  const size_t rank = kernel.size();
  WindowSpec spec;
  spec.kernel = std::move(kernel);
  spec.strides = attributes.get_or<Dims>("strides", Dims(rank, 1));
  spec.dilations = attributes.get_or<Dims>("dilations", Dims(rank, 1));
  spec.pads = attributes.get_or<Dims>("pads", Dims(2 * rank, 0));
  spec.auto_pad = attributes.get_or<std::string>("auto_pad", "NOTSET");
  if (spec.auto_pad == "VALID") spec.pads.assign(2 * rank, 0);
  spec.ceil_mode = attributes.flag("ceil_mode");
  return spec;
}

WindowAxis resolve_window(const WindowSpec& spec, size_t axis, int64_t in) {
  WindowAxis w;
  w.in = in;
  w.kernel = spec.kernel[axis];
  w.stride = spec.strides[axis];
  w.dilation = spec.dilations[axis];
  const int64_t span = span_of(w.kernel, w.dilation);
  if (is_same(spec)) {
    w.out = ceil_div(in, w.stride);
    const int64_t covered =
        checked_add(checked_mul(std::max<int64_t>(w.out - 1, 0), w.stride, "window"), span, "window");
    const int64_t total = std::max<int64_t>(0, covered - in);
    w.pad_begin = spec.auto_pad == "SAME_LOWER" ? total - total / 2 : total / 2;
    w.pad_end = total - w.pad_begin;
    return w;
  }
  w.pad_begin = spec.pads[axis];
  w.pad_end = spec.pads[axis + spec.kernel.size()];
  const int64_t padded = checked_add(checked_add(in, w.pad_begin, "window"), w.pad_end, "window");
  const int64_t room = padded - span;
  if (room < 0) return w;
  w.out = room / w.stride + 1;
  const bool partial = spec.ceil_mode && room % w.stride != 0;
  // A partial last window counts only when it starts before the right padding.
  if (partial && checked_mul(w.out, w.stride, "window") < in + w.pad_begin) ++w.out;
  return w;
}

std::vector<WindowAxis> resolve_windows(const WindowSpec& spec, std::span<const int64_t> spatial_dims) {
  std::vector<WindowAxis> axes;
  for (size_t axis = 0; axis < spatial_dims.size(); ++axis) {
    axes.push_back(resolve_window(spec, axis, spatial_dims[axis]));
  }
  return axes;
}

Dim window_extent(const InferContext& context, const WindowSpec& spec, size_t axis, const Dim& in) {
  if (in.is_known()) {
    const WindowAxis w = resolve_window(spec, axis, in.value());
    if (w.out > 0 || is_same(spec)) return w.out;
    context.fail<ShapeError>("window", fmt::format("expected a span of at most {} on spatial axis {} (input {}, pads "
                                                   "{} and {}), got {} (kernel {}, dilation {})",
                                                   in.value() + w.pad_begin + w.pad_end, axis, in.value(), w.pad_begin,
                                                   w.pad_end, span_of(w.kernel, w.dilation), w.kernel, w.dilation));
  }
  const int64_t stride = spec.strides[axis];
  // The last-window rule of ceil_mode is no plain expression of the extent.
  if (in.is_unknown() || (spec.ceil_mode && stride > 1 && !is_same(spec))) return Dim::unknown();
  const int64_t pads = checked_add(spec.pads[axis], spec.pads[axis + spec.kernel.size()], "window");
  const int64_t more = is_same(spec)
                           ? stride - 1
                           : checked_add(pads - span_of(spec.kernel[axis], spec.dilations[axis]), stride, "window");
  return floor_div(more >= 0 ? in + Dim(more) : in - Dim(-more), stride);
}

int64_t unpooled_extent(const WindowSpec& spec, size_t axis, int64_t in) {
  const int64_t pads = checked_add(spec.pads[axis], spec.pads[axis + spec.kernel.size()], "max_unpool");
  const int64_t full =
      checked_add(checked_mul(in - 1, spec.strides[axis], "max_unpool"), spec.kernel[axis], "max_unpool");
  return full - pads;
}

bool next_index(std::span<int64_t> index, std::span<const int64_t> dims) {
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (++index[axis] < dims[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

}  // namespace autograph
