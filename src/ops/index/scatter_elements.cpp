// scatter_elements: a copy of `data` in which element i of `updates` goes to position i with its place along `axis`
// replaced by indices[i]. With a reduction it is combined with what is there.
#include "autograph/op_def.h"
#include "autograph/ops/index.h"
#include "ops/defs.h"
#include "ops/index/elementwise_index.h"
#include "ops/index/index_check.h"
#include "ops/index/scatter_update.h"
#include "ops/index/scatter_vjp.h"
#include "ops/sample.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  check_elementwise_index(context);
  check_reduction(context);
  const Shape& indices = context.shape(1);
  const Shape& updates = context.shape(2);
  if (indices.has_rank()) context.require_rank(2, indices.rank());
  for (int64_t a = 0; indices.has_rank() && updates.has_rank() && a < indices.rank(); ++a) {
    merged_dim(context, indices[a], updates[a], "indices and updates");
  }
  context.set_output(0, context.dtype(0), context.shape(0));
}

void reference(const OpCall& call) {
  const std::vector<int64_t> starts =
      elementwise_positions("scatter_elements", call.input(0), call.input(1), call.attributes.integer("axis"));
  scatter_updates(call, starts, 1);
}

OpSample sample(Random& random) {
  ElementwiseIndexSample drawn = draw_elementwise_index(random);
  const Dims dims = drawn.indices.dims();
  const auto* reduction = draw_one_of<const char*>(random, {"none", "add", "mul", "max", "min"});
  return {.inputs = {drawn.data, drawn.indices, draw_tensor(random, DType::f32, dims)},
          .attributes = {{"axis", drawn.axis}, {"reduction", std::string(reduction)}}};
}

}  // namespace

Var scatter_elements(Var x, Var indices, Var updates, int64_t axis, const std::string& reduction) {
  return apply(scatter_elements_def(), {x, indices, updates}, {{"axis", axis}, {"reduction", reduction}});
}

const OpDef& scatter_elements_def() {
  static const OpDef def{
      .name = "scatter_elements",
      .doc = "Writes single elements into a copy of data, at indices along axis.",
      .inputs = {{"data", "T", "Rank 1 or more."},
                 {"indices", "I", "Same rank; no larger but along axis."},
                 {"updates", "T", "Shape of indices."}},
      .outputs = {{"output", "T", "Shape of data."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kIndex}},
      .attributes = {{"axis", AttributeType::integer, "The axis to write along.", int64_t{0}}, reduction_spec()},
      .infer = infer,
      .reference = reference,
      .vjp = [](VjpContext& c) { scatter_vjp(c, gather_elements_def()); },
      .onnx = {{.name = "ScatterElements", .since = 11, .export_since = 18},
               {.name = "Scatter", .since = 9, .import_only = true}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
