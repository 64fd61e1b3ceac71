#include "backends/cpu/simd/conv/tap_products.h"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/conv/tap_products.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/conv/tap_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr int kVectors = 2;  // of a panel
// With two vectors of sums for each row, two of weights and an input: 15 of 16 registers, or 27 of 32.
constexpr int kRows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;
// A panel of weights stays in the first cache while it meets all rows, which come from the second one.
constexpr int64_t kDepth = 256;
// Between gathered rows: no power of two.
constexpr int64_t kRowStride = kDepth + 16;
// Behind rows of sums, for the same reason.
constexpr int64_t kGap = 16;

HWY_INLINE int64_t width_of_panel() { return kVectors * lanes_of_target(); }

// Some rows of inputs with a part of a panel.
struct Product {
  const float* a;
  const float* panel;
  const float* bias;  // null where there are sums already
  int64_t depth;
  float* sums;
  int64_t sums_stride;
};

template <int kCount, int kUsed>
HWY_NOINLINE void multiply_rows(const Product& product) {
  const D d;
  const int64_t lanes = lanes_of_target();
  V sums[kCount][kUsed];
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kUsed; ++v) {
      const float* from = product.bias ? product.bias : product.sums + r * product.sums_stride;
      sums[r][v] = hn::LoadU(d, from + v * lanes);
    }
  }
  const float* a = product.a;
  const float* panel = product.panel;
  for (int64_t k = 0; k < product.depth; ++k, ++a, panel += kVectors * lanes) {
    V weights[kUsed];
#pragma GCC unroll 2
    for (int v = 0; v < kUsed; ++v) weights[v] = hn::LoadU(d, panel + v * lanes);
#pragma GCC unroll 12
    for (int r = 0; r < kCount; ++r) {
      const V input = hn::Set(d, a[r * kRowStride]);
#pragma GCC unroll 2
      for (int v = 0; v < kUsed; ++v) sums[r][v] = hn::MulAdd(input, weights[v], sums[r][v]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kUsed; ++v) hn::StoreU(sums[r][v], d, product.sums + r * product.sums_stride + v * lanes);
  }
}

template <int kUsed, int kCount = kRows>
void multiply_some_rows(const Product& product, int64_t rows) {
  if constexpr (kCount > 1) {
    if (rows < kCount) return multiply_some_rows<kUsed, kCount - 1>(product, rows);
  }
  multiply_rows<kCount, kUsed>(product);
}

// Some columns of one class, of the task's rows.
class ClassProduct {
 public:
  ClassProduct(const TapTask& task, const TapClass& c, const float* packed, float* rows, float* sums)
      : task_(task), class_(c), depth_(task.shape.depth(c)), packed_(packed), rows_(rows), sums_(sums) {}

  // The panels from `begin` to `end`.
  void run(int64_t begin, int64_t end) {
    columns_ = std::min(end * width_of_panel(), task_.shape.columns(class_)) - begin * width_of_panel();
    stride_ = (end - begin) * width_of_panel() + kGap;
    is_first_ = true;
    for_tap_runs(task_, class_, [&](int64_t first_tap, int64_t end_tap) {
      const int64_t first = first_tap * task_.shape.channels.in, last = end_tap * task_.shape.channels.in;
      const int64_t turns = (last - first + kDepth - 1) / kDepth, step = (last - first + turns - 1) / turns;
      for (int64_t k = first; k < last; k += step) add_depth(begin, end, k, std::min(step, last - k));
    });
    if (is_first_) add_depth(begin, end, 0, 0);
    write_sums(task_, class_, {sums_, stride_, begin * width_of_panel(), columns_});
  }

 private:
  void add_depth(int64_t begin, int64_t end, int64_t k, int64_t depth) {
    gather_rows(task_, class_, k, depth, rows_, kRowStride);
    for (int64_t p = begin; p < end; ++p) {
      const float* panel = packed_ + p * width_of_panel() * (1 + depth_);
      Product product{rows_, panel + width_of_panel() * (1 + k),     is_first_ ? panel : nullptr,
                      depth, sums_ + (p - begin) * width_of_panel(), stride_};
      const bool is_narrow = columns_ - (p - begin) * width_of_panel() <= lanes_of_target();
      for (int64_t r = 0; r < task_.rows; r += kRows) {
        const int64_t rows = std::min<int64_t>(kRows, task_.rows - r);
        is_narrow ? multiply_some_rows<1>(product, rows) : multiply_some_rows<kVectors>(product, rows);
        product.a += kRows * kRowStride;
        product.sums += kRows * stride_;
      }
    }
    is_first_ = false;
  }

  const TapTask& task_;
  const TapClass& class_;
  const int64_t depth_;
  const float* packed_;
  float* rows_;
  float* sums_;
  int64_t columns_ = 0, stride_ = 0;
  bool is_first_ = true;
};

void run(const TapTask& task) {
  const float* const packed = task.packed + task.group * task.panels.of_group;
  float* const sums = task.scratch + task.rows * kRowStride;
  const int64_t at_once = kTapColumnsAtOnce / width_of_panel();
  for (size_t i = 0; i < task.shape.classes.size(); ++i) {
    const TapClass& c = task.shape.classes[i];
    const int64_t panels = (task.shape.columns(c) + width_of_panel() - 1) / width_of_panel();
    ClassProduct product(task, c, packed + task.panels.begins[i], task.scratch, sums);
    const int64_t end = panels * (task.part + 1) / task.parts;
    for (int64_t p = panels * task.part / task.parts; p < end; p += at_once) product.run(p, std::min(p + at_once, end));
  }
}

int64_t rows_of_target() { return kRows; }
int64_t columns_of_target() { return width_of_panel(); }

// Of sums: as many columns as there are, or as are kept at a time.
int64_t scratch_size(int64_t rows, int64_t columns) { return rows * (kRowStride + columns + kGap); }

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(rows_of_target);
HWY_EXPORT(columns_of_target);
HWY_EXPORT(scratch_size);
HWY_EXPORT(run);

int64_t tap_rows() { return HWY_DYNAMIC_DISPATCH(rows_of_target)(); }
int64_t tap_columns() { return HWY_DYNAMIC_DISPATCH(columns_of_target)(); }

int64_t tap_scratch_size(const TapShape& shape, int64_t rows) {
  int64_t most = 0;
  for (const TapClass& c : shape.classes) most = std::max(most, shape.columns(c));
  const int64_t width = tap_columns();
  const int64_t columns = std::min((most + width - 1) / width * width, kTapColumnsAtOnce);
  return HWY_DYNAMIC_DISPATCH(scratch_size)(rows, columns);
}

void run_tap_products(const TapTask& task) { HWY_DYNAMIC_DISPATCH(run)(task); }

}  // namespace autograph::simd
#endif  // HWY_ONCE
