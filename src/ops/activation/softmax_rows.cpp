#include "ops/activation/softmax_rows.h"

#include "ops/sample.h"

namespace autograph {

AxisRows::AxisRows(const TensorView& x, int64_t axis) {
  if (axis < 0) axis += x.rank();
  extent = x.dim(axis);
  stride = 1;
  for (int64_t a = axis + 1; a < x.rank(); ++a) stride *= x.dim(a);
  count = extent == 0 ? 0 : x.num_elements() / extent;
}

void infer_along_axis(InferContext& context) {
  const Shape& x = context.shape(0);
  if (x.has_rank()) context.normalized_axis(context.attributes().integer("axis"), x.rank());
  context.set_output(0, context.dtype(0), x);
}

std::vector<ValueId> import_flattened(ForeignNode& node) {
  if (node.opset >= 13) return node.emit();
  const int64_t axis = node.attributes.get_or<int64_t>("axis", 1);
  const Type type = node.input_type(0);
  const bool last = axis == -1 || (type.shape().has_rank() && axis == type.shape().rank() - 1);
  if (!last) {
    const ValueId x = node.inputs[0];
    const ValueId flat = node.add(get_op("flatten"), {x}, {{"axis", axis}}).front();
    const ValueId y = node.add(node.op, {flat}, {{"axis", int64_t{1}}}).front();
    const ValueId shape = node.add(get_op("shape"), {x}).front();
    return node.add(get_op("reshape"), {y, shape}, {{"allowzero", int64_t{1}}});
  }
  node.attributes.set("axis", int64_t{-1});
  return node.emit();
}

OpSample sample_along_axis(Random& random) {
  const Dims dims = draw_dims(random, 1, 4);
  const auto rank = static_cast<int64_t>(dims.size());
  return {.inputs = {draw_tensor(random, DType::f32, dims)}, .attributes = {{"axis", draw(random, -rank, rank - 1)}}};
}

OpDef make_along_axis() {
  OpDef def;
  def.inputs = {{"x", "T", "Any shape of rank 1 or more."}};
  def.outputs = {{"y", "T", "Shape of x."}};
  def.types = {{"T", dtypes::kFloat}};
  def.attributes = {
      {"axis", AttributeType::integer, "The axis to normalise over; negative counts from the end.", int64_t{-1}}};
  def.infer = infer_along_axis;
  def.sample = sample_along_axis;
  return def;
}

}  // namespace autograph
