// The reductions in f32 over any axes. Sums and products are accumulated in f64, as the reference does it; largest and
// smallest elements keep NaN. Where the innermost axis is kept, neighbouring results are computed side by side.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "backends/cpu/reduction/reduced_axes.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/reduction/row_reduction.h"
#include "backends/cpu/threads/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/reduction/reduction.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/reduction/totals-inl.h"
#include "backends/cpu/simd/rows-inl.h"
#include "backends/cpu/simd/vector_math-inl.h"
#include "ops/defs.h"

// Seen by the code of every instruction set, so written once.
#ifndef AG_SIMD_REDUCTION
#define AG_SIMD_REDUCTION
namespace autograph::simd {

enum class Total { sum, magnitudes, squares, product, largest, smallest, exponentials };
// Results a strip has room for beyond its own: the most lanes of f64 in a vector.
constexpr int64_t kPadding = 8;

enum class Finish { none, mean, root, logarithm };

struct Reduction {
  ReducedAxes axes;
  Total total;
  Finish finish;
  int64_t strip;  // results that are computed side by side
};

// The part of a reduction that one thread computes, in units of groups, or of strips where results lie side by side.
struct ReductionShare {
  const float* x;
  float* y;
  double* scratch;  // see scratch_per_thread()
  int64_t begin, end;
};

// Of rows of no more elements the loop over one takes less time than what comes before and behind it.
constexpr int64_t kMaxShortRow = 8;

inline bool has_short_rows(const ReducedAxes& axes) {
  const bool is_dense = axes.offsets.size() == 1 && axes.extents.size() == 1 && axes.strides[0] == axes.run;
  return axes.is_row && is_dense && axes.run <= kMaxShortRow;
}

inline float finished(const Reduction& reduction, double total) {
  switch (reduction.finish) {
    case Finish::mean: return static_cast<float>(total / static_cast<double>(reduction.axes.combined()));
    case Finish::root: return static_cast<float>(std::sqrt(total));
    case Finish::logarithm: return static_cast<float>(std::log(total));
    default: return static_cast<float>(total);
  }
}

// log(sum(exp(x))) of the largest element and of the sum of what it was taken off from.
inline float log_sum_exp(float largest, double sum) {
  return std::isfinite(largest) ? static_cast<float>(static_cast<double>(largest) + std::log(sum)) : largest;
}

}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

// totals[i] = step(totals[i], rows[r][i]) for `count` columns of kRows rows; totals has room for whole vectors.
template <class P, size_t kRows>
HWY_INLINE void add_rows(const float* x, const int64_t* offsets, typename P::T* totals, size_t count) {
  const typename P::D d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    auto total = hn::LoadU(d, totals + i);
    for (size_t r = 0; r < kRows; ++r) total = P::step(total, P::load(x + offsets[r] + i));
    hn::StoreU(total, d, totals + i);
  }
  if (i == count) return;
  auto total = hn::LoadU(d, totals + i);
  for (size_t r = 0; r < kRows; ++r) {
    total = P::step(total, P::load_first(x + offsets[r] + i, count - i, P::kNothing));
  }
  hn::StoreU(total, d, totals + i);
}

// `count` neighbouring columns of a group, to `totals`.
template <class P>
HWY_INLINE void total_of_columns(const ReducedAxes& axes, const float* x, typename P::T* totals, size_t count) {
  const typename P::D d;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) hn::StoreU(hn::Set(d, P::kNothing), d, totals + i);
  const int64_t* offsets = axes.offsets.data();
  size_t r = 0;
  for (; r + 4 <= axes.offsets.size(); r += 4) add_rows<P, 4>(x, offsets + r, totals, count);
  for (; r < axes.offsets.size(); ++r) add_rows<P, 1>(x, offsets + r, totals, count);
}

// Calls visit(x, y, count) for every strip of a share.
template <class Visit>
HWY_INLINE void for_strips(const Reduction& reduction, const ReductionShare& share, const Visit& visit) {
  const ReducedAxes& axes = reduction.axes;
  const int64_t strips = (axes.run + reduction.strip - 1) / reduction.strip;
  for (int64_t s = share.begin; s < share.end; ++s) {
    const int64_t column = s % strips * reduction.strip;
    const auto count = static_cast<size_t>(std::min(reduction.strip, axes.run - column));
    visit(share.x + axes.start(s / strips) + column, share.y + s / strips * axes.run + column, count);
  }
}

// Rows of a few elements, one behind the other: turned some at a time, so that their results are computed side by side.
template <class P>
void reduce_short_rows(const Reduction& reduction, const ReductionShare& share) {
  constexpr int64_t kRows = 64;
  const typename P::D d;
  const int64_t length = reduction.axes.run;
  float turned[kMaxShortRow * kRows];
  typename P::T totals[kRows];
  for (int64_t row = share.begin; row < share.end; row += kRows) {
    const int64_t rows = std::min(kRows, share.end - row);
    const float* x = share.x + row * length;
    for (int64_t j = 0; j < length; ++j) {
      for (int64_t i = 0; i < rows; ++i) turned[j * kRows + i] = x[i * length + j];
    }
    for (int64_t i = 0; i < kRows; i += static_cast<int64_t>(hn::Lanes(d))) {
      hn::StoreU(hn::Set(d, P::kNothing), d, totals + i);
    }
    for (int64_t at = 0; at < length * kRows; at += kRows) {
      add_rows<P, 1>(turned, &at, totals, static_cast<size_t>(rows));
    }
    for (int64_t i = 0; i < rows; ++i) share.y[row + i] = finished(reduction, totals[i]);
  }
}

template <class P>
void reduce(const Reduction& reduction, const ReductionShare& share) {
  const ReducedAxes& axes = reduction.axes;
  if (has_short_rows(axes)) return reduce_short_rows<P>(reduction, share);
  if (axes.is_row) {
    for (int64_t g = share.begin; g < share.end; ++g) {
      share.y[g] = finished(reduction, total_of_rows<P>(axes, share.x + axes.start(g)));
    }
    return;
  }
  auto* totals = reinterpret_cast<typename P::T*>(share.scratch);
  for_strips(reduction, share, [&](const float* x, float* y, size_t count) HWY_ATTR {
    total_of_columns<P>(axes, x, totals, count);
    for (size_t i = 0; i < count; ++i) y[i] = finished(reduction, totals[i]);
  });
}

HWY_INLINE float log_sum_exp_of_rows(const ReducedAxes& axes, const float* x) {
  const hn::ScalableTag<float> d;
  const float largest = total_of_rows<LargestOf>(axes, x);
  if (!std::isfinite(largest)) return largest;
  const auto base = hn::Set(d, largest);
  const auto term = [&](hn::Vec<decltype(d)> v) HWY_ATTR { return exp_nonpositive(d, hn::Sub(v, base)); };
  double sum = 0;
  for (const int64_t offset : axes.offsets) {
    sum += sum_row(d, x + offset, static_cast<size_t>(axes.run), hn::Set(d, -kInfinity), term);
  }
  return log_sum_exp(largest, sum);
}

// sums[i] = sum of exp(x - largest[i]) over the rows of a group.
HWY_INLINE void sums_of_exponentials(const ReducedAxes& axes, const float* x, const float* largest, double* sums,
                                     size_t count) {
  const Wide::D wide;
  const Wide::Narrow d;
  const size_t lanes = hn::Lanes(wide);
  for (size_t i = 0; i < count; i += lanes) {
    const auto base = hn::LoadU(d, largest + i);
    const size_t width = std::min(lanes, count - i);
    auto sum = hn::Zero(wide);
    for (const int64_t offset : axes.offsets) {
      const float* at = x + offset + i;
      const auto v = width == lanes ? hn::LoadU(d, at) : load_some(d, at, width, hn::Zero(d));
      sum = hn::Add(sum, hn::PromoteTo(wide, exp_nonpositive(d, hn::Sub(v, base))));
    }
    hn::StoreU(sum, wide, sums + i);
  }
}

void reduce_exponentials(const Reduction& reduction, const ReductionShare& share) {
  const ReducedAxes& axes = reduction.axes;
  if (axes.is_row) {
    for (int64_t g = share.begin; g < share.end; ++g) {
      share.y[g] = log_sum_exp_of_rows(axes, share.x + axes.start(g));
    }
    return;
  }
  double* sums = share.scratch;
  auto* largest = reinterpret_cast<float*>(sums + reduction.strip + kPadding);
  for_strips(reduction, share, [&](const float* x, float* y, size_t count) HWY_ATTR {
    total_of_columns<LargestOf>(axes, x, largest, count);
    sums_of_exponentials(axes, x, largest, sums, count);
    for (size_t i = 0; i < count; ++i) y[i] = log_sum_exp(largest[i], sums[i]);
  });
}

void reduce_share(const Reduction& reduction, const ReductionShare& share) {
  switch (reduction.total) {
    case Total::sum: return reduce<SumOf>(reduction, share);
    case Total::magnitudes: return reduce<SumOfMagnitudes>(reduction, share);
    case Total::squares: return reduce<SumOfSquares>(reduction, share);
    case Total::product: return reduce<ProductOf>(reduction, share);
    case Total::largest: return reduce<LargestOf>(reduction, share);
    case Total::smallest: return reduce<SmallestOf>(reduction, share);
    case Total::exponentials: return reduce_exponentials(reduction, share);
  }
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(reduce_share);

struct Form {
  std::string_view kernel, op;
  Total total;
  Finish finish;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> kForms{
      {"cpu.reduce_sum", reduce_sum_def().name, Total::sum, Finish::none},
      {"cpu.reduce_mean", reduce_mean_def().name, Total::sum, Finish::mean},
      {"cpu.reduce_log_sum", reduce_log_sum_def().name, Total::sum, Finish::logarithm},
      {"cpu.reduce_l1", reduce_l1_def().name, Total::magnitudes, Finish::none},
      {"cpu.reduce_l2", reduce_l2_def().name, Total::squares, Finish::root},
      {"cpu.reduce_sum_square", reduce_sum_square_def().name, Total::squares, Finish::none},
      {"cpu.reduce_prod", reduce_prod_def().name, Total::product, Finish::none},
      {"cpu.reduce_max", reduce_max_def().name, Total::largest, Finish::none},
      {"cpu.reduce_min", reduce_min_def().name, Total::smallest, Finish::none},
      {"cpu.reduce_log_sum_exp", reduce_log_sum_exp_def().name, Total::exponentials, Finish::logarithm},
  };
  return kForms;
}

const Form* form_of(std::string_view op) {
  const auto form = std::find_if(forms().begin(), forms().end(), [&](const Form& f) { return f.op == op; });
  return form == forms().end() ? nullptr : &*form;
}

// Which axes the call reduces; nothing when they are not known.
std::optional<std::vector<bool>> reduced_flags(const KernelCall& call) {
  const auto rank = static_cast<size_t>(call.inputs[0].shape().rank());
  std::vector<int64_t> axes;
  if (call.has_input(1)) {
    if (!call.constant(1)) return std::nullopt;
    axes = call.constant(1)->to_i64();
  }
  if (axes.empty()) return std::vector<bool>(rank, !call.attributes.flag("noop_with_empty_axes"));
  return axis_flags(axes, rank);
}

class ReductionKernel : public Kernel {
 public:
  ReductionKernel(const KernelCall& call, const Form& form)
      : reduction_{ReducedAxes(call.input_dims(0), *reduced_flags(call)), form.total, form.finish, 0} {
    const int64_t work = form.total == Total::exponentials ? 8 : 1;
    threads_ = useful_threads(call.threads, work * call.inputs[0].shape().num_elements().value());
    units_ = reduction_.axes.groups;
    if (reduction_.axes.is_row) return;
    const int64_t run = reduction_.axes.run;
    // Short enough for the totals to stay in cache, and one for each thread at least.
    const int64_t per_thread = units_ >= threads_ ? run : (run + threads_ - 1) / threads_;
    reduction_.strip = std::min<int64_t>(kStrip, (per_thread + kLanes - 1) / kLanes * kLanes);
    units_ *= (run + reduction_.strip - 1) / reduction_.strip;
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(threads_) * scratch_per_thread(); }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[0].data<float>();
    float* y = args.outputs[0].mutable_data<float>();
    for_shares(threads_, units_, [&](int64_t begin, int64_t end, int thread) {
      auto* scratch = static_cast<char*>(args.scratch) + static_cast<size_t>(thread) * scratch_per_thread();
      HWY_DYNAMIC_DISPATCH(reduce_share)(reduction_, {x, y, reinterpret_cast<double*>(scratch), begin, end});
    });
  }

 private:
  static constexpr int64_t kStrip = 512;
  static constexpr int64_t kLanes = 2 * kPadding;  // of f32

  // A total for each result of a strip and a largest element, both with room for a vector more.
  size_t scratch_per_thread() const {
    if (reduction_.axes.is_row) return 0;
    return 2 * static_cast<size_t>(reduction_.strip + kPadding) * sizeof(double);
  }

  Reduction reduction_;
  int64_t units_ = 0;
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  if (call.inputs[0].dtype() != DType::f32) return "only f32";
  if (call.inputs[0].shape().num_elements() == 0) return "a tensor without elements";
  return reduced_flags(call) ? "" : "axes that are not known";
}

Prepared prepare(const KernelCall& call) {
  return {std::make_unique<ReductionKernel>(call, *form_of(call.op.name)), ""};
}

}  // namespace

std::optional<ReducedAxes> reduced_axes(const KernelCall& call) {
  if (!form_of(call.op.name) || !why_not(call).empty()) return std::nullopt;
  return ReducedAxes(call.input_dims(0), *reduced_flags(call));
}

struct RowReduction::Impl {
  Reduction reduction;
};

// The number of rows is that of run().
RowReduction::RowReduction(std::string_view op, int64_t length) {
  const Form* form = form_of(op);
  const ReducedAxes axes({std::numeric_limits<int32_t>::max(), length}, {false, true});
  impl_ = std::make_unique<const Impl>(Impl{{axes, form->total, form->finish, 0}});
}

RowReduction::~RowReduction() = default;

void RowReduction::run(const float* x, int64_t rows, float* y) const {
  HWY_DYNAMIC_DISPATCH(reduce_share)(impl_->reduction, {x, y, nullptr, 0, rows});
}

std::vector<KernelDef> reduction_kernels() {
  std::vector<KernelDef> kernels;
  for (const Form& form : forms()) {
    kernels.push_back({.name = form.kernel, .op = form.op, .why_not = why_not, .prepare = prepare});
  }
  return kernels;
}

}  // namespace autograph::simd
#endif  // HWY_ONCE
