// transpose of any dtype. Axes that stay neighbours are merged. A last axis that stays last moves as blocks of bytes;
// otherwise the input's last axis and the output's last axis span planes that are transposed tile by tile, four by four
// elements at a time where they are as wide as f32.
// So are channels and positions where channels_last becomes row_major.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "backends/cpu/refusal.h"
#include "backends/cpu/shape/piece_copies.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "tensor/front_axis.h"
#include "tensor/size_of.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/shape/transpose.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/linear/micro_gemm-inl.h"
#include "ops/defs.h"

// Seen by the code of every instruction set, so written once.
#ifndef AG_SIMD_TRANSPOSE_PLANE
#define AG_SIMD_TRANSPOSE_PLANE
namespace autograph::simd {

// out[r * out_stride + c] = in[c * in_stride + r], strides in elements.
struct TransposePlane {
  const char* in;
  char* out;
  int64_t rows, columns;
  int64_t in_stride, out_stride;
};

}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

constexpr int64_t kMostInterleaved = 4;

// out[i * count + c] = in[c * in_stride + i], as pixels of a picture are made of its planes. Returns for how many i.
template <int count>
int64_t interleave(const float* in, int64_t in_stride, int64_t length, float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= length; i += lanes) {
    const auto plane = [&](int64_t c) HWY_ATTR { return hn::LoadU(d, in + c * in_stride + i); };
    if constexpr (count == 2) hn::StoreInterleaved2(plane(0), plane(1), d, out + 2 * i);
    if constexpr (count == 3) hn::StoreInterleaved3(plane(0), plane(1), plane(2), d, out + 3 * i);
    if constexpr (count == 4) hn::StoreInterleaved4(plane(0), plane(1), plane(2), plane(3), d, out + 4 * i);
  }
  return i;
}

// The opposite: out[c * out_stride + i] = in[i * count + c].
template <int count>
int64_t deinterleave(const float* in, int64_t length, float* out, int64_t out_stride) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= length; i += lanes) {
    hn::Vec<decltype(d)> planes[kMostInterleaved];
    if constexpr (count == 2) hn::LoadInterleaved2(d, in + 2 * i, planes[0], planes[1]);
    if constexpr (count == 3) hn::LoadInterleaved3(d, in + 3 * i, planes[0], planes[1], planes[2]);
    if constexpr (count == 4) hn::LoadInterleaved4(d, in + 4 * i, planes[0], planes[1], planes[2], planes[3]);
#pragma GCC unroll 4
    for (int c = 0; c < count; ++c) hn::StoreU(planes[c], d, out + c * out_stride + i);
  }
  return i;
}

// Transposes what it can of a plane of two to four rows or columns that lie element beside element; the rest stays.
TransposePlane transpose_thin(TransposePlane plane) {
  const auto* in = reinterpret_cast<const float*>(plane.in);
  auto* out = reinterpret_cast<float*>(plane.out);
  int64_t done = 0;
  if (plane.out_stride == plane.columns) {
    if (plane.columns == 2) done = interleave<2>(in, plane.in_stride, plane.rows, out);
    if (plane.columns == 3) done = interleave<3>(in, plane.in_stride, plane.rows, out);
    if (plane.columns == 4) done = interleave<4>(in, plane.in_stride, plane.rows, out);
    return {plane.in + 4 * done, plane.out + 4 * done * plane.out_stride,
            plane.rows - done,   plane.columns,
            plane.in_stride,     plane.out_stride};
  }
  if (plane.in_stride == plane.rows) {
    if (plane.rows == 2) done = deinterleave<2>(in, plane.columns, out, plane.out_stride);
    if (plane.rows == 3) done = deinterleave<3>(in, plane.columns, out, plane.out_stride);
    if (plane.rows == 4) done = deinterleave<4>(in, plane.columns, out, plane.out_stride);
    return {plane.in + 4 * done * plane.in_stride,
            plane.out + 4 * done,
            plane.rows,
            plane.columns - done,
            plane.in_stride,
            plane.out_stride};
  }
  return plane;
}

#else
TransposePlane transpose_thin(TransposePlane plane) { return plane; }
#endif

void transpose_words(const TransposePlane& whole) {
  const TransposePlane plane = transpose_thin(whole);
  const auto* in = reinterpret_cast<const float*>(plane.in);
  auto* out = reinterpret_cast<float*>(plane.out);
  // Tiles of 16 columns: the output's cache lines are completed before the next tile.
  for (int64_t c0 = 0; c0 < plane.columns; c0 += 16) {
    const int64_t c1 = std::min(c0 + 16, plane.columns);
    int64_t r = 0;
    for (; r + 4 <= plane.rows; r += 4) {
      int64_t c = c0;
      for (; c + 4 <= c1; c += 4) {
        transpose_4x4(in + c * plane.in_stride + r, plane.in_stride, out + r * plane.out_stride + c, plane.out_stride);
      }
      for (; c < c1; ++c) {
        for (int64_t i = r; i < r + 4; ++i) out[i * plane.out_stride + c] = in[c * plane.in_stride + i];
      }
    }
    for (; r < plane.rows; ++r) {
      for (int64_t c = c0; c < c1; ++c) out[r * plane.out_stride + c] = in[c * plane.in_stride + r];
    }
  }
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(transpose_words);

struct Axis {
  int64_t extent = 1;
  int64_t in_stride = 1;  // in elements
  int64_t out_stride = 1;
};

// Axes of the output, innermost last; neighbours that walk evenly in the input are one.
std::vector<Axis> plan_axes(const Dims& in, const std::vector<int64_t>& perm) {
  std::vector<int64_t> strides(in.size(), 1);
  for (size_t a = in.size(); a-- > 1;) strides[a - 1] = strides[a] * in[a];
  std::vector<Axis> axes;
  for (const int64_t source : perm) {
    const Axis axis{in[static_cast<size_t>(source)], strides[static_cast<size_t>(source)], 1};
    if (axis.extent == 1) continue;
    if (!axes.empty() && axes.back().in_stride == axis.in_stride * axis.extent) {
      axes.back() = {axes.back().extent * axis.extent, axis.in_stride, 1};
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) axes.emplace_back();
  for (size_t a = axes.size(); a-- > 1;) axes[a - 1].out_stride = axes[a].out_stride * axes[a].extent;
  return axes;
}

std::vector<int64_t> perm_of(const KernelCall& call) {
  const auto rank = static_cast<int64_t>(call.input_dims(0).size());
  std::vector<int64_t> perm = call.attributes.get_or<std::vector<int64_t>>("perm", {});
  if (perm.empty()) {
    for (int64_t axis = rank; axis-- > 0;) perm.push_back(axis);
  }
  for (int64_t& axis : perm) axis = front_axis(axis, rank);
  return perm;
}

template <class T>
void transpose_plane(const TransposePlane& plane) {
  const auto* in = reinterpret_cast<const T*>(plane.in);
  auto* out = reinterpret_cast<T*>(plane.out);
  constexpr int64_t kTile = 16;
  for (int64_t c0 = 0; c0 < plane.columns; c0 += kTile) {
    const int64_t c1 = std::min(c0 + kTile, plane.columns);
    for (int64_t r = 0; r < plane.rows; ++r) {
      for (int64_t c = c0; c < c1; ++c) out[r * plane.out_stride + c] = in[c * plane.in_stride + r];
    }
  }
}

void transpose_elements(const TransposePlane& plane, size_t element_bytes) {
  struct Sixteen {
    uint64_t halves[2];
  };
  switch (element_bytes) {
    case 1: return transpose_plane<uint8_t>(plane);
    case 2: return transpose_plane<uint16_t>(plane);
    case 4: return HWY_DYNAMIC_DISPATCH(transpose_words)(plane);
    case 8: return transpose_plane<uint64_t>(plane);
    default: return transpose_plane<Sixteen>(plane);
  }
}

class TransposeKernel : public Kernel {
 public:
  TransposeKernel(const Dims& in, const std::vector<int64_t>& perm, DType dtype, int threads)
      : element_bytes_(element_size(dtype)) {
    outer_ = plan_axes(in, perm);
    columns_ = outer_.back();
    outer_.pop_back();
    take_rows();
    for (const Axis& axis : outer_) num_outer_ *= axis.extent;
    chunk_ = columns_.extent <= kThin ? kThinChunk : kChunk;
    row_chunks_ = (rows_.extent + chunk_ - 1) / chunk_;
    if (columns_.in_stride != 1) column_chunks_ = (columns_.extent + kColumnChunk - 1) / kColumnChunk;
    const int64_t elements = num_outer_ * rows_.extent * columns_.extent;
    if (elements == 0) num_outer_ = 0;
    threads_ = useful_threads(threads, 2 * elements);
  }

  void run(const KernelArgs& args) const override {
    const char* in = static_cast<const char*>(args.inputs[0].raw());
    char* out = static_cast<char*>(args.outputs[0].raw());
    for_shares(threads_, num_outer_ * row_chunks_ * column_chunks_, [&](int64_t begin, int64_t end, int) {
      for (int64_t t = begin; t < end; ++t) move_chunk(in, out, t);
    });
  }

 private:
  // Rows and columns per piece of work: planes may be low and wide.
  static constexpr int64_t kChunk = 64, kThinChunk = 2048;
  static constexpr int64_t kThin = 4;  // columns
  static constexpr int64_t kFewRows = 8;
  static constexpr int64_t kColumnChunk = 512;

  // The axis that is dense in the input becomes the rows of the planes; for blocks it is the axis next to them, or the
  // one outside of that where it has few places.
  void take_rows() {
    if (outer_.empty()) return;
    size_t rows = outer_.size() - 1;
    if (columns_.in_stride != 1) {
      while (outer_[rows].in_stride != 1) --rows;
    } else if (rows > 0 && outer_[rows].extent < kFewRows && outer_[rows - 1].extent > outer_[rows].extent) {
      --rows;
    }
    rows_ = outer_[rows];
    outer_.erase(outer_.begin() + static_cast<std::ptrdiff_t>(rows));
  }

  void move_chunk(const char* in, char* out, int64_t chunk) const {
    const int64_t column = chunk % column_chunks_ * kColumnChunk;
    chunk /= column_chunks_;
    int64_t outer = chunk / row_chunks_;
    const int64_t first = chunk % row_chunks_ * chunk_;
    int64_t in_at = first * rows_.in_stride + column * columns_.in_stride;
    int64_t out_at = first * rows_.out_stride + column;
    for (size_t a = outer_.size(); a-- > 0;) {
      const int64_t index = outer % outer_[a].extent;
      outer /= outer_[a].extent;
      in_at += index * outer_[a].in_stride;
      out_at += index * outer_[a].out_stride;
    }
    const auto bytes = static_cast<int64_t>(element_bytes_);
    const int64_t count = std::min(chunk_, rows_.extent - first);
    in += in_at * bytes;
    out += out_at * bytes;
    if (columns_.in_stride != 1) {
      const int64_t columns = std::min(kColumnChunk, columns_.extent - column);
      return transpose_elements({in, out, count, columns, columns_.in_stride, rows_.out_stride}, element_bytes_);
    }
    copy_pieces({out, rows_.out_stride * bytes, in, rows_.in_stride * bytes, columns_.extent * bytes, count});
  }

  const size_t element_bytes_;
  std::vector<Axis> outer_;  // all but rows and columns
  Axis rows_{1, 0, 0};
  Axis columns_;  // dense in the output
  int64_t num_outer_ = 1;
  int64_t chunk_ = kChunk;                      // rows
  int64_t row_chunks_ = 1, column_chunks_ = 1;  // of a plane
  int threads_ = 1;
};

// A transpose whose output lies in memory as its input does, because one of them is channels-last.
class KeptOrderKernel : public Kernel {
 public:
  std::vector<uint32_t> in_place_inputs() const override { return {0}; }
  void run(const KernelArgs& args) const override {
    const void* from = args.inputs[0].raw();
    void* to = args.outputs[0].mutable_data<char>();
    if (from != to) std::memcpy(to, from, args.inputs[0].size_bytes());
  }
};

// What a transpose that moves the channels, axis 1, to the end or back reads and writes so that nothing moves.
std::optional<KernelVariant> kept_order(const KernelCall& call) {
  const std::vector<int64_t> perm = perm_of(call);
  const auto rank = static_cast<int64_t>(perm.size());
  if (!fits_rank(Layout::channels_last, perm.size()) || call.inputs[0].dtype() != DType::f32) return std::nullopt;
  std::vector<int64_t> to_end{0}, from_end{0, rank - 1};
  for (int64_t axis = 2; axis < rank; ++axis) to_end.push_back(axis);
  to_end.push_back(1);
  for (int64_t axis = 1; axis + 1 < rank; ++axis) from_end.push_back(axis);
  KernelVariant variant{.name = "in place", .inputs = {}, .outputs = {}, .cost_us = 0.5, .tag = 1};
  if (perm == to_end) {
    variant.inputs = {Layout::channels_last};
    variant.outputs = {Layout::row_major};
  } else if (perm == from_end) {
    variant.inputs = {Layout::row_major};
    variant.outputs = {Layout::channels_last};
  } else {
    return std::nullopt;
  }
  return variant;
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kBytesPerUsAndThread = 10e3;
  const double bytes = static_cast<double>(size_of(call.inputs[0]));
  std::vector<KernelVariant> result{
      {.name = "", .inputs = {}, .outputs = {}, .cost_us = 2 + bytes / kBytesPerUsAndThread / call.threads}};
  if (auto variant = kept_order(call)) result.push_back(std::move(*variant));
  return result;
}

Prepared prepare(const KernelCall& call) {
  if (call.variant && call.variant->tag == 1) return {std::make_unique<KeptOrderKernel>(), ""};
  return {std::make_unique<TransposeKernel>(call.input_dims(0), perm_of(call), call.inputs[0].dtype(), call.threads),
          ""};
}

}  // namespace

std::unique_ptr<Kernel> reorder_by_transpose(const ReorderCall& call) {
  const Dims dims = call.type.shape().static_dims();
  int64_t positions = 1;
  for (size_t axis = 2; axis < dims.size(); ++axis) positions *= dims[axis];
  const bool to_channels_last = call.from == Layout::row_major && call.to == Layout::channels_last;
  const bool to_row_major = call.from == Layout::channels_last && call.to == Layout::row_major;
  if (!to_channels_last && !to_row_major) return nullptr;
  const Dims in = to_row_major ? Dims{dims[0], positions, dims[1]} : Dims{dims[0], dims[1], positions};
  return std::make_unique<TransposeKernel>(in, std::vector<int64_t>{0, 2, 1}, call.type.dtype(), call.threads);
}

KernelDef transpose_kernel() {
  return {.name = "cpu.transpose_simd",
          .op = transpose_def().name,
          .why_not = why_not_bytes,
          .prepare = prepare,
          .variants = variants};
}

}  // namespace autograph::simd
#endif  // HWY_ONCE
