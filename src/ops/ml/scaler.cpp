// scaler: y = (x - offset) * scale, as f32; offset and scale have one element, or one for each feature (last axis).
#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/ml.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

using Reals = std::vector<float>;

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  for (const std::string_view name : {"offset", "scale"}) {
    const auto count = static_cast<int64_t>(context.attributes().get<Reals>(name).size());
    const bool fits = count == 1 || !x.has_rank() || (x.rank() > 0 && x.dims().back().value_or(count) == count);
    if (!fits) {
      context.fail<ValueError>(
          name, fmt::format("expected 1 element or one for each feature of {}, got {}", to_string(x), count));
    }
  }
  context.set_output(0, DType::f32, x);
}

// Sums and products in f64 where x is f64, else in f32.
std::vector<Var> decompose(DecomposeContext& context) {
  const Var x = context.inputs[0];
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const auto list = [&](std::string_view name) {
    const Reals& values = context.attributes.get<Reals>(name);
    return cast(constant(context.graph, Tensor::of<float>({static_cast<int64_t>(values.size())}, values)), dtype);
  };
  return {cast(mul(sub(cast(x, dtype), list("offset")), list("scale")), DType::f32)};
}

OpSample sample(Random& random) {
  const DType dtype = draw_bool(random) ? DType::f32 : DType::i64;
  const Dims dims = draw_dims(random, 1, 3);
  const auto list = [&](int64_t count) {
    Reals values;
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(draw(random, -8, 8)) / 4);
    return values;
  };
  return {.inputs = {draw_tensor(random, dtype, dims)},
          .attributes = {{"offset", list(draw_bool(random) ? 1 : dims.back())}, {"scale", list(dims.back())}}};
}

}  // namespace

Var scaler(Var x, std::vector<float> offset, std::vector<float> scale) {
  return apply(scaler_def(), {x}, {{"offset", std::move(offset)}, {"scale", std::move(scale)}});
}

const OpDef& scaler_def() {
  static const OpDef def{
      .name = "scaler",
      .doc = "y = (x - offset) * scale.",
      .inputs = {{"x", "T", "[rows, features]."}},
      .outputs = {{"y", "F", "Shape of x."}},
      .types = {{"T", {DType::f32, DType::f64, DType::i64, DType::i32}}, {"F", {DType::f32}}},
      .attributes =
          {{.name = "offset", .type = AttributeType::reals, .doc = "1 element or one a feature.", .required = true},
           {.name = "scale", .type = AttributeType::reals, .doc = "1 element or one a feature.", .required = true}},
      .infer = infer,
      .decompose = decompose,
      .onnx = {{.name = "Scaler", .domain = "ai.onnx.ml"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
