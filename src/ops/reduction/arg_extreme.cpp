// arg_max and arg_min: the index along `axis` of the largest or smallest element; of equal ones the first, or the last
// with select_last_index. NaN counts as more extreme than any number.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/reduction.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  if (!x.has_rank()) return context.set_output(0, DType::i64, Shape::unknown());
  const int64_t axis = context.normalized_axis(context.attributes().integer("axis"), x.rank());
  context.require<ShapeError>(x[axis].value_or(1) != 0, "axis", "expected an extent of 1 or more, got 0");
  Shape y = x;
  if (context.attributes().flag("keepdims")) {
    y[axis] = 1;
  } else {
    y.dims().erase(y.dims().begin() + axis);
  }
  context.set_output(0, DType::i64, y);
}

// Does `a` beat `b`, the best so far?
struct Larger {
  template <class C>
  static bool beats(C a, C b) {
    return a > b;
  }
};

struct Smaller {
  template <class C>
  static bool beats(C a, C b) {
    return a < b;
  }
};

template <class Order, class C>
bool replaces(C candidate, C best, bool last) {
  if constexpr (std::is_floating_point_v<C>) {
    if (std::isnan(best)) return last && std::isnan(candidate);
    if (std::isnan(candidate)) return true;
  }
  return Order::beats(candidate, best) || (last && candidate == best);
}

template <class Order>
void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  int64_t axis = call.attributes.integer("axis");
  if (axis < 0) axis += x.rank();
  const bool last = call.attributes.flag("select_last_index");
  int64_t stride = 1;
  for (int64_t a = axis + 1; a < x.rank(); ++a) stride *= x.dim(a);
  const int64_t extent = x.dim(axis);
  const int64_t rows = x.num_elements() / extent;
  dispatch<NumericTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    using C = ComputeType<T>;
    for (int64_t row = 0; row < rows; ++row) {
      const T* in = x.data<T>() + row / stride * extent * stride + row % stride;
      int64_t best = 0;
      for (int64_t i = 1; i < extent; ++i) {
        if (replaces<Order>(static_cast<C>(in[i * stride]), static_cast<C>(in[best * stride]), last)) best = i;
      }
      call.output(0).mutable_data<int64_t>()[row] = best;
    }
  });
}

// Few distinct values, so that ties occur.
OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1, 4);
  const auto rank = static_cast<int64_t>(dims.size());
  return {.inputs = {draw_tensor(random, draw_one_of(random, {DType::f32, DType::i32}), dims)},
          .attributes = {{"axis", draw(random, -rank, rank - 1)},
                         {"keepdims", draw(random, 0, 1)},
                         {"select_last_index", draw(random, 0, 1)}}};
}

OpDef make_arg(std::string_view name, std::string_view doc, std::string_view onnx, ReferenceFn reference) {
  OpDef def;
  def.name = name;
  def.doc = doc;
  def.inputs = {{"x", "T", "Any shape of rank 1 or more."}};
  def.outputs = {{"y", "I", "Shape of x with the extent of axis 1, or without it."}};
  def.types = {{"T", dtypes::kNumeric}, {"I", dtypes::kI64}};
  def.attributes = {
      {"axis", AttributeType::integer, "Where to search; negative counts from the end.", int64_t{0}},
      {"keepdims", AttributeType::integer, "1: the extent of axis becomes 1; 0: it goes.", int64_t{1}},
      {"select_last_index", AttributeType::integer, "Of equal elements, 0: the first; 1: the last.", int64_t{0}}};
  def.infer = infer;
  def.reference = reference;
  def.no_grad = "the result is an index";
  def.onnx = {{.name = onnx, .export_since = 12}};
  def.sample = sample;
  return def;
}

}  // namespace

Var arg_max(Var x, int64_t axis, bool keepdims) {
  return apply(arg_max_def(), {x}, {{"axis", axis}, {"keepdims", int64_t{keepdims}}});
}

Var arg_min(Var x, int64_t axis, bool keepdims) {
  return apply(arg_min_def(), {x}, {{"axis", axis}, {"keepdims", int64_t{keepdims}}});
}

const OpDef& arg_max_def() {
  static const OpDef def =
      make_arg("arg_max", "y = the index of the largest element along axis.", "ArgMax", reference<Larger>);
  return def;
}

const OpDef& arg_min_def() {
  static const OpDef def =
      make_arg("arg_min", "y = the index of the smallest element along axis.", "ArgMin", reference<Smaller>);
  return def;
}

}  // namespace autograph
