// quantize_linear: y = saturate(round(x / scale) + zero_point) for integers, y = narrow(x / scale + zero_point) for
// narrow floats. The division is rounded to `precision`, by default the dtype of the scale; ties round to even. f8
// results saturate unless saturate is 0, then they overflow to infinity or NaN; f6 and f4 always saturate. NaN gives
// the lowest integer.
#include <limits>

#include "autograph/op_def.h"
#include "autograph/ops/quantize.h"
#include "ops/defs.h"
#include "ops/quantize/granularity.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

using TargetTypes = TypeList<int8_t, uint8_t, int16_t, uint16_t, Int4, UInt4, Int2, UInt2, Float8E4M3FN, Float8E4M3FNUZ,
                             Float8E5M2, Float8E5M2FNUZ, Float4E2M1, Float6E2M3, Float6E3M2>;
using SourceTypes = TypeList<float, Half, BFloat16, int32_t>;
using ScaleTypes = TypeList<float, Half, BFloat16, int32_t, Float8E8M0>;
constexpr DTypeSet kTargets{DType::i8,     DType::u8,         DType::i16,    DType::u16,      DType::i4,
                            DType::u4,     DType::i2,         DType::u2,     DType::f8e4m3fn, DType::f8e4m3fnuz,
                            DType::f8e5m2, DType::f8e5m2fnuz, DType::f4e2m1, DType::f6e2m3,   DType::f6e3m2};
constexpr DTypeSet kPrecisions{DType::f32, DType::f16, DType::bf16};

void infer(InferContext& context) {
  check_granularity(context);
  const DType asked = context.attributes().get_or("output_dtype", DType::undefined);
  const DType from_zero = context.has_input(2) ? context.dtype(2) : DType::undefined;
  if (asked != DType::undefined && from_zero != DType::undefined && asked != from_zero) {
    context.fail<TypeError>("output_dtype", "expected the zero point's " + std::string(to_string(from_zero)) +
                                                ", got " + std::string(to_string(asked)));
  }
  const DType precision = context.attributes().get_or("precision", DType::undefined);
  context.require<TypeError>(precision == DType::undefined || kPrecisions.contains(precision), "precision",
                             "expected " + to_string(kPrecisions) + ", got " + std::string(to_string(precision)));
  const DType out = from_zero != DType::undefined ? from_zero : asked != DType::undefined ? asked : DType::u8;
  context.set_output(0, out, context.shape(0));
}

// Rounds a quotient to the precision of the division.
double round_to(DType precision, double value) {
  if (precision == DType::f16) return static_cast<double>(Half(static_cast<float>(value)));
  if (precision == DType::bf16) return static_cast<double>(BFloat16(static_cast<float>(value)));
  return static_cast<double>(static_cast<float>(value));
}

template <class Y>
Y narrow(double quotient, Y zero, bool saturate) {
  if constexpr (kIsFloat<Y>) {
    const auto value = static_cast<float>(quotient + static_cast<double>(zero));
    return saturate ? Y::saturating(value) : Y(value);
  } else if constexpr (kIsSmallInt<Y>) {
    return Y(quantize_value(quotient, int(zero), Y::kMin, Y::kMax));
  } else {
    return static_cast<Y>(quantize_value(quotient, zero, std::numeric_limits<Y>::min(), std::numeric_limits<Y>::max()));
  }
}

// Every quotient x / scale, rounded.
std::vector<double> quotients(const OpCall& call, const Granularity& scale_of) {
  const TensorView x = call.input(0);
  const TensorView scale = call.input(1);
  DType precision = call.attributes.get_or("precision", DType::undefined);
  if (precision == DType::undefined) precision = scale.dtype();
  std::vector<double> result(static_cast<size_t>(x.num_elements()));
  std::vector<double> divisors;
  dispatch<ScaleTypes>(scale.dtype(), [&]<class S>(TypeTag<S>) {
    for (const S& s : scale.elements<S>()) divisors.push_back(static_cast<double>(s));
  });
  dispatch<SourceTypes>(x.dtype(), [&]<class X>(TypeTag<X>) {
    const X* in = x.data<X>();
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const double divisor = divisors[static_cast<size_t>(scale_of(i))];
      result[static_cast<size_t>(i)] = round_to(precision, static_cast<double>(in[i]) / divisor);
    }
  });
  return result;
}

void reference(const OpCall& call) {
  if (call.input(0).num_elements() == 0) return;
  const Granularity scale_of(call.attributes, call.input(0), call.input(1));
  const std::vector<double> values = quotients(call, scale_of);
  const bool saturate = call.attributes.flag("saturate");
  dispatch<TargetTypes>(call.output(0).dtype(), [&]<class Y>(TypeTag<Y>) {
    const Y* zero = call.input(2).is_present() ? call.input(2).data<Y>() : nullptr;
    Y* out = call.output(0).mutable_data<Y>();
    for (size_t i = 0; i < values.size(); ++i) {
      out[i] = narrow<Y>(values[i], zero ? zero[scale_of(static_cast<int64_t>(i))] : Y(0), saturate);
    }
  });
}

OpSample sample(Random& random) {
  const Dims x = draw_dims(random, 1, 3);
  const auto rank = static_cast<int64_t>(x.size());
  const int64_t axis = draw(random, 0, rank - 1);
  const int64_t block = draw(random, 1, 3);
  Dims scale;
  OpSample sample{.inputs = {}, .attributes = {{"axis", draw_bool(random) ? axis : axis - rank}}};
  const int64_t kind = draw(random, 0, 2);
  if (kind == 1) scale = {x[static_cast<size_t>(axis)]};
  if (kind == 2) {
    scale = x;
    int64_t& blocks = scale[static_cast<size_t>(axis)];
    blocks = (blocks + block - 1) / block;
    sample.attributes.set("block_size", block);
  }
  const DType target =
      draw_one_of(random, {DType::u8, DType::i8, DType::i16, DType::u4, DType::f8e4m3fn, DType::f4e2m1});
  sample.inputs = {draw_tensor(random, DType::f32, x, -40, 40), draw_tensor(random, DType::f32, scale, 0.1, 2)};
  if (draw_bool(random)) {
    sample.inputs.emplace_back(draw_tensor(random, target, scale, 0, 3));
  } else {
    sample.attributes.set("output_dtype", target);
  }
  return sample;
}

}  // namespace

Var quantize_linear(Var x, Var scale, Var zero_point, int64_t axis) {
  return apply(quantize_linear_def(), {x, scale, zero_point}, {{"axis", axis}});
}

const OpDef& quantize_linear_def() {
  static const OpDef def{
      .name = "quantize_linear",
      .doc = "y = saturate(round(x / scale) + zero_point), per tensor, per axis or per block.",
      .inputs = {{"x", "T1", "Any shape."},
                 {"y_scale", "T2", "Scalar, [extent of axis], or the shape of x with blocks along axis."},
                 {"y_zero_point", "T3", "Shape of the scale; default 0. Its dtype is that of y.", Arity::optional}},
      .outputs = {{"y", "T3", "Shape of x."}},
      .types = {{"T1", {DType::f32, DType::f16, DType::bf16, DType::i32}},
                {"T2", {DType::f32, DType::f16, DType::bf16, DType::i32, DType::f8e8m0}},
                {"T3", kTargets}},
      .attributes = {{"axis", AttributeType::integer, "Axis of the scales.", int64_t{1}},
                     {"block_size", AttributeType::integer, "Elements per scale along axis; 0: not blocked.",
                      int64_t{0}},
                     {"saturate", AttributeType::integer, "0: f8 overflows instead of saturating.", int64_t{1}},
                     {"output_dtype", AttributeType::dtype, "Dtype of y without a zero point; default u8."},
                     {"precision", AttributeType::dtype, "Dtype of the division; default that of the scale."}},
      .infer = infer,
      .reference = reference,
      .no_grad = "rounding is flat almost everywhere",
      .onnx = {{.name = "QuantizeLinear", .since = 10, .export_since = 21}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
