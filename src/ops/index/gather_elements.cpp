// gather_elements: y[i] = x[i with its position along `axis` replaced by indices[i]]. `indices` has the rank of x; its
// other extents may be smaller.
#include "autograph/op_def.h"
#include "autograph/ops/index.h"
#include "graph/picked_cost.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/index/elementwise_index.h"
#include "ops/index/index_check.h"
#include "ops/sample.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  check_elementwise_index(context);
  context.set_output(0, context.dtype(0), context.shape(1));
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const std::vector<int64_t> positions =
      elementwise_positions("gather_elements", x, call.input(1), call.attributes.integer("axis"));
  dispatch_storage(x.dtype(), [&]<class T>() {
    T* out = call.output(0).mutable_data<T>();
    for (size_t i = 0; i < positions.size(); ++i) out[i] = x.data<T>()[positions[i]];
  });
}

OpSample sample(Random& random) {
  ElementwiseIndexSample drawn = draw_elementwise_index(random);
  return {.inputs = {drawn.data, drawn.indices}, .attributes = {{"axis", drawn.axis}}};
}

void vjp(VjpContext& c) {
  if (!c.wants(0)) return;
  const int64_t axis = c.attributes().integer("axis");
  c.set_total(0, scatter_elements(c.so_far(0), c.in(1), c.gy(0), axis, "add"));
}

}  // namespace

Var gather_elements(Var x, Var indices, int64_t axis) {
  return apply(gather_elements_def(), {x, indices}, {{"axis", axis}});
}

const OpDef& gather_elements_def() {
  static const OpDef def{
      .name = "gather_elements",
      .doc = "Picks single elements of data along axis by index.",
      .inputs = {{"data", "T", "Rank 1 or more."}, {"indices", "I", "Same rank; no larger but along axis."}},
      .outputs = {{"output", "T", "Shape of indices."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kIndex}},
      .attributes = {{"axis", AttributeType::integer, "The axis to pick along.", int64_t{0}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .traits = {.moves = true},
      .cost = picked_cost,
      .onnx = {{"GatherElements", 11}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
