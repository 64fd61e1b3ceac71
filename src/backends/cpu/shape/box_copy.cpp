// slice, expand and pad with a constant: a box of the input becomes a box of the output. Rows that are dense on both
// sides move as blocks of bytes, others element by element; threads take equal shares of the rows.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/known_inputs.h"
#include "backends/cpu/shape/piece_copies.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "ops/shape/slice_range.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

// One axis: `count` elements from `in_first` on, `in_step` apart, become those from `out_first` on.
struct BoxAxis {
  int64_t count = 1;
  int64_t in_extent = 1, in_first = 0, in_step = 1;
  int64_t out_extent = 1, out_first = 0;
};

// An axis with its strides in elements.
struct BoxStrides {
  int64_t count = 1, in_stride = 0, out_stride = 0;
};

// The axes in the order of a layout; blocks of channels are not taken apart.
void reorder(Layout layout, std::vector<BoxAxis>& axes) {
  if (layout == Layout::row_major) return;
  BoxAxis channels = axes[1];
  const int64_t block = channel_block(layout);
  if (block == 1) {
    axes.erase(axes.begin() + 1);
  } else {
    axes[1].count = axes[1].in_extent = axes[1].out_extent = channels.count / block;
    channels.count = channels.in_extent = channels.out_extent = block;
  }
  axes.push_back(channels);
}

// Moves a box.
class BoxCopy {
 public:
  BoxCopy() = default;
  BoxCopy(const std::vector<BoxAxis>& axes, size_t element_bytes, int threads) : element_bytes_(element_bytes) {
    int64_t in_stride = 1, out_stride = 1, elements = 1;
    std::vector<BoxStrides> all;
    for (size_t a = axes.size(); a-- > 0;) {
      const BoxAxis& axis = axes[a];
      in_start_ += axis.in_first * in_stride;
      out_start_ += axis.out_first * out_stride;
      const BoxStrides strides{axis.count, axis.in_step * in_stride, out_stride};
      elements *= axis.count;
      in_stride *= axis.in_extent;
      out_stride *= axis.out_extent;
      if (axis.count == 1) continue;
      BoxStrides* inner = all.empty() ? nullptr : &all.back();
      if (inner && strides.in_stride == inner->in_stride * inner->count &&
          strides.out_stride == inner->out_stride * inner->count) {
        inner->count *= strides.count;
      } else {
        all.push_back(strides);
      }
    }
    if (all.empty()) all.push_back({1, 1, 1});
    row_ = all.front();
    outer_.assign(all.rbegin(), all.rend() - 1);
    rows_ = elements == 0 ? 0 : elements / row_.count;
    threads_ = useful_threads(threads, elements);
  }

  void run(const void* in, void* out) const {
    for_shares(threads_, rows_, [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end;) r += move_rows(static_cast<const char*>(in), static_cast<char*>(out), r, end);
    });
  }

 private:
  // Of rows [r, end) those that lie along the innermost axis outside of rows; returns how many.
  int64_t move_rows(const char* in, char* out, int64_t r, int64_t end) const {
    const auto bytes = static_cast<int64_t>(element_bytes_);
    int64_t in_at = in_start_, out_at = out_start_, rest = r;
    for (size_t a = outer_.size(); a-- > 0;) {
      const int64_t index = rest % outer_[a].count;
      rest /= outer_[a].count;
      in_at += index * outer_[a].in_stride;
      out_at += index * outer_[a].out_stride;
    }
    const BoxStrides along = outer_.empty() ? BoxStrides() : outer_.back();
    const int64_t rows = std::min(end - r, along.count - r % along.count);
    in += in_at * bytes;
    out += out_at * bytes;
    if (row_.in_stride == 1 && row_.out_stride == 1) {
      copy_pieces({out, along.out_stride * bytes, in, along.in_stride * bytes, row_.count * bytes, rows});
      return rows;
    }
    for (int64_t i = 0; i < rows; ++i) {
      move_strided(in + i * along.in_stride * bytes, out + i * along.out_stride * bytes);
    }
    return rows;
  }

  void move_strided(const char* in, char* out) const {
    switch (element_bytes_) {
      case 1: return move_elements<uint8_t>(in, out);
      case 2: return move_elements<uint16_t>(in, out);
      case 4: return move_elements<uint32_t>(in, out);
      case 8: return move_elements<uint64_t>(in, out);
      default: break;
    }
    const auto bytes = static_cast<int64_t>(element_bytes_);
    for (int64_t i = 0; i < row_.count; ++i) {
      std::memcpy(out + i * row_.out_stride * bytes, in + i * row_.in_stride * bytes, element_bytes_);
    }
  }

  template <class T>
  void move_elements(const char* in, char* out) const {
    const T* from = reinterpret_cast<const T*>(in);
    T* to = reinterpret_cast<T*>(out);
    for (int64_t i = 0; i < row_.count; ++i) to[i * row_.out_stride] = from[i * row_.in_stride];
  }

  size_t element_bytes_ = 1;
  int64_t in_start_ = 0, out_start_ = 0;
  std::vector<BoxStrides> outer_;
  BoxStrides row_;
  int64_t rows_ = 0;
  int threads_ = 1;
};

class BoxCopyKernel : public Kernel {
 public:
  explicit BoxCopyKernel(BoxCopy copy) : copy_(std::move(copy)) {}
  void run(const KernelArgs& args) const override { copy_.run(args.inputs[0].raw(), args.outputs[0].raw()); }

 private:
  const BoxCopy copy_;
};

// The axes that an op lists in an optional input, counted from the front; the first `count` ones when it is not given.
std::vector<size_t> listed_axes(const KernelCall& call, size_t slot, size_t count) {
  std::vector<size_t> axes(count);
  std::iota(axes.begin(), axes.end(), size_t{0});
  if (!call.has_input(slot)) return axes;
  const auto rank = static_cast<int64_t>(call.input_dims(0).size());
  const std::vector<int64_t> listed = call.constant(slot)->to_i64();
  for (size_t k = 0; k < count; ++k) axes[k] = static_cast<size_t>(listed[k] < 0 ? listed[k] + rank : listed[k]);
  return axes;
}

std::string why_not_known(const KernelCall& call, std::initializer_list<size_t> slots) {
  if (call.inputs[0].dtype() == DType::string) return "strings";
  return why_not_known(call, slots, "positions");
}

// Row-major, channels-last, and blocks of channels where all of them move.
std::vector<KernelVariant> box_variants(const KernelCall& call, const std::vector<BoxAxis>& axes) {
  const double us = 1 + static_cast<double>(size_of(call.outputs[0])) / 5e3;
  std::vector<KernelVariant> result{{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
  if (call.inputs[0].dtype() != DType::f32) return result;
  for (const Layout layout : {Layout::channels_last, Layout::blocked8, Layout::blocked16}) {
    if (!fits_rank(layout, axes.size())) continue;
    const BoxAxis& channels = axes[1];
    const bool keeps_channels =
        channels.in_step == 1 && channels.count == channels.in_extent && channels.count == channels.out_extent;
    const bool fits = channel_block(layout) == 1 || (keeps_channels && channels.count % channel_block(layout) == 0);
    if (fits) result.push_back({.name = "", .inputs = {layout}, .outputs = {layout}, .cost_us = us});
  }
  return result;
}

// ---- slice -----------------------------------------------------------------------------------------------------

std::string why_not_slice(const KernelCall& call) { return why_not_known(call, {1, 2, 3, 4}); }

std::vector<BoxAxis> sliced_axes(const KernelCall& call) {
  const Dims in = call.input_dims(0), out = call.output_dims(0);
  std::vector<BoxAxis> axes;
  for (size_t a = 0; a < in.size(); ++a) {
    axes.push_back({.count = out[a], .in_extent = in[a], .out_extent = out[a]});
  }
  const std::vector<int64_t> starts = call.constant(1)->to_i64(), ends = call.constant(2)->to_i64();
  const std::vector<size_t> sliced = listed_axes(call, 3, starts.size());
  const auto steps = call.has_input(4) ? call.constant(4)->to_i64() : std::vector<int64_t>(starts.size(), 1);
  for (size_t k = 0; k < starts.size(); ++k) {
    BoxAxis& axis = axes[sliced[k]];
    const SliceRange range = slice_range(starts[k], ends[k], steps[k], axis.in_extent);
    axis.in_first = range.start;
    axis.in_step = axis.count > 1 ? range.step : 1;  // a single element needs no step, and a huge one would overflow
  }
  return axes;
}

Prepared prepare_slice(const KernelCall& call) {
  std::vector<BoxAxis> axes = sliced_axes(call);
  if (call.variant) reorder(call.variant->output(0), axes);
  return {std::make_unique<BoxCopyKernel>(BoxCopy(axes, element_size(call.inputs[0].dtype()), call.threads)), ""};
}

std::vector<KernelVariant> slice_variants(const KernelCall& call) { return box_variants(call, sliced_axes(call)); }

// ---- expand ----------------------------------------------------------------------------------------------------

std::string why_not_expand(const KernelCall& call) { return why_not_known(call, {}); }

Prepared prepare_expand(const KernelCall& call) {
  Dims in = call.input_dims(0);
  const Dims out = call.output_dims(0);
  in.insert(in.begin(), out.size() - in.size(), 1);
  std::vector<BoxAxis> axes;
  for (size_t a = 0; a < out.size(); ++a) {
    axes.push_back({.count = out[a], .in_extent = in[a], .in_step = in[a] == 1 ? 0 : 1, .out_extent = out[a]});
  }
  return {std::make_unique<BoxCopyKernel>(BoxCopy(axes, element_size(call.inputs[0].dtype()), call.threads)), ""};
}

// ---- pad -------------------------------------------------------------------------------------------------------

// The element that is added; 0 where none is given.
const char* padding_value(const KernelArgs& args) {
  static constexpr char kZeros[16] = {};
  const bool is_given = args.inputs.size() > 2 && args.inputs[2].is_present();
  return is_given ? static_cast<const char*>(args.inputs[2].raw()) : kZeros;
}

void fill(char* out, const char* value, int64_t count, int64_t bytes) {
  if (std::all_of(value, value + bytes, [](char c) { return c == 0; })) {
    std::memset(out, 0, static_cast<size_t>(count * bytes));
    return;
  }
  copy_pieces({out, bytes, value, 0, bytes, count});
}

class PadKernel : public Kernel {
 public:
  PadKernel(BoxCopy copy, size_t element_bytes, int64_t elements, int threads)
      : copy_(std::move(copy)),
        element_bytes_(element_bytes),
        elements_(elements),
        threads_(useful_threads(threads, elements)) {}

  void run(const KernelArgs& args) const override {
    char* out = static_cast<char*>(args.outputs[0].raw());
    const char* const value = padding_value(args);
    for_shares(threads_, elements_,
               [&](int64_t begin, int64_t end, int) { fill(out + begin * bytes(), value, end - begin, bytes()); });
    copy_.run(args.inputs[0].raw(), out);
  }

 private:
  int64_t bytes() const { return static_cast<int64_t>(element_bytes_); }

  const BoxCopy copy_;
  const size_t element_bytes_;
  const int64_t elements_;
  const int threads_;
};

std::vector<BoxAxis> padded_axes(const KernelCall& call) {
  const Dims in = call.input_dims(0), out = call.output_dims(0);
  std::vector<BoxAxis> axes;
  for (size_t a = 0; a < in.size(); ++a) axes.push_back({.count = in[a], .in_extent = in[a], .out_extent = out[a]});
  const std::vector<int64_t> pads = call.constant(1)->to_i64();
  const std::vector<size_t> padded = listed_axes(call, 3, pads.size() / 2);
  for (size_t k = 0; k < padded.size(); ++k) {
    BoxAxis& axis = axes[padded[k]];
    const int64_t begin = pads[k], end = pads[k + padded.size()];
    axis.in_first = std::max<int64_t>(-begin, 0);
    axis.out_first = std::max<int64_t>(begin, 0);
    axis.count = std::max<int64_t>(axis.in_extent - axis.in_first - std::max<int64_t>(-end, 0), 0);
  }
  return axes;
}

// The only axis on which the box is not the whole output; none where there are several, or rows are short.
std::optional<size_t> long_padded_axis(const std::vector<BoxAxis>& axes, size_t element_bytes) {
  constexpr int64_t kShortBytes = 256;
  std::optional<size_t> found;
  auto row = static_cast<int64_t>(element_bytes);
  for (size_t a = axes.size(); a-- > 0;) {
    const BoxAxis& axis = axes[a];
    if (axis.count == axis.in_extent && axis.count == axis.out_extent) {
      row *= found ? 1 : axis.count;
    } else if (found) {
      return std::nullopt;
    } else {
      found = a;
    }
  }
  if (found) row *= axes[*found].out_extent;
  return found && row >= kShortBytes ? found : std::nullopt;
}

// Padding along one axis: what goes in front, the box and what goes behind are written in turn, each once.
class AxisPadKernel : public Kernel {
 public:
  AxisPadKernel(const std::vector<BoxAxis>& axes, size_t axis, size_t element_bytes, int threads)
      : axis_(axes[axis]), element_bytes_(static_cast<int64_t>(element_bytes)), row_bytes_(element_bytes_) {
    for (size_t a = 0; a < axis; ++a) rows_ *= axes[a].count;
    for (size_t a = axis + 1; a < axes.size(); ++a) row_bytes_ *= axes[a].count;
    rows_ *= axis_.out_extent;
    threads_ = useful_threads(threads, rows_ * row_bytes_ / element_bytes_);
  }

  void run(const KernelArgs& args) const override {
    const auto* const in = static_cast<const char*>(args.inputs[0].raw());
    auto* const out = static_cast<char*>(args.outputs[0].raw());
    const char* const value = padding_value(args);
    for_shares(threads_, rows_, [&](int64_t begin, int64_t end, int /*thread*/) {
      while (begin < end) begin = write_rows(begin, end, in, out, value);
    });
  }

 private:
  // Rows from `begin` on, those that come from the same place; returns the first one behind.
  int64_t write_rows(int64_t begin, int64_t end, const char* in, char* out, const char* value) const {
    const int64_t outer = begin / axis_.out_extent, at = begin % axis_.out_extent;
    const int64_t behind = axis_.out_first + axis_.count;
    const bool is_box = at >= axis_.out_first && at < behind;
    const int64_t limit = is_box ? behind : at < axis_.out_first ? axis_.out_first : axis_.out_extent;
    const int64_t count = std::min(limit - at, end - begin);
    char* const to = out + begin * row_bytes_;
    if (is_box) {
      const int64_t from = outer * axis_.in_extent + axis_.in_first + at - axis_.out_first;
      std::memcpy(to, in + from * row_bytes_, static_cast<size_t>(count * row_bytes_));
    } else {
      fill(to, value, count * row_bytes_ / element_bytes_, element_bytes_);
    }
    return begin + count;
  }

  const BoxAxis axis_;
  const int64_t element_bytes_;
  int64_t row_bytes_, rows_ = 1;
  int threads_ = 1;
};

std::string why_not_pad(const KernelCall& call) {
  if (call.attributes.text("mode") != "constant") return "mode " + call.attributes.text("mode");
  if (call.outputs[0].shape().num_elements() == 0) return "a tensor without elements";
  if (std::string refusal = why_not_known(call, {1, 3}); !refusal.empty()) return refusal;
  const bool is_empty = call.inputs[0].shape().num_elements() == 0;
  if (is_empty && !long_padded_axis(padded_axes(call), element_size(call.inputs[0].dtype()))) return "no elements";
  return "";
}

Prepared prepare_pad(const KernelCall& call) {
  std::vector<BoxAxis> axes = padded_axes(call);
  if (call.variant) reorder(call.variant->output(0), axes);
  const size_t bytes = element_size(call.inputs[0].dtype());
  if (const auto axis = long_padded_axis(axes, bytes)) {
    return {std::make_unique<AxisPadKernel>(axes, *axis, bytes, call.threads), ""};
  }
  const int64_t elements = call.outputs[0].shape().num_elements().value();
  return {std::make_unique<PadKernel>(BoxCopy(axes, bytes, call.threads), bytes, elements, call.threads), ""};
}

std::vector<KernelVariant> pad_variants(const KernelCall& call) { return box_variants(call, padded_axes(call)); }

}  // namespace

std::vector<KernelDef> box_copy_kernels() {
  return {
      {"cpu.slice", slice_def().name, why_not_slice, prepare_slice, slice_variants},
      {"cpu.expand", expand_def().name, why_not_expand, prepare_expand},
      {"cpu.pad", pad_def().name, why_not_pad, prepare_pad, pad_variants},
  };
}

}  // namespace autograph
