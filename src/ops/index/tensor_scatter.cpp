// tensor_scatter: writes `update` into a copy of a key or value cache, for each batch entry b at write_indices[b] along
// `axis`; mode circular wraps around at the end of the cache, linear must fit.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/index/first_position.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& cache = context.shape(0);
  const Shape& update = context.shape(1);
  context.set_output(0, context.dtype(0), cache);
  if (!cache.has_rank()) return;
  const int64_t axis = context.normalized_axis(context.attributes().integer("axis"), cache.rank());
  context.require<ValueError>(axis != 0, "axis", "expected another axis than the batch, got 0");
  context.require_rank(1, cache.rank());
  for (int64_t a = 0; update.has_rank() && a < cache.rank(); ++a) {
    if (a != axis) {
      merged_dim(context, cache[a], update[a], "update");
    } else if (cache[a].is_known() && update[a].value_or(0) > cache[a].value()) {
      context.fail<ShapeError>(
          "update", fmt::format("expected at most {} positions, got {}", cache[a].value(), update[a].value()));
    }
  }
  if (!context.has_input(2)) return;
  context.require_rank(2, 1);
  if (context.shape(2).has_rank()) merged_dim(context, cache[0], context.shape(2)[0], "write_indices");
}

void reference(const OpCall& call) {
  const TensorView cache = call.input(0);
  const TensorView update = call.input(1);
  const auto axis = static_cast<size_t>(front_axis(call.attributes.integer("axis"), cache.rank()));
  const bool circular = call.attributes.text("mode") == "circular";
  const int64_t capacity = cache.dims()[axis];
  const int64_t length = update.dims()[axis];
  copy_all(cache, call.output(0));
  Dims dims(update.dims().begin(), update.dims().end());
  dims[0] = 1;
  dims[axis] = 1;
  Strided source{0, dense_strides(update.dims())};
  Strided target{0, dense_strides(cache.dims())};
  for (int64_t b = 0; b < cache.dim(0); ++b) {
    const int64_t first = first_position(call.input(2), b, length, circular ? capacity - 1 : capacity - length);
    for (int64_t s = 0; s < length; ++s) {
      source.start = b * source.strides[0] + s * source.strides[axis];
      target.start = b * target.strides[0] + (first + s) % capacity * target.strides[axis];
      copy_strided(update, source, call.output(0), target, dims);
    }
  }
}

OpSample sample(Random& random) {
  Dims dims = draw_dims(random, 2, 4);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = draw(random, 1, rank - 1);
  const int64_t capacity = dims[static_cast<size_t>(axis)];
  const bool circular = draw_bool(random);
  Tensor cache = draw_tensor(random, DType::f32, dims);
  const int64_t length = draw(random, 1, capacity);
  dims[static_cast<size_t>(axis)] = length;
  OpSample result{.inputs = {std::move(cache), draw_tensor(random, DType::f32, dims)},
                  .attributes = {{"axis", draw_bool(random) ? axis : axis - rank},
                                 {"mode", std::string(circular ? "circular" : "linear")}}};
  if (draw_bool(random)) {
    std::vector<int64_t> starts(static_cast<size_t>(dims[0]));
    for (int64_t& start : starts) start = draw(random, 0, circular ? capacity - 1 : capacity - length);
    result.inputs.emplace_back(Tensor::vector(starts));
  }
  return result;
}

// The op applied to positions tells where each element came from: from the cache, or behind it from the update.
void vjp(VjpContext& c) {
  const Var cache = c.in(0), update = c.in(1);
  if (!cache.type().is_static() || !update.type().is_static()) c.unsupported("its rule needs known extents");
  const int64_t old = *cache.shape().num_elements(), fresh = *update.shape().num_elements();
  const Var of_update = linear_positions(update);
  const Var sources =
      apply(c.op(), {linear_positions(cache), of_update + scalar_like(of_update, static_cast<double>(old)), c.in(2)},
            c.attributes());
  const Var both = add_at(expand(scalar_like(c.gy(0), 0), {old + fresh}), sources, c.gy(0));
  if (c.wants(0)) c.set(0, reshape_as(slice(both, {0}, {old}, {0}), cache));
  if (c.wants(1)) c.set(1, reshape_as(slice(both, {old}, {old + fresh}, {0}), update));
}

}  // namespace

Var tensor_scatter(Var cache, Var update, Var write_indices, int64_t axis, const std::string& mode) {
  return apply(tensor_scatter_def(), {cache, update, write_indices}, {{"axis", axis}, {"mode", mode}});
}

const OpDef& tensor_scatter_def() {
  static const OpDef def{
      .name = "tensor_scatter",
      .doc = "Writes an update into a copy of a cache, at a position of its own for every batch entry.",
      .inputs = {{"past_cache", "T", "[batch, ..., capacity, ...]."},
                 {"update", "T", "As past_cache with at most `capacity` positions along axis."},
                 {"write_indices", "I", "[batch]: first position to write; 0 when not given.", Arity::optional}},
      .outputs = {{"present_cache", "T", "Shape of past_cache."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kI64}},
      .attributes = {{"axis", AttributeType::integer, "The axis of positions, not the first.", int64_t{-2}},
                     {.name = "mode",
                      .type = AttributeType::text,
                      .doc = "circular: positions wrap around.",
                      .default_value = "linear",
                      .allowed = {"linear", "circular"}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{"TensorScatter", 24}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
