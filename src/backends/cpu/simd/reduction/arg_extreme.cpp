// arg_max, arg_min and hardmax of f32 along any axis. A row is read twice, for its largest element and for where that
// is; columns are searched side by side. NaN counts as more extreme than any number, so the search for the smallest
// element is that for the largest one of the negated elements.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/cpu/axis_blocks.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/threads/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/reduction/arg_extreme.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/reduction/totals-inl.h"
#include "backends/cpu/simd/rows-inl.h"
#include "ops/defs.h"

// Seen by the code of every instruction set, so written once.
#ifndef AG_SIMD_ARG_EXTREME
#define AG_SIMD_ARG_EXTREME
namespace autograph::simd {

struct ExtremeSearch {
  AxisBlocks blocks;
  bool smallest;
  bool last;  // of equal elements
};

// Units of a search that one thread does.
struct SearchShare {
  const float* x;
  int64_t begin, end;
};

}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;

template <bool kSmallest>
HWY_INLINE V load_signed(const float* x) {
  const V v = hn::LoadU(D(), x);
  return kSmallest ? hn::Neg(v) : v;
}

template <bool kSmallest>
HWY_INLINE V load_signed_first(const float* x, size_t count) {
  const V v = load_some(D(), x, count, hn::Set(D(), kSmallest ? kInfinity : -kInfinity));
  return kSmallest ? hn::Neg(v) : v;
}

template <bool kSmallest>
HWY_INLINE float extreme_of(const float* x, size_t count) {
  const size_t lanes = hn::Lanes(D());
  V m0 = hn::Set(D(), -kInfinity), m1 = m0, m2 = m0, m3 = m0;
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    m0 = LargestOf::step(m0, load_signed<kSmallest>(x + i));
    m1 = LargestOf::step(m1, load_signed<kSmallest>(x + i + lanes));
    m2 = LargestOf::step(m2, load_signed<kSmallest>(x + i + 2 * lanes));
    m3 = LargestOf::step(m3, load_signed<kSmallest>(x + i + 3 * lanes));
  }
  for (; i + lanes <= count; i += lanes) m0 = LargestOf::step(m0, load_signed<kSmallest>(x + i));
  if (i < count) m1 = LargestOf::step(m1, load_signed_first<kSmallest>(x + i, count - i));
  const float extreme = LargestOf::of_lanes(LargestOf::merge(LargestOf::merge(m0, m1), LargestOf::merge(m2, m3)));
  return kSmallest ? -extreme : extreme;
}

// The first or last index at which x is `value`, which is there and may be NaN.
template <bool kLast>
HWY_INLINE int64_t index_of(const float* x, size_t count, float value) {
  const size_t lanes = hn::Lanes(D());
  const V wanted = hn::Set(D(), value);
  const bool is_nan = std::isnan(value);
  const auto is_value = [&](float v) { return v == value || (is_nan && std::isnan(v)); };
  const auto has_value = [&](const float* at) HWY_ATTR {
    const V v = hn::LoadU(D(), at);
    return !hn::AllFalse(D(), is_nan ? hn::IsNaN(v) : hn::Eq(v, wanted));
  };
  if (kLast) {
    size_t end = count;
    while (end >= lanes && !has_value(x + end - lanes)) end -= lanes;
    while (end > 1 && !is_value(x[end - 1])) --end;
    return static_cast<int64_t>(end) - 1;
  }
  size_t i = 0;
  while (i + lanes <= count && !has_value(x + i)) i += lanes;
  while (i + 1 < count && !is_value(x[i])) ++i;
  return static_cast<int64_t>(i);
}

// Indices of the extremes of neighbouring columns, `width` of which count.
template <bool kSmallest, bool kLast>
HWY_INLINE VI indices_of_columns(const float* x, int64_t extent, int64_t stride, size_t width) {
  const D d;
  const DI di;
  const bool full = width == hn::Lanes(d);
  const auto load = [&](int64_t i) HWY_ATTR {
    const float* at = x + i * stride;
    return full ? load_signed<kSmallest>(at) : load_signed_first<kSmallest>(at, width);
  };
  V best = load(0);
  VI index = hn::Zero(di);
  for (int64_t i = 1; i < extent; ++i) {
    const V v = load(i);
    const auto beats =
        kLast ? hn::Or(hn::Ge(v, best), hn::IsNaN(v)) : hn::And(hn::Not(hn::Le(v, best)), hn::Not(hn::IsNaN(best)));
    best = hn::IfThenElse(beats, v, best);
    index = hn::IfThenElse(hn::RebindMask(di, beats), hn::Set(di, static_cast<int32_t>(i)), index);
  }
  return index;
}

// Where indices go: to the output.
struct IndexOutput {
  const AxisBlocks& blocks;
  int64_t* y;

  void row(int64_t r, int64_t index) const { y[r] = index; }
  void columns(int64_t block, int64_t column, size_t width, VI indices) const {
    HWY_ALIGN int32_t buffer[HWY_MAX_BYTES / sizeof(int32_t)];
    hn::Store(indices, DI(), buffer);
    for (size_t i = 0; i < width; ++i) y[block * blocks.inner + column + static_cast<int64_t>(i)] = buffer[i];
  }
};

// Where indices go: 1 at the index, 0 elsewhere.
struct OneHotOutput {
  const AxisBlocks& blocks;
  float* y;

  void row(int64_t r, int64_t index) const {
    std::fill_n(y + r * blocks.extent, blocks.extent, 0.0F);
    y[r * blocks.extent + index] = 1;
  }
  void columns(int64_t block, int64_t column, size_t width, VI indices) const {
    const D d;
    for (int64_t i = 0; i < blocks.extent; ++i) {
      const auto is_here = hn::RebindMask(d, hn::Eq(indices, hn::Set(DI(), static_cast<int32_t>(i))));
      const V ones = hn::IfThenElseZero(is_here, hn::Set(d, 1.0F));
      float* to = y + (block * blocks.extent + i) * blocks.inner + column;
      if (width == hn::Lanes(d))
        hn::StoreU(ones, d, to);
      else
        store_some(d, ones, to, width);
    }
  }
};

template <bool kSmallest, bool kLast, class Output>
HWY_INLINE void search_share(const AxisBlocks& blocks, const SearchShare& share, const Output& output) {
  const auto extent = static_cast<size_t>(blocks.extent);
  if (blocks.inner == 1) {
    for (int64_t r = share.begin; r < share.end; ++r) {
      const float* row = share.x + r * blocks.extent;
      output.row(r, index_of<kLast>(row, extent, extreme_of<kSmallest>(row, extent)));
    }
    return;
  }
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  blocks.for_strips(share.begin, share.end, [&](int64_t block, int64_t column, int64_t count) HWY_ATTR {
    const float* x = share.x + block * blocks.extent * blocks.inner;
    for (int64_t c = column; c < column + count; c += lanes) {
      const auto width = static_cast<size_t>(std::min(lanes, column + count - c));
      const VI indices = indices_of_columns<kSmallest, kLast>(x + c, blocks.extent, blocks.inner, width);
      output.columns(block, c, width, indices);
    }
  });
}

void write_indices(const ExtremeSearch& search, const SearchShare& share, int64_t* y) {
  const IndexOutput output{search.blocks, y};
  if (search.smallest && search.last) return search_share<true, true>(search.blocks, share, output);
  if (search.smallest) return search_share<true, false>(search.blocks, share, output);
  if (search.last) return search_share<false, true>(search.blocks, share, output);
  search_share<false, false>(search.blocks, share, output);
}

void write_one_hot(const ExtremeSearch& search, const SearchShare& share, float* y) {
  search_share<false, false>(search.blocks, share, OneHotOutput{search.blocks, y});
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(write_indices);
HWY_EXPORT(write_one_hot);

class ExtremeKernel : public Kernel {
 public:
  ExtremeKernel(const KernelCall& call, bool smallest, bool one_hot)
      : search_{AxisBlocks(call.input_dims(0), call.attributes.integer("axis")), smallest,
                !one_hot && call.attributes.flag("select_last_index")},
        one_hot_(one_hot),
        threads_(useful_threads(call.threads, search_.blocks.elements())) {}

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[0].data<float>();
    for_shares(threads_, search_.blocks.units(), [&](int64_t begin, int64_t end, int) {
      const SearchShare share{x, begin, end};
      if (one_hot_)
        HWY_DYNAMIC_DISPATCH(write_one_hot)(search_, share, args.outputs[0].mutable_data<float>());
      else
        HWY_DYNAMIC_DISPATCH(write_indices)(search_, share, args.outputs[0].mutable_data<int64_t>());
    });
  }

 private:
  const ExtremeSearch search_;
  const bool one_hot_;
  const int threads_;
};

std::string why_not(const KernelCall& call) {
  if (call.inputs[0].dtype() != DType::f32) return "only f32";
  if (call.inputs[0].shape().num_elements() == 0) return "a tensor without elements";
  const AxisBlocks blocks(call.input_dims(0), call.attributes.integer("axis"));
  return blocks.extent <= std::numeric_limits<int32_t>::max() ? "" : "more than 2^31 elements along the axis";
}

Prepared prepare_arg_max(const KernelCall& call) { return {std::make_unique<ExtremeKernel>(call, false, false), ""}; }
Prepared prepare_arg_min(const KernelCall& call) { return {std::make_unique<ExtremeKernel>(call, true, false), ""}; }
Prepared prepare_hardmax(const KernelCall& call) { return {std::make_unique<ExtremeKernel>(call, false, true), ""}; }

}  // namespace

std::vector<KernelDef> arg_extreme_kernels() {
  return {{"cpu.arg_max_simd", arg_max_def().name, why_not, prepare_arg_max},
          {"cpu.arg_min_simd", arg_min_def().name, why_not, prepare_arg_min},
          {"cpu.hardmax_simd", hardmax_def().name, why_not, prepare_hardmax}};
}

}  // namespace autograph::simd
#endif  // HWY_ONCE
