// cum_sum and cum_prod: running sums and products along an axis, which is an input. With `exclusive` an element does
// not count itself (the first is 0 or 1); with `reverse` they run from the end. Integers wrap.
#include "autograph/op_def.h"
#include "autograph/ops/reduction.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/elementwise/number.h"
#include "ops/sample.h"
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
  return axis < 0 ? axis + rank : axis;
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

OpDef make_cumulative(std::string_view name, std::string_view doc, OnnxName onnx, ReferenceFn reference) {
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
  def.onnx = {onnx};
  def.sample = sample;
  return def;
}

Var cumulative(const OpDef& op, Var x, int64_t axis, bool exclusive, bool reverse) {
  return apply(op, {x, constant(x.graph(), Tensor::scalar(axis))},
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
  static const OpDef def =
      make_cumulative("cum_sum", "y = running sums of x along axis.", {.name = "CumSum", .since = 11}, reference<Sum>);
  return def;
}

const OpDef& cum_prod_def() {
  static const OpDef def = make_cumulative("cum_prod", "y = running products of x along axis.",
                                           {.name = "CumProd", .since = 26}, reference<Prod>);
  return def;
}

}  // namespace autograph
