// scatter_nd: a copy of `data` in which slice k of `updates` goes where tuple k in the last dim of `indices` points.
// With a reduction it is combined with what is there.
#include "autograph/op_def.h"
#include "autograph/ops/index.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/index/nd_index.h"
#include "ops/index/scatter_update.h"
#include "ops/index/scatter_vjp.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"

namespace autograph {
namespace {

void check_shapes(const InferContext& context) {
  const Shape& x = context.shape(0);
  const Shape& indices = context.shape(1);
  if (!x.has_rank() || !indices.has_rank()) return;
  if (indices.rank() < 1) context.fail<ShapeError>("indices", "expected rank 1 or more, got a scalar");
  const Dim& depth = indices[indices.rank() - 1];
  if (!depth.is_known()) return;
  if (depth.value() > x.rank()) {
    context.fail<ShapeError>("indices",
                             fmt::format("expected tuples of 0..{}, got shape {}", x.rank(), to_string(indices)));
  }
  std::vector<Dim> expected(indices.dims().begin(), indices.dims().end() - 1);
  expected.insert(expected.end(), x.dims().begin() + depth.value(), x.dims().end());
  context.require_rank(2, static_cast<int64_t>(expected.size()));
  const Shape& updates = context.shape(2);
  for (size_t a = 0; updates.has_rank() && a < expected.size(); ++a) {
    merged_dim(context, expected[a], updates.dims()[a], "updates");
  }
}

void infer(InferContext& context) {
  check_shapes(context);
  check_reduction(context);
  context.set_output(0, context.dtype(0), context.shape(0));
}

void reference(const OpCall& call) {
  const NdSlices slices = resolve_nd("scatter_nd", call.input(0), call.input(1), 0);
  scatter_updates(call, slices.starts, slices.length);
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1, 3);
  const int64_t depth = draw(random, 1, static_cast<int64_t>(dims.size()));
  const int64_t count = draw(random, 1, 3);
  Tensor indices = Tensor::zeros(DType::i64, {count, depth});
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    const int64_t extent = dims[static_cast<size_t>(i % depth)];
    indices.mutable_data<int64_t>()[i] = draw(random, -extent, extent - 1);
  }
  Dims update_dims{count};
  update_dims.insert(update_dims.end(), dims.begin() + depth, dims.end());
  const auto* reduction = draw_one_of<const char*>(random, {"none", "add", "mul", "max", "min"});
  return {.inputs = {draw_tensor(random, DType::f32, dims), indices, draw_tensor(random, DType::f32, update_dims)},
          .attributes = {{"reduction", std::string(reduction)}}};
}

}  // namespace

Var scatter_nd(Var x, Var indices, Var updates, const std::string& reduction) {
  return apply(scatter_nd_def(), {x, indices, updates}, {{"reduction", reduction}});
}

const OpDef& scatter_nd_def() {
  static const OpDef def{
      .name = "scatter_nd",
      .doc = "Writes slices into a copy of data, where tuples of indices point.",
      .inputs = {{"data", "T", "Rank 1 or more."},
                 {"indices", "I", "[any..., k]: tuples of k indices."},
                 {"updates", "T", "indices.shape[:-1] + data.shape[k:]."}},
      .outputs = {{"output", "T", "Shape of data."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kI64}},
      .attributes = {reduction_spec()},
      .infer = infer,
      .reference = reference,
      .vjp = [](VjpContext& c) { scatter_vjp(c, gather_nd_def()); },
      .onnx = {{.name = "ScatterND", .since = 11, .export_since = 18}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
