// matmul_integer: y = (a - a_zero) (b - b_zero) in 32-bit integers (wrapping).
// qlinear_matmul: y = saturate(round((a - a_zero) (b - b_zero) * a_scale * b_scale / y_scale) + y_zero).
// Zero points and scales: one for the tensor, one per row of a, or one per column of b.
#include <limits>

#include "autograph/op_def.h"
#include "autograph/ops/quantize.h"
#include "ops/defs.h"
#include "ops/linear/matmul_shape.h"
#include "ops/quantize/granularity.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

using ByteTypes = TypeList<int8_t, uint8_t>;
using QuantizedTypes = Concat<ByteTypes, TypeList<Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ>>;
constexpr DTypeSet kBytes{DType::i8, DType::u8};
constexpr DTypeSet kQuantized{DType::i8,         DType::u8,     DType::f8e4m3fn,
                              DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz};
constexpr DTypeSet kScales{DType::f32, DType::f16, DType::bf16};

// Throws unless input `slot`, where given, has one element or one per row (a) or column (b) of the operand.
void check_per_line(const InferContext& context, size_t slot, size_t operand, bool rows) {
  if (!context.has_input(slot) || !context.shape(slot).is_static() || !context.shape(operand).is_static()) return;
  const Dims dims = context.shape(operand).static_dims();
  int64_t lines = 1;
  if (rows && dims.size() >= 2) lines = dims[dims.size() - 2];
  if (!rows && dims.size() >= 2) lines = dims.back();
  const int64_t count = *context.shape(slot).num_elements();
  context.require<ShapeError>(
      count == 1 || count == lines, "input " + std::to_string(slot),
      "expected 1 or " + std::to_string(lines) + " elements, got " + to_string(context.shape(slot)));
}

double value_of(const TensorView& view, int64_t i) {
  double value = 0;
  dispatch<Concat<QuantizedTypes, TypeList<float, Half, BFloat16>>>(
      view.dtype(), [&]<class T>(TypeTag<T>) { value = static_cast<double>(view.data<T>()[i]); });
  return value;
}

// One value per line: the only one repeated, or all of them; zeros when absent.
std::vector<double> per_line(const TensorView& view, int64_t lines) {
  std::vector<double> values(static_cast<size_t>(lines), 0.0);
  for (int64_t i = 0; view.is_present() && i < lines; ++i) {
    values[static_cast<size_t>(i)] = value_of(view, view.num_elements() > 1 ? i : 0);
  }
  return values;
}

std::vector<double> elements_of(const TensorView& view) {
  std::vector<double> values;
  dispatch<QuantizedTypes>(view.dtype(), [&]<class T>(TypeTag<T>) {
    for (const T& element : view.elements<T>()) values.push_back(static_cast<double>(element));
  });
  return values;
}

// Calls emit(flat output index, row, column, sum) for every element of (a - a_zero) (b - b_zero). Sums of products of
// bytes are exact in f64.
template <class Emit>
void multiply_shifted(const OpCall& call, size_t b_slot, const TensorView& a_zero, const TensorView& b_zero,
                      Emit&& emit) {
  const TensorView a = call.input(0);
  const TensorView b = call.input(b_slot);
  const MatmulWalk walk = walk_matmul(a, b);
  const auto [rows, inner, columns] = walk.size;
  const std::vector<double> left = elements_of(a);
  const std::vector<double> right = elements_of(b);
  const std::vector<double> a_shift = per_line(a_zero, rows);
  const std::vector<double> b_shift = per_line(b_zero, columns);
  int64_t index = 0;
  for (size_t matrix = 0; matrix < walk.a_matrix.size(); ++matrix) {
    const double* am = left.data() + walk.a_matrix[matrix] * rows * inner;
    const double* bm = right.data() + walk.b_matrix[matrix] * inner * columns;
    for (int64_t cell = 0; cell < rows * columns; ++cell, ++index) {
      const int64_t row = cell / columns;
      const int64_t column = cell % columns;
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        sum += (am[row * inner + k] - a_shift[static_cast<size_t>(row)]) *
               (bm[k * columns + column] - b_shift[static_cast<size_t>(column)]);
      }
      emit(index, row, column, sum);
    }
  }
}

// ---- matmul_integer --------------------------------------------------------------------------------------------

void infer_integer(InferContext& context) {
  check_per_line(context, 2, 0, true);
  check_per_line(context, 3, 1, false);
  context.set_output(0, DType::i32, infer_matmul_shape(context, context.shape(0), context.shape(1)));
}

void reference_integer(const OpCall& call) {
  int32_t* out = call.output(0).mutable_data<int32_t>();
  multiply_shifted(call, 1, call.input(2), call.input(3), [&](int64_t i, int64_t, int64_t, double sum) {
    out[i] = static_cast<int32_t>(static_cast<int64_t>(sum));
  });
}

OpCost cost_integer(const CostContext& context) { return matmul_cost(context, 0, 1); }

OpSample sample_integer(Random& random) {
  const int64_t rows = draw(random, 1, 4);
  const int64_t inner = draw(random, 1, 4);
  const int64_t columns = draw(random, 1, 4);
  const DType a = draw_one_of(random, {DType::i8, DType::u8});
  const DType b = draw_one_of(random, {DType::i8, DType::u8});
  OpSample sample{.inputs = {draw_tensor(random, a, {rows, inner}, -100, 100),
                             draw_tensor(random, b, {inner, columns}, -100, 100)}};
  if (draw_bool(random)) {
    sample.inputs.emplace_back(draw_tensor(random, a, draw_bool(random) ? Dims{rows} : Dims{}, 0, 9));
    sample.inputs.emplace_back(draw_tensor(random, b, draw_bool(random) ? Dims{columns} : Dims{}, 0, 9));
  }
  return sample;
}

// ---- qlinear_matmul --------------------------------------------------------------------------------------------

// Slots: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.
void infer_quantized(InferContext& context) {
  for (const size_t slot : {1, 2}) check_per_line(context, slot, 0, true);
  for (const size_t slot : {4, 5}) check_per_line(context, slot, 3, false);
  for (const size_t slot : {6, 7}) {
    const Shape& shape = context.shape(slot);
    context.require<ShapeError>(!shape.is_static() || *shape.num_elements() == 1, "input " + std::to_string(slot),
                                "expected one element, got " + to_string(shape));
  }
  context.set_output(0, context.dtype(7), infer_matmul_shape(context, context.shape(0), context.shape(3)));
}

template <class Y>
Y narrow(double value, double zero) {
  if constexpr (kIsFloat<Y>) {
    return Y::saturating(static_cast<float>(value + zero));
  } else {
    return static_cast<Y>(quantize_value(value, static_cast<int64_t>(zero), std::numeric_limits<Y>::min(),
                                         std::numeric_limits<Y>::max()));
  }
}

void reference_quantized(const OpCall& call) {
  const MatmulSize size = walk_matmul(call.input(0), call.input(3)).size;
  const std::vector<double> a_scale = per_line(call.input(1), size.rows);
  const std::vector<double> b_scale = per_line(call.input(4), size.columns);
  const double y_scale = value_of(call.input(6), 0);
  const double y_zero = value_of(call.input(7), 0);
  dispatch<QuantizedTypes>(call.output(0).dtype(), [&]<class Y>(TypeTag<Y>) {
    Y* out = call.output(0).mutable_data<Y>();
    multiply_shifted(call, 3, call.input(2), call.input(5), [&](int64_t i, int64_t row, int64_t column, double sum) {
      const double scale = a_scale[static_cast<size_t>(row)] * b_scale[static_cast<size_t>(column)] / y_scale;
      out[i] = narrow<Y>(sum * scale, y_zero);
    });
  });
}

OpCost cost_quantized(const CostContext& context) { return matmul_cost(context, 0, 3); }

OpSample sample_quantized(Random& random) {
  const OpSample integer = sample_integer(random);
  const Tensor a = integer.inputs[0].tensor();
  const Tensor b = integer.inputs[1].tensor();
  const DType y = draw_one_of(random, {DType::i8, DType::u8});
  const Dims rows = draw_bool(random) ? Dims{a.dims()[0]} : Dims{};
  return {.inputs = {a, draw_tensor(random, DType::f32, rows, 0.01, 0.1), draw_tensor(random, a.dtype(), rows, 0, 9), b,
                     draw_tensor(random, DType::f32, {}, 0.01, 0.1), draw_tensor(random, b.dtype(), {}, 0, 9),
                     draw_tensor(random, DType::f32, {}, 0.1, 1), draw_tensor(random, y, {}, 0, 9)}};
}

}  // namespace

Var matmul_integer(Var a, Var b, Var a_zero, Var b_zero) { return apply(matmul_integer_def(), {a, b, a_zero, b_zero}); }

Var qlinear_matmul(const Quantized& a, const Quantized& b, Var y_scale, Var y_zero) {
  return apply(qlinear_matmul_def(), {a.value, a.scale, a.zero_point, b.value, b.scale, b.zero_point, y_scale, y_zero});
}

const OpDef& matmul_integer_def() {
  static const OpDef def{
      .name = "matmul_integer",
      .doc = "y = (a - a_zero_point) (b - b_zero_point) in 32-bit integers.",
      .inputs = {{"a", "T1", "[..., m, k]."},
                 {"b", "T2", "[..., k, n]."},
                 {"a_zero_point", "T1", "Scalar or one per row of a; default 0.", Arity::optional},
                 {"b_zero_point", "T2", "Scalar or one per column of b; default 0.", Arity::optional}},
      .outputs = {{"y", "T3", "[..., m, n]."}},
      .types = {{"T1", kBytes}, {"T2", kBytes}, {"T3", {DType::i32}}},
      .infer = infer_integer,
      .reference = reference_integer,
      .no_grad = "integers have no gradient",
      .cost = cost_integer,
      .onnx = {{.name = "MatMulInteger", .since = 10}},
      .sample = sample_integer,
  };
  return def;
}

const OpDef& qlinear_matmul_def() {
  static const OpDef def{
      .name = "qlinear_matmul",
      .doc = "Matrix product of quantized numbers, quantized again.",
      .inputs = {{"a", "T1", "[..., m, k]."},
                 {"a_scale", "TS", "Scalar or one per row of a."},
                 {"a_zero_point", "T1", "Scalar or one per row of a."},
                 {"b", "T2", "[..., k, n]."},
                 {"b_scale", "TS", "Scalar or one per column of b."},
                 {"b_zero_point", "T2", "Scalar or one per column of b."},
                 {"y_scale", "TS", "Scalar."},
                 {"y_zero_point", "T3", "Scalar."}},
      .outputs = {{"y", "T3", "[..., m, n]."}},
      .types = {{"TS", kScales}, {"T1", kQuantized}, {"T2", kQuantized}, {"T3", kQuantized}},
      .infer = infer_quantized,
      .reference = reference_quantized,
      .no_grad = "integers have no gradient",
      .cost = cost_quantized,
      .onnx = {{.name = "QLinearMatMul", .since = 10, .export_since = 21}},
      .sample = sample_quantized,
  };
  return def;
}

}  // namespace autograph
