// gather_nd: y[b..., i...] = x[b..., indices[b..., i..., :], ...]: the last dim of `indices` holds tuples of indices
// into the dims of x behind the first `batch_dims`.
#include "autograph/op_def.h"
#include "autograph/ops/index.h"
#include "graph/picked_cost.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/index/nd_index.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const Shape& indices = context.shape(1);
  const int64_t batch_dims = context.attributes().integer("batch_dims");
  if (batch_dims < 0) context.fail<ValueError>("batch_dims", fmt::format("expected 0 or more, got {}", batch_dims));
  if (!x.has_rank() || !indices.has_rank()) return context.set_output(0, context.dtype(0), Shape::unknown());
  if (batch_dims >= x.rank() || batch_dims >= indices.rank()) {
    context.fail<ValueError>("batch_dims", fmt::format("expected less than the ranks of {} and {}, got {}",
                                                       to_string(x), to_string(indices), batch_dims));
  }
  for (int64_t a = 0; a < batch_dims; ++a) merged_dim(context, x[a], indices[a], "batch dims");
  const Dim& depth = indices[indices.rank() - 1];
  if (!depth.is_known()) return context.set_output(0, context.dtype(0), Shape::unknown());
  if (depth.value() < 1 || depth.value() > x.rank() - batch_dims) {
    context.fail<ShapeError>(
        "indices", fmt::format("expected tuples of 1..{}, got shape {}", x.rank() - batch_dims, to_string(indices)));
  }
  std::vector<Dim> dims(indices.dims().begin(), indices.dims().end() - 1);
  dims.insert(dims.end(), x.dims().begin() + batch_dims + depth.value(), x.dims().end());
  context.set_output(0, context.dtype(0), Shape(std::move(dims)));
}

void reference(const OpCall& call) {
  const NdSlices slices = resolve_nd("gather_nd", call.input(0), call.input(1), call.attributes.integer("batch_dims"));
  int64_t at = 0;
  for (const int64_t start : slices.starts) {
    copy_run(call.input(0), start, call.output(0), at, slices.length);
    at += slices.length;
  }
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t batch_dims = draw(random, 0, std::min<int64_t>(1, rank - 1));
  const int64_t depth = draw(random, 1, rank - batch_dims);
  Dims index_dims(dims.begin(), dims.begin() + batch_dims);
  if (draw_bool(random)) index_dims.push_back(draw(random, 1, 3));
  index_dims.push_back(depth);
  Tensor indices = Tensor::zeros(DType::i64, index_dims);
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    const int64_t extent = dims[static_cast<size_t>(batch_dims + i % depth)];
    indices.mutable_data<int64_t>()[i] = draw(random, -extent, extent - 1);
  }
  return {.inputs = {draw_tensor(random, DType::f32, dims), indices}, .attributes = {{"batch_dims", batch_dims}}};
}

void vjp(VjpContext& c) {
  if (c.attributes().integer("batch_dims") != 0) return moved_elements_vjp(c);
  if (c.wants(0)) c.set_total(0, scatter_nd(c.so_far(0), c.in(1), c.gy(0), "add"));
}

}  // namespace

Var gather_nd(Var x, Var indices, int64_t batch_dims) {
  return apply(gather_nd_def(), {x, indices}, {{"batch_dims", batch_dims}});
}

const OpDef& gather_nd_def() {
  static const OpDef def{
      .name = "gather_nd",
      .doc = "Picks the slices of data that tuples of indices name.",
      .inputs = {{"data", "T", "Rank 1 or more."},
                 {"indices", "I", "[batch dims..., any..., k]: tuples of k indices behind the batch dims."}},
      .outputs = {{"output", "T", "indices.shape[:-1] + data.shape[batch_dims + k:]."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kI64}},
      .attributes = {{"batch_dims", AttributeType::integer, "Leading dims that go together.", int64_t{0}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .traits = {.moves = true},
      .cost = picked_cost,
      .onnx = {{"GatherND", 11}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
