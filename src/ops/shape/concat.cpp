// concat: joins tensors along `axis`; all other extents must agree.
#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/index.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  std::optional<Shape> sum;
  bool all_ranked = true;
  for (size_t slot = 0; slot < context.num_inputs(); ++slot) {
    const Shape& x = context.shape(slot);
    if (!x.has_rank()) {
      all_ranked = false;
      continue;
    }
    const int64_t axis = context.normalized_axis(context.attributes().integer("axis"), x.rank());
    if (!sum) {
      sum = x;
      continue;
    }
    context.require_rank(slot, sum->rank());
    for (int64_t a = 0; a < x.rank(); ++a) {
      (*sum)[a] = a == axis ? (*sum)[a] + x[a] : merged_dim(context, (*sum)[a], x[a], "inputs");
    }
  }
  if (sum && !all_ranked) {
    (*sum)[front_axis(context.attributes().integer("axis"), sum->rank())] = Dim::unknown();
  }
  context.set_output(0, context.dtype(0), sum ? *sum : Shape::unknown());
}

void reference(const OpCall& call) {
  const TensorView y = call.output(0);
  const int64_t axis = front_axis(call.attributes.integer("axis"), y.rank());
  const std::vector<int64_t> strides = dense_strides(y.dims());
  Strided target{0, strides};
  for (const TensorView& x : call.inputs) {
    copy_strided(x, {0, dense_strides(x.dims())}, y, target, x.dims());
    target.start += x.dim(axis) * strides[static_cast<size_t>(axis)];
  }
}

OpSample sample(Random& random) {
  Dims dims = draw_dims(random, 1);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = draw(random, -rank, rank - 1);
  OpSample result{.inputs = {}, .attributes = {{"axis", axis}}};
  const int64_t count = draw(random, 1, 4);
  for (int64_t k = 0; k < count; ++k) {
    dims[static_cast<size_t>(front_axis(axis, rank))] = draw(random, 1, 4);
    result.inputs.emplace_back(draw_tensor(random, DType::f32, dims));
  }
  return result;
}

// `axis` had a default of 1 before opset 4.
std::vector<ValueId> import_onnx(ForeignNode& node) {
  if (node.opset < 4 && !node.attributes.contains("axis")) node.attributes.set("axis", int64_t{1});
  return node.emit();
}

// Its piece for each; extents that are not known before running are read from the inputs.
void vjp(VjpContext& c) {
  const int64_t axis = c.attributes().integer("axis");
  int64_t begin = 0;
  bool is_known = true;
  for (size_t slot = 0; slot < c.num_inputs() && is_known; ++slot) {
    is_known = c.in(slot).shape().has_rank();
    const Dim extent = is_known ? c.in(slot).shape()[front_axis(axis, c.in(slot).rank())] : Dim::unknown();
    is_known = extent.is_known();
  }
  if (is_known) {
    for (size_t slot = 0; slot < c.num_inputs(); ++slot) {
      const int64_t end = begin + c.in(slot).dim(axis);
      if (c.wants(slot)) c.set(slot, slice(c.gy(0), {begin}, {end}, {axis}));
      begin = end;
    }
    return;
  }
  std::vector<Var> extents;
  for (size_t slot = 0; slot < c.num_inputs(); ++slot) {
    extents.push_back(gather(extents_of(c.in(slot)), constant_like(c.in(0), Tensor::vector({axis}))));
  }
  const std::vector<Var> pieces =
      apply_all(split_def(), {c.gy(0), concat(extents, 0)}, {{"axis", axis}}, static_cast<int>(c.num_inputs()));
  for (size_t slot = 0; slot < c.num_inputs(); ++slot) c.set(slot, pieces[slot]);
}

}  // namespace

Var concat(const std::vector<Var>& xs, int64_t axis) { return autograph::apply(concat_def(), xs, {{"axis", axis}}); }

const OpDef& concat_def() {
  static const OpDef def{
      .name = "concat",
      .doc = "Joins tensors along axis.",
      .inputs = {{"inputs", "T", "Equal extents but along axis.", Arity::variadic}},
      .outputs = {{"concat_result", "T", "Extents along axis added up."}},
      .types = {{"T", dtypes::kAll}},
      .attributes = {{.name = "axis", .doc = "The axis to join along, -rank..rank-1.", .required = true}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .traits = {.moves = true},
      .onnx = {{.name = "Concat", .import = import_onnx, .export_since = 4}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
