// softmax: y = exp(x - max(x)) / sum(exp(x - max(x))) along `axis`. A row of -inf gives NaN, as in ONNX.
#include <cmath>
#include <limits>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "ops/op_list.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  if (x.has_rank()) context.normalized_axis(context.attributes().integer("axis"), x.rank());
  context.set_output(0, context.dtype(0), x);
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const int64_t rank = x.rank();
  int64_t axis = call.attributes.integer("axis");
  if (axis < 0) axis += rank;
  const int64_t extent = x.dim(axis);
  int64_t inner = 1;
  for (int64_t a = axis + 1; a < rank; ++a) inner *= x.dim(a);
  const int64_t outer = extent * inner == 0 ? 0 : x.num_elements() / (extent * inner);
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    T* out = call.output(0).mutable_data<T>();
    for (int64_t row = 0; row < outer * inner; ++row) {
      const int64_t base = row / inner * extent * inner + row % inner;
      double largest = -std::numeric_limits<double>::infinity();
      for (int64_t i = 0; i < extent; ++i) largest = std::fmax(largest, static_cast<double>(in[base + i * inner]));
      double sum = 0;
      for (int64_t i = 0; i < extent; ++i) sum += std::exp(static_cast<double>(in[base + i * inner]) - largest);
      for (int64_t i = 0; i < extent; ++i) {
        out[base + i * inner] = T(std::exp(static_cast<double>(in[base + i * inner]) - largest) / sum);
      }
    }
  });
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1, 4);
  const auto rank = static_cast<int64_t>(dims.size());
  return {.inputs = {draw_tensor(random, DType::f32, dims)}, .attributes = {{"axis", draw(random, -rank, rank - 1)}}};
}

// Before opset 13 the input was flattened to [prod(dims before axis), rest], and axis defaulted to 1.
std::vector<ValueId> import_onnx(ForeignNode& node) {
  if (node.opset >= 13) return node.emit();
  const int64_t axis = node.attributes.get_or<int64_t>("axis", 1);
  const Type type = node.input_type(0);
  const bool last = axis == -1 || (type.shape().has_rank() && axis == type.shape().rank() - 1);
  if (!last) {
    const ValueId x = node.inputs[0];
    const ValueId flat = node.add(get_op("flatten"), {x}, {{"axis", axis}}).front();
    const ValueId y = node.add(node.op, {flat}, {{"axis", int64_t{1}}}).front();
    const ValueId shape = node.add(get_op("shape"), {x}).front();
    return node.add(get_op("reshape"), {y, shape});
  }
  node.attributes.set("axis", int64_t{-1});
  return node.emit();
}

}  // namespace

Var softmax(Var x, int64_t axis) { return apply(softmax_def(), {x}, {{"axis", axis}}); }

const OpDef& softmax_def() {
  static const OpDef def{
      .name = "softmax",
      .doc = "y = exp(x) / sum(exp(x)) along axis.",
      .inputs = {{"x", "T", "Any shape of rank 1 or more."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = {{"axis", AttributeType::integer, "The axis to normalise over.", int64_t{-1}}},
      .infer = infer,
      .reference = reference,
      .onnx = {{.name = "Softmax", .import = import_onnx, .export_since = 13}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
