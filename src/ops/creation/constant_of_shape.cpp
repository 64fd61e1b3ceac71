// constant_of_shape: a tensor of the shape in its input, every element equal to the one element of `value` (f32 0 by
// default).
#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  DType dtype = DType::f32;
  if (const auto* value = context.attributes().find_as<Tensor>("value")) {
    if (value->num_elements() != 1) {
      context.fail<ValueError>("value", fmt::format("expected one element, got shape {}", to_string(value->dims())));
    }
    dtype = value->dtype();
  }
  const std::optional<int64_t> length = list_length(context, 0);
  const auto dims = context.known_integers(0);
  if (!dims) return context.set_output(0, dtype, length ? Shape::of_rank(*length) : Shape::unknown());
  for (const int64_t d : *dims) {
    if (d < 0) context.fail<ValueError>("input", fmt::format("expected extents of 0 or more, got {}", d));
  }
  context.set_output(0, dtype, Shape::of(*dims));
}

void reference(const OpCall& call) {
  const auto* value = call.attributes.find_as<Tensor>("value");
  fill_with(call.output(0), value ? value->view() : TensorView());
}

OpSample sample(Random& random) {
  OpSample result{.inputs = {Tensor::vector(draw_dims(random))}};
  if (draw_bool(random)) result.attributes.set("value", draw_tensor(random, DType::f32, {1}));
  return result;
}

}  // namespace

Var constant_of_shape(Var shape, Tensor value) {
  return apply(constant_of_shape_def(), {shape}, {{"value", std::move(value)}});
}

const OpDef& constant_of_shape_def() {
  static const OpDef def{
      .name = "constant_of_shape",
      .doc = "A tensor of the given shape with one value everywhere.",
      .inputs = {{"input", "I", "[rank of the output]: its extents."}},
      .outputs = {{"output", "T", "The shape in input, the dtype of value."}},
      .types = {{"I", dtypes::kI64}, {"T", dtypes::kAll}},
      .attributes = {{"value", AttributeType::tensor, "One element; f32 0 when absent."}},
      .infer = infer,
      .reference = reference,
      .no_grad = "the output depends on the shape alone",
      .onnx = {{"ConstantOfShape", 9}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
