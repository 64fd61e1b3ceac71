// The reductions: each output element combines the elements of x along `axes`.
//
// Over nothing they give the identity: sum, l1, l2 and sum_square 0, prod 1, max and min the lowest and the highest
// value of the dtype (infinities for floats), log_sum and log_sum_exp -inf, mean NaN (0 for integers). Integer sums and
// products wrap; other integer results are computed in f64, truncated and saturated. max and min propagate NaN and take
// false < true. With noop_with_empty_axes and no axes, each element is reduced by itself: reduce_sum_square squares.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/number.h"
#include "ops/gradients.h"
#include "ops/reduction/axes.h"
#include "ops/sample.h"
#include "tensor/element_types.h"
#include "tensor/front_axis.h"

namespace autograph {

namespace {

using ReducedTypes = Concat<FloatTypes, TypeList<int32_t, int64_t, uint32_t, uint64_t>>;
using OrderedTypes = Concat<ReducedTypes, TypeList<int8_t, uint8_t, bool>>;

constexpr DTypeSet kReduced = dtypes::kFloat | DTypeSet{DType::i32, DType::i64, DType::u32, DType::u64};
constexpr DTypeSet kOrdered = kReduced | DTypeSet{DType::i8, DType::u8, DType::boolean};

// Folds `step(total, value)` over the elements, in the accumulator type of T.
template <class T, class Step>
AccumulateType<T> fold(std::span<const T> values, AccumulateType<T> start, Step step) {
  AccumulateType<T> total = start;
  for (const T& value : values) total = step(total, static_cast<AccumulateType<T>>(value));
  return total;
}

// The same in f64 whatever T is.
template <class T, class Step>
double fold_real(std::span<const T> values, Step step) {
  double total = 0;
  for (const T& value : values) total = step(total, static_cast<double>(value));
  return total;
}

struct Sum {
  template <class T>
  static T reduce(std::span<const T> values) {
    using A = AccumulateType<T>;
    return static_cast<T>(fold<T>(values, A(0), [](A a, A b) { return wrapping_add(a, b); }));
  }
};

struct Mean {
  template <class T>
  static T reduce(std::span<const T> values) {
    const double sum = fold_real<T>(values, [](double a, double b) { return a + b; });
    return from_double<T>(sum / static_cast<double>(values.size()));
  }
};

struct Prod {
  template <class T>
  static T reduce(std::span<const T> values) {
    using A = AccumulateType<T>;
    return static_cast<T>(fold<T>(values, A(1), [](A a, A b) { return wrapping_mul(a, b); }));
  }
};

struct Max {
  template <class T>
  static T reduce(std::span<const T> values) {
    using A = AccumulateType<T>;
    using Limits = std::numeric_limits<A>;
    const A start = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    return static_cast<T>(fold<T>(values, start, [](A a, A b) { return max_nan(a, b); }));
  }
};

struct Min {
  template <class T>
  static T reduce(std::span<const T> values) {
    using A = AccumulateType<T>;
    using Limits = std::numeric_limits<A>;
    const A start = Limits::has_infinity ? Limits::infinity() : Limits::max();
    return static_cast<T>(fold<T>(values, start, [](A a, A b) { return min_nan(a, b); }));
  }
};

struct L1 {
  template <class T>
  static T reduce(std::span<const T> values) {
    using A = AccumulateType<T>;
    const auto step = [](A a, A b) { return b < A(0) ? wrapping_sub(a, b) : wrapping_add(a, b); };
    return static_cast<T>(fold<T>(values, A(0), step));
  }
};

struct L2 {
  template <class T>
  static T reduce(std::span<const T> values) {
    return from_double<T>(std::sqrt(fold_real<T>(values, [](double a, double b) { return a + b * b; })));
  }
};

struct SumSquare {
  template <class T>
  static T reduce(std::span<const T> values) {
    using A = AccumulateType<T>;
    return static_cast<T>(fold<T>(values, A(0), [](A a, A b) { return wrapping_add(a, wrapping_mul(b, b)); }));
  }
};

struct LogSum {
  template <class T>
  static T reduce(std::span<const T> values) {
    return from_double<T>(std::log(fold_real<T>(values, [](double a, double b) { return a + b; })));
  }
};

// log(sum(exp(x))) = m + log(sum(exp(x - m))) with m = max(x), which cannot overflow.
struct LogSumExp {
  template <class T>
  static T reduce(std::span<const T> values) {
    double largest = -std::numeric_limits<double>::infinity();
    for (const T& value : values) largest = max_nan(largest, static_cast<double>(value));
    if (!std::isfinite(largest)) return from_double<T>(largest);
    const double sum = fold_real<T>(values, [&](double a, double b) { return a + std::exp(b - largest); });
    return from_double<T>(largest + std::log(sum));
  }
};

template <class Reduction, class Types>
void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const ReductionWalk walk = walk_of(call);
  dispatch<Types>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    T* out = call.output(0).mutable_data<T>();
    const size_t count = walk.offsets.size();
    const auto values = std::make_unique<T[]>(count);
    for (const int64_t start : walk.starts) {
      for (size_t i = 0; i < count; ++i) values[i] = in[start + walk.offsets[i]];
      *out++ = Reduction::template reduce<T>(std::span<const T>(values.get(), count));
    }
  });
}

// Axes became an input at opset 18 (reduce_sum: 13).
std::vector<ValueId> import_onnx(ForeignNode& node) {
  node.integers_to_input("axes", 1);
  return node.emit();
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 0, 4);
  const auto rank = static_cast<int64_t>(dims.size());
  OpSample call{.inputs = {draw_tensor(random, DType::f32, dims, 0.5, 2.0)},
                .attributes = {{"keepdims", draw(random, 0, 1)}, {"noop_with_empty_axes", draw(random, 0, 1)}}};
  if (draw_bool(random)) {
    std::vector<int64_t> axes;
    for (int64_t axis = 0; axis < rank; ++axis) {
      if (draw_bool(random)) axes.push_back(draw_bool(random) ? axis : axis - rank);
    }
    call.inputs.emplace_back(Tensor::vector(axes));
  }
  return call;
}

// A value of the output's shape with the reduced dims as 1, so that it broadcasts to the input.
Var with_reduced_dims(VjpContext& c, const Var& value) {
  if (c.attributes().flag("keepdims")) return value;
  const Var x = c.in(0);
  std::vector<int64_t> axes;
  if (c.has_input(1)) axes = c.integers(1);
  // One element broadcasts to any rank, and axes are counted from the end of what is known when it runs.
  if (!x.shape().has_rank()) return axes.empty() ? value : unsqueeze(value, axes);
  if (axes.empty()) {
    if (c.attributes().flag("noop_with_empty_axes")) return value;
    for (int64_t axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
  }
  for (int64_t& axis : axes) axis = front_axis(axis, x.rank());
  return axes.empty() ? value : unsqueeze(value, axes);
}

Var gradient_of(VjpContext& c) { return with_reduced_dims(c, c.gy(0)); }
Var output_of(VjpContext& c) { return with_reduced_dims(c, c.out(0)); }

void sum_vjp(VjpContext& c) { c.set(0, expand_as(gradient_of(c), c.in(0))); }

void mean_vjp(VjpContext& c) { c.set(0, expand_as(share_of_mean(gradient_of(c), c.in(0), c.out(0)), c.in(0))); }

// The sum of squares of nothing but zeros has a slope of 0 here.
void l2_vjp(VjpContext& c) {
  const Var x = c.in(0), y = output_of(c);
  const Var divisor = where(equal(y, scalar_like(y, 0)), scalar_like(y, 1), y);
  c.set(0, gradient_of(c) * (x / divisor));
}

void log_sum_exp_vjp(VjpContext& c) {
  const Var y = output_of(c);
  const Var finite = where(is_inf(y, true, false), scalar_like(y, 0), y);
  c.set(0, gradient_of(c) * exp(c.in(0) - finite));
}

// Elements that are equally large or small share the gradient.
void extreme_vjp(VjpContext& c) {
  const Var is_taken = cast(equal(c.in(0), output_of(c)), c.in(0).dtype());
  std::vector<Var> inputs{as_wide(is_taken)};
  if (c.has_input(1)) inputs.push_back(c.in(1));
  const Var count = apply(reduce_sum_def(), inputs, c.attributes());
  c.set(0, is_taken * divided_by_count(gradient_of(c), with_reduced_dims(c, count)));
}

// The product of the others: what stands before times what stands behind, so that zeros need no care. The reduced axes
// are made one at the end.
void prod_vjp(VjpContext& c) {
  const Var x = c.in(0);
  if (!x.shape().has_rank()) c.unsupported("its rule needs a known rank");
  std::vector<bool> is_reduced(static_cast<size_t>(x.rank()), false);
  std::vector<int64_t> axes;
  if (c.has_input(1)) axes = c.integers(1);
  if (axes.empty() && !c.attributes().flag("noop_with_empty_axes")) is_reduced.flip();
  for (const int64_t axis : axes) is_reduced[static_cast<size_t>(front_axis(axis, x.rank()))] = true;
  std::vector<int64_t> order, back(static_cast<size_t>(x.rank()));
  for (const bool reduced : {false, true}) {
    for (int64_t axis = 0; axis < x.rank(); ++axis) {
      if (is_reduced[static_cast<size_t>(axis)] == reduced) order.push_back(axis);
    }
  }
  for (size_t k = 0; k < order.size(); ++k) back[static_cast<size_t>(order[k])] = static_cast<int64_t>(k);
  const auto kept = std::count(is_reduced.begin(), is_reduced.end(), false);
  const Var ordered = transpose(x, order);
  const Var rows = flatten(ordered, kept);
  const Var others = cum_prod(rows, 1, true) * cum_prod(rows, 1, true, true);
  c.set(0, gradient_of(c) * transpose(reshape_as(others, ordered), back));
}

// In what the ops differ.
struct Form {
  std::string_view name;
  std::string_view onnx;
  std::string_view doc;
  DTypeSet types;
  ReferenceFn reference;
  VjpFn vjp;
};

const Form kForms[] = {
    {"reduce_l1", "ReduceL1", "y = sum(|x|) over axes.", kReduced, reference<L1, ReducedTypes>,
     [](VjpContext& c) { c.set(0, gradient_of(c) * sign(c.in(0))); }},
    {"reduce_l2", "ReduceL2", "y = sqrt(sum(x^2)) over axes.", kReduced, reference<L2, ReducedTypes>, l2_vjp},
    {"reduce_log_sum", "ReduceLogSum", "y = log(sum(x)) over axes.", kReduced, reference<LogSum, ReducedTypes>,
     [](VjpContext& c) { c.set(0, expand_as(times_slope(gradient_of(c), exp(-output_of(c))), c.in(0))); }},
    {"reduce_log_sum_exp", "ReduceLogSumExp", "y = log(sum(exp(x))) over axes.", kReduced,
     reference<LogSumExp, ReducedTypes>, log_sum_exp_vjp},
    {"reduce_max", "ReduceMax", "y = the largest element of x over axes.", kOrdered, reference<Max, OrderedTypes>,
     extreme_vjp},
    {"reduce_mean", "ReduceMean", "y = the mean of x over axes.", kReduced, reference<Mean, ReducedTypes>, mean_vjp},
    {"reduce_min", "ReduceMin", "y = the smallest element of x over axes.", kOrdered, reference<Min, OrderedTypes>,
     extreme_vjp},
    {"reduce_prod", "ReduceProd", "y = the product of x over axes.", kReduced, reference<Prod, ReducedTypes>, prod_vjp},
    {"reduce_sum", "ReduceSum", "y = the sum of x over axes.", kReduced, reference<Sum, ReducedTypes>, sum_vjp},
    {"reduce_sum_square", "ReduceSumSquare", "y = sum(x^2) over axes.", kReduced, reference<SumSquare, ReducedTypes>,
     [](VjpContext& c) { c.set(0, gradient_of(c) * (2 * c.in(0))); }},
};

OpDef make_reduction(std::string_view name) {
  const auto* form = std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) { return f.name == name; });
  AG_CHECK(form != std::end(kForms), "no reduction is called {}", name);
  OpDef def;
  def.name = form->name;
  def.doc = form->doc;
  def.inputs = {{"x", "T", "Any shape."},
                {"axes", "I", "[n]: the axes to reduce; missing or empty: all.", Arity::optional}};
  def.outputs = {{"y", "T", "Shape of x with the reduced extents 1, or without them."}};
  def.types = {{"T", form->types}, {"I", dtypes::kI64}};
  def.attributes = {
      {"keepdims", AttributeType::integer, "1: reduced extents become 1; 0: they go.", int64_t{1}},
      {"noop_with_empty_axes", AttributeType::integer, "1: without axes reduce over none, not over all.", int64_t{0}}};
  def.infer = infer_reduction;
  def.reference = form->reference;
  def.vjp = form->vjp;
  def.onnx = {{.name = form->onnx, .import = import_onnx, .export_since = 18}};
  def.sample = sample;
  return def;
}

Var reduce(const OpDef& op, Var x, const std::vector<int64_t>& axes, bool keepdims) {
  std::vector<Var> inputs{x};
  if (!axes.empty()) inputs.push_back(constant_like(x, Tensor::vector(axes)));
  return apply(op, inputs, {{"keepdims", int64_t{keepdims}}});
}

}  // namespace

#define AG_REDUCTION(op)                          \
  const OpDef& op##_def() {                       \
    static const OpDef def = make_reduction(#op); \
    return def;                                   \
  }                                               \
  Var op(Var x, const std::vector<int64_t>& axes, bool keepdims) { return reduce(op##_def(), x, axes, keepdims); }
AG_REDUCTION(reduce_l1)
AG_REDUCTION(reduce_l2)
AG_REDUCTION(reduce_log_sum)
AG_REDUCTION(reduce_log_sum_exp)
AG_REDUCTION(reduce_max)
AG_REDUCTION(reduce_mean)
AG_REDUCTION(reduce_min)
AG_REDUCTION(reduce_prod)
AG_REDUCTION(reduce_sum)
AG_REDUCTION(reduce_sum_square)
#undef AG_REDUCTION

}  // namespace autograph
