// Ops that the main domain had on trial until opset 10, which old converters wrote (of Core ML, Caffe2), and small ones
// of ONNX Runtime's.
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"

#include "io/onnx/contrib/body.h"

namespace autograph::io {
namespace {

Var times(Var x, float factor) { return mul(x, scalar_like(x, factor)); }
float number(const ContribCall& call, std::string_view attribute) { return call.attributes().real(attribute); }

std::vector<Var> affine(ContribCall& call) {
  const Var x = call["X"];
  return {add(times(x, number(call, "alpha")), scalar_like(x, number(call, "beta")))};
}

std::vector<Var> scaled(ContribCall& call) { return {times(call["input"], number(call, "scale"))}; }

std::vector<Var> scaled_tanh(ContribCall& call) {
  return {times(tanh(times(call["input"], number(call, "beta"))), number(call, "alpha"))};
}

std::vector<Var> parametric_softplus(ContribCall& call) {
  return {times(softplus(times(call["X"], number(call, "beta"))), number(call, "alpha"))};
}

// x * scale + bias[channel].
std::vector<Var> image_scaler(ContribCall& call) {
  const Var x = call["input"], y = times(x, number(call, "scale"));
  const auto* bias = call.attributes().find_as<std::vector<float>>("bias");
  if (!bias) return {y};
  const Tensor channels = Tensor::of<float>({std::ssize(*bias), 1, 1}, *bias);
  return {add(y, as_dtype(call.constant(channels), x.dtype()))};
}

// What is left within borders (left, top, right, bottom), or, from the left upper one on, (height, width) elements.
std::vector<Var> crop(ContribCall& call) {
  const auto* border = call.attributes().find_as<std::vector<int64_t>>("border");
  const auto* size = call.attributes().find_as<std::vector<int64_t>>("scale");
  if (!border || border->size() != 4) call.refuse("attribute 'border'", "expected four numbers");
  if (size && size->size() != 2) call.refuse("attribute 'scale'", "expected two numbers");
  const int64_t left = (*border)[0], top = (*border)[1];
  const auto before = [&](size_t side) { return (*border)[side] > 0 ? -(*border)[side] : kToTheEnd; };
  const int64_t bottom = size ? top + (*size)[0] : before(3), right = size ? left + (*size)[1] : before(2);
  return {slice(call["input"], {top, left}, {bottom, right}, {2, 3})};
}

std::vector<Var> dynamic_slice(ContribCall& call) {
  return {apply(get_op("slice"), {call["data"], call["starts"], call["ends"], call["axes"]})};
}

std::vector<Var> expand_dims(ContribCall& call) {
  const auto axis = call.known(call["axis"]);
  if (!axis || axis->num_elements() != 1) call.refuse("input 'axis'", "expected one number that is known");
  return {unsqueeze(call["X"], {axis->to_i64()[0]})};
}

// Distances between the rows of a [m, k] and b [n, k]: [m, n].
std::vector<Var> distances(ContribCall& call) {
  const std::string& metric = call.attributes().text("metric");
  if (metric != "euclidean" && metric != "sqeuclidean") {
    call.refuse("attribute 'metric'", "expected euclidean or sqeuclidean, got '" + metric + "'");
  }
  const Var difference = sub(unsqueeze(call["A"], {1}), unsqueeze(call["B"], {0}));
  const Var squares = reduce_sum(mul(difference, difference), {2}, /*keepdims=*/false);
  return {metric == "euclidean" ? sqrt(squares) : squares};
}

}  // namespace

std::vector<ContribOp> contrib_experimental() {
  constexpr std::string_view kMain;
  const auto required = [](std::string_view name) { return required_attribute(name, AttributeType::real); };
  return {
      contrib_op("Affine", "X", "Y", "mul, add", affine, {with_default("alpha", 1.0F), with_default("beta", 0.0F)},
                 kMain),
      contrib_op("Scale", "input", "output", "mul", scaled, {with_default("scale", 1.0F)}, kMain),
      contrib_op("ScaledTanh", "input", "output", "mul, tanh", scaled_tanh, {required("alpha"), required("beta")},
                 kMain),
      contrib_op("ParametricSoftplus", "X", "Y", "mul, softplus", parametric_softplus,
                 {required("alpha"), required("beta")}, kMain),
      contrib_op("ImageScaler", "input", "output", "mul, add", image_scaler,
                 {with_default("scale", 1.0F), optional_attribute("bias", AttributeType::reals)}, kMain),
      contrib_op(
          "Crop", "input", "output", "slice", crop,
          {optional_attribute("border", AttributeType::integers), optional_attribute("scale", AttributeType::integers)},
          kMain),
      contrib_op("DynamicSlice", "data, starts, ends, axes?", "output", "slice", dynamic_slice, {}, kMain),
      contrib_op("ExpandDims", "X, axis", "Y", "unsqueeze", expand_dims),
      contrib_op("CDist", "A, B", "C", "sub, mul, reduce_sum, sqrt", distances,
                 {with_default("metric", std::string("sqeuclidean"))}),
  };
}

}  // namespace autograph::io
