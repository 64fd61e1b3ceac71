// dynamic_quantize_linear: quantizes to u8 with a scale taken from the data. With low = min(0, min x) and
// high = max(0, max x): scale = (high - low) / 255 (1 / 255 when both are 0), zero point = round(clamp(-low / scale)),
// y = saturate(round(x / scale) + zero point). All in f32; ties round to even.
#include <algorithm>
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/quantize.h"
#include "ops/defs.h"
#include "ops/quantize/granularity.h"
#include "ops/sample.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  context.set_output(0, DType::u8, context.shape(0));
  context.set_output(1, DType::f32, Shape());
  context.set_output(2, DType::u8, Shape());
}

void reference(const OpCall& call) {
  const auto x = call.input(0).elements<float>();
  float low = 0;
  float high = 0;
  for (const float value : x) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const float scale = (high == low ? 1.0F : high - low) / 255.0F;
  const int64_t zero = quantize_value(static_cast<double>(-low / scale), 0, 0, 255);
  uint8_t* y = call.output(0).mutable_data<uint8_t>();
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = static_cast<uint8_t>(quantize_value(static_cast<double>(x[i] / scale), zero, 0, 255));
  }
  if (call.has_output(1)) call.output(1).mutable_data<float>()[0] = scale;
  if (call.has_output(2)) call.output(2).mutable_data<uint8_t>()[0] = static_cast<uint8_t>(zero);
}

}  // namespace

std::vector<Var> dynamic_quantize_linear(Var x) { return apply_all(dynamic_quantize_linear_def(), {x}, {}, 3); }

const OpDef& dynamic_quantize_linear_def() {
  static const OpDef def{
      .name = "dynamic_quantize_linear",
      .doc = "Quantizes to u8 with a scale and zero point taken from the range of x.",
      .inputs = {{"x", "T1", "Any shape."}},
      .outputs = {{"y", "T2", "Shape of x."}, {"y_scale", "T1", "Scalar."}, {"y_zero_point", "T2", "Scalar."}},
      .types = {{"T1", dtypes::kF32}, {"T2", {DType::u8}}},
      .infer = infer,
      .reference = reference,
      .no_grad = "rounding is flat almost everywhere",
      .onnx = {{.name = "DynamicQuantizeLinear", .since = 11}},
      .sample = sample_unary,
  };
  return def;
}

}  // namespace autograph
