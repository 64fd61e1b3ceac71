// cum_sum and cum_prod: running sums and products along an axis, which is an input. With `exclusive` an element does
// not count itself (the first is 0 or 1); with `reverse` they run from the end. Integers wrap.
#include <limits>
#include <numeric>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/number.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

using RunningTypes = Concat<FloatTypes, TypeList<int32_t, int64_t, uint32_t, uint64_t>>;

struct Sum {
  static constexpr int kStart = 0;
  template <class A>
  static A combine(A a, A b) {
    return wrapping_add(a, b);
  }
};

struct Prod {
  static constexpr int kStart = 1;
  template <class A>
  static A combine(A a, A b) {
    return wrapping_mul(a, b);
  }
};

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const Shape& axis = context.shape(1);
  context.require<ShapeError>(!axis.has_rank() || axis.num_elements().value_or(1) == 1, "axis",
                              "expected one element, got shape " + to_string(axis));
  const auto known = context.known_integers(1);
  if (known && x.has_rank()) context.normalized_axis(known->front(), x.rank());
  context.set_output(0, context.dtype(0), x);
}

int64_t axis_of(const OpCall& call) {
  const TensorView given = call.input(1);
  const int64_t rank = call.input(0).rank();
  const int64_t axis =
      given.dtype() == DType::i64 ? *given.data<int64_t>() : static_cast<int64_t>(*given.data<int32_t>());
  AG_CHECK_USER(axis >= -rank && axis < rank, ValueError, "[cumulative] axis: expected {}..{} for rank {}, got {}",
                -rank, rank - 1, rank, axis);
  return front_axis(axis, rank);
}

template <class Step>
void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const int64_t axis = axis_of(call);
  const bool exclusive = call.attributes.flag("exclusive");
  const bool reverse = call.attributes.flag("reverse");
  const int64_t extent = x.dim(axis);
  int64_t stride = 1;
  for (int64_t a = axis + 1; a < x.rank(); ++a) stride *= x.dim(a);
  const int64_t rows = extent == 0 ? 0 : x.num_elements() / extent;
  dispatch<RunningTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    using A = AccumulateType<T>;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t start = row / stride * extent * stride + row % stride;
      A total = Step::kStart;
      for (int64_t i = 0; i < extent; ++i) {
        const int64_t at = start + (reverse ? extent - 1 - i : i) * stride;
        const A before = total;
        total = Step::combine(total, static_cast<A>(x.data<T>()[at]));
        call.output(0).mutable_data<T>()[at] = static_cast<T>(exclusive ? before : total);
      }
    }
  });
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1, 4);
  const auto rank = static_cast<int64_t>(dims.size());
  return {.inputs = {draw_tensor(random, DType::f32, dims), Tensor::scalar(draw(random, -rank, rank - 1))},
          .attributes = {{"exclusive", draw(random, 0, 1)}, {"reverse", draw(random, 0, 1)}}};
}

// Running sums from the other end.
void sum_vjp(VjpContext& c) {
  Attributes attributes = c.attributes();
  attributes.set("reverse", int64_t{!attributes.flag("reverse")});
  c.set(0, apply(c.op(), {c.gy(0), c.in(1)}, attributes));
}

// x_j takes part in y_i for all i from j on: with what comes between them, found for each j by a running product that
// begins behind it. Quadratic in the extent, but right with zeros.
void prod_vjp(VjpContext& c) {
  const Var x = c.in(0);
  if (!x.shape().has_rank()) c.unsupported("its rule needs a known rank");
  const int64_t axis = front_axis(c.integers(1).front(), x.rank());
  std::vector<int64_t> last(static_cast<size_t>(x.rank()));
  std::iota(last.begin(), last.end(), 0);
  std::swap(last[static_cast<size_t>(axis)], last.back());
  const bool reverse = c.attributes().flag("reverse"), exclusive = c.attributes().flag("exclusive");
  const auto turned = [&](const Var& value) {
    return reverse ? slice(value, {-1}, {std::numeric_limits<int64_t>::min()}, {-1}, {-1}) : value;
  };
  const Var rows = turned(transpose(x, last));
  const Var g = turned(transpose(c.gy(0), last));
  // between[.., j, i]: the product of x_k for j < k <= i (k < i when exclusive), 0 before j.
  const Var is_behind = triu(filled_like(matmul(unsqueeze(rows, {-1}), unsqueeze(rows, {-2})), 1), 1);
  const Var factors = is_behind * unsqueeze(rows, {-2}) + (1 - is_behind);
  const Var between = triu(cum_prod(factors, -1, exclusive), exclusive ? 1 : 0);
  const Var sums = squeeze(matmul(between, unsqueeze(g, {-1})), {-1});
  c.set(0, transpose(turned(cum_prod(rows, -1, true) * sums), last));
}

OpDef make_cumulative(std::string_view name, std::string_view doc, OnnxName onnx, ReferenceFn reference, VjpFn vjp) {
  OpDef def;
  def.name = name;
  def.doc = doc;
  def.inputs = {{"x", "T", "Any shape of rank 1 or more."}, {"axis", "I", "One element: the axis to run along."}};
  def.outputs = {{"y", "T", "Shape of x."}};
  def.types = {{"T", dtypes::kFloat | DTypeSet{DType::i32, DType::i64, DType::u32, DType::u64}}, {"I", dtypes::kIndex}};
  def.attributes = {{"exclusive", AttributeType::integer, "1: elements do not count themselves.", int64_t{0}},
                    {"reverse", AttributeType::integer, "1: run from the end.", int64_t{0}}};
  def.infer = infer;
  def.reference = reference;
  def.vjp = vjp;
  def.onnx = {onnx};
  def.sample = sample;
  return def;
}

Var cumulative(const OpDef& op, Var x, int64_t axis, bool exclusive, bool reverse) {
  return apply(op, {x, constant_like(x, Tensor::scalar(axis))},
               {{"exclusive", int64_t{exclusive}}, {"reverse", int64_t{reverse}}});
}

}  // namespace

Var cum_sum(Var x, int64_t axis, bool exclusive, bool reverse) {
  return cumulative(cum_sum_def(), x, axis, exclusive, reverse);
}

Var cum_prod(Var x, int64_t axis, bool exclusive, bool reverse) {
  return cumulative(cum_prod_def(), x, axis, exclusive, reverse);
}

const OpDef& cum_sum_def() {
  static const OpDef def = make_cumulative("cum_sum", "y = running sums of x along axis.",
                                           {.name = "CumSum", .since = 11}, reference<Sum>, sum_vjp);
  return def;
}

const OpDef& cum_prod_def() {
  static const OpDef def = make_cumulative("cum_prod", "y = running products of x along axis.",
                                           {.name = "CumProd", .since = 26}, reference<Prod>, prod_vjp);
  return def;
}

}  // namespace autograph
