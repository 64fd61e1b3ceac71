// rotary_embedding: rotates pairs (a, b) of elements of each head by the angle of the position:
// (a cos - b sin, a sin + b cos).
//
// The pairs are elements i and i + n/2 of the first n = rotary_embedding_dim elements (0: all), or neighbours when
// interleaved; the rest is copied. The caches are looked up by position_ids, or given per position.
#include "autograph/op_def.h"
#include "autograph/ops/attention.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "ops/attention/heads.h"
#include "ops/defs.h"
#include "ops/extents.h"
#include "ops/gradients.h"
#include "ops/sample.h"

namespace autograph {
namespace {

const int64_t* num_heads(const Attributes& attributes) {
  const int64_t* heads = attributes.find_as<int64_t>("num_heads");
  return heads && *heads == 0 ? nullptr : heads;
}

void check_caches(const InferContext& context, const HeadDims& x, const Dim& half) {
  const bool by_position = context.has_input(3);
  for (const size_t slot : {size_t{1}, size_t{2}}) {
    context.require_rank(slot, by_position ? 2 : 3);
    const Shape& cache = context.shape(slot);
    if (!cache.has_rank()) continue;
    same_extent(context, cache[cache.rank() - 1], half, "last dim of the caches");
    if (by_position) continue;
    same_extent(context, cache[0], x.batch, "batch of the caches");
    same_extent(context, cache[1], x.length, "length of the caches");
  }
  if (!by_position) return;
  if (context.shape(1).has_rank() && context.shape(2).has_rank()) {
    same_extent(context, context.shape(1)[0], context.shape(2)[0], "positions of the caches");
  }
  context.require_rank(3, 2);
  if (!context.shape(3).has_rank()) return;
  same_extent(context, context.shape(3)[0], x.batch, "batch of position_ids");
  same_extent(context, context.shape(3)[1], x.length, "length of position_ids");
}

void infer(InferContext& context) {
  const HeadDims x = infer_heads(context, 0, num_heads(context.attributes()));
  const int64_t rotated = context.attributes().integer("rotary_embedding_dim");
  context.require<ValueError>(rotated >= 0, "rotary_embedding_dim", fmt::format("expected 0 or more, got {}", rotated));
  const Dim extent = rotated == 0 ? x.size : Dim(rotated);
  if (extent.is_known()) {
    context.require<ValueError>(extent.value() % 2 == 0, "rotary_embedding_dim",
                                fmt::format("expected an even number, got {}", extent.value()));
  }
  if (extent.is_known() && x.size.is_known()) {
    context.require<ValueError>(
        extent.value() <= x.size.value(), "rotary_embedding_dim",
        fmt::format("expected at most the head size {}, got {}", x.size.value(), extent.value()));
  }
  check_caches(context, x, extent.is_unknown() ? extent : floor_div(extent, 2));
  context.set_output(0, context.dtype(0), context.shape(0));
}

// Row of the caches for every (batch, position).
std::vector<int64_t> cache_rows(const OpCall& call, int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(count));
  const TensorView ids = call.input(3);
  for (int64_t i = 0; i < count; ++i) {
    rows[static_cast<size_t>(i)] = ids.is_present() ? ids.data<int64_t>()[i] : i;
    if (!ids.is_present()) continue;
    const int64_t limit = call.input(1).dim(0);
    int64_t& id = rows[static_cast<size_t>(i)];
    AG_CHECK_USER(id >= -limit && id < limit, ValueError, "[rotary_embedding] position_ids: expected {}..{}, got {}",
                  -limit, limit - 1, id);
    if (id < 0) id += limit;
  }
  return rows;
}

void reference(const OpCall& call) {
  const int64_t* heads = num_heads(call.attributes);
  Heads x(call.input(0), heads ? *heads : 1);
  const int64_t rotated = call.attributes.integer("rotary_embedding_dim");
  const int64_t half = (rotated == 0 ? x.size() : rotated) / 2;
  const bool interleaved = call.attributes.flag("interleaved");
  const std::vector<double> cosines = real_values(call.input(1));
  const std::vector<double> sines = real_values(call.input(2));
  const std::vector<int64_t> rows = cache_rows(call, x.batch() * x.length());
  for (int64_t b = 0; b < x.batch(); ++b) {
    for (int64_t i = 0; i < x.length(); ++i) {
      const int64_t cache = rows[static_cast<size_t>(b * x.length() + i)] * half;
      for (int64_t head = 0; head < x.heads(); ++head) {
        double* row = x.row(b, head, i);
        for (int64_t pair = 0; pair < half; ++pair) {
          double& first = row[interleaved ? 2 * pair : pair];
          double& second = row[interleaved ? 2 * pair + 1 : pair + half];
          const double cosine = cosines[static_cast<size_t>(cache + pair)];
          const double sine = sines[static_cast<size_t>(cache + pair)];
          const double real = cosine * first - sine * second;
          second = sine * first + cosine * second;
          first = real;
        }
      }
    }
  }
  store_reals(x.values(), call.output(0));
}

OpSample sample(Random& random) {
  const int64_t batch = draw(random, 1, 2), heads = draw(random, 1, 3), length = draw(random, 1, 4);
  const int64_t size = 2 * draw(random, 1, 3);
  const bool packed = draw_bool(random);
  const int64_t rotated = draw_bool(random) ? 0 : 2 * draw(random, 1, size / 2);
  const int64_t half = (rotated == 0 ? size : rotated) / 2;
  OpSample result;
  result.inputs = {
      draw_tensor(random, DType::f32, packed ? Dims{batch, length, heads * size} : Dims{batch, heads, length, size})};
  const bool by_position = draw_bool(random);
  const int64_t positions = draw(random, 1, 6);
  for (int i = 0; i < 2; ++i) {
    result.inputs.emplace_back(
        draw_tensor(random, DType::f32, by_position ? Dims{positions, half} : Dims{batch, length, half}, -1, 1));
  }
  if (by_position) {
    result.inputs.emplace_back(draw_tensor(random, DType::i64, {batch, length}, 0, static_cast<double>(positions - 1)));
  }
  result.attributes = {{"interleaved", draw(random, 0, 1)}, {"rotary_embedding_dim", rotated}};
  if (packed) result.attributes.set("num_heads", heads);
  return result;
}

// x [batch, heads, length, size] or packed as [batch, length, heads, size].
Var by_position(const Var& x, const int64_t* heads) {
  return heads ? reshape(x, {0, 0, *heads, -1}) : transpose(x, {0, 2, 1, 3});
}

// What the pairs add up to over the heads: [batch, length, n/2] of a tensor like x.
Var sums_of_pairs(VjpContext& c, const Var& parts) {
  const Var x = by_position(parts, parts.rank() == 3 ? num_heads(c.attributes()) : nullptr);
  const int64_t rotated = c.attributes().integer("rotary_embedding_dim");
  const Var sums = reduce_sum(rotated == 0 ? x : slice(x, {0}, {rotated}, {3}), {2}, false);
  const bool is_interleaved = c.attributes().flag("interleaved");
  return is_interleaved ? reduce_sum(reshape(sums, {0, 0, -1, 2}), {3}, false)
                        : reduce_sum(reshape(sums, {0, 0, 2, -1}), {2}, false);
}

// The gradient of a cache: the rotation is linear in both, and what it does to x with the caches 1 and 0, or 0 and 1,
// is the slope.
void set_cache_gradient(VjpContext& c, size_t slot) {
  if (!c.wants(slot)) return;
  if (!c.in(0).shape().has_rank()) c.unsupported("its rule needs a known rank for the gradients of the caches");
  const Var cosines = filled_like(c.in(1), slot == 1 ? 1 : 0), sines = filled_like(c.in(2), slot == 2 ? 1 : 0);
  const Var slope = apply(c.op(), {c.in(0), cosines, sines, c.in(3)}, c.attributes());
  const Var rows = sums_of_pairs(c, c.gy(0) * slope);
  c.set(slot, !c.has_input(3) ? rows : scatter_nd(filled_like(c.in(slot), 0), unsqueeze(c.in(3), {-1}), rows, "add"));
}

// With respect to x the inverse rotation.
void vjp(VjpContext& c) {
  if (c.wants(0)) c.set(0, apply(c.op(), {c.gy(0), c.in(1), neg(c.in(2)), c.in(3)}, c.attributes()));
  for (const size_t cache : {size_t{1}, size_t{2}}) set_cache_gradient(c, cache);
}

}  // namespace

Var rotary_embedding(Var x, Var cosines, Var sines, Var position_ids, RotaryOptions options) {
  Attributes attributes{{"interleaved", int64_t{options.interleaved}}, {"rotary_embedding_dim", options.rotated_size}};
  if (options.num_heads > 0) attributes.set("num_heads", options.num_heads);
  return apply(rotary_embedding_def(), {x, cosines, sines, position_ids}, std::move(attributes));
}

const OpDef& rotary_embedding_def() {
  static const OpDef def{
      .name = "rotary_embedding",
      .doc = "Rotates pairs of elements of each head by an angle that depends on the position.",
      .inputs = {{"x", "T", "[batch, heads, length, size], or [batch, length, heads * size]."},
                 {"cos_cache", "T", "[positions, n/2] with position_ids, else [batch, length, n/2]."},
                 {"sin_cache", "T", "Shape of cos_cache."},
                 {"position_ids", "M", "[batch, length], rows of the caches.", Arity::optional}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", dtypes::kFloat}, {"M", dtypes::kI64}},
      .attributes = {{"interleaved", AttributeType::integer, "1: pairs are neighbours.", int64_t{0}},
                     {"num_heads", AttributeType::integer, "Number of heads; needed when x has rank 3."},
                     {"rotary_embedding_dim", AttributeType::integer, "Elements to rotate; 0: all.", int64_t{0}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{.name = "RotaryEmbedding", .since = 23, .export_since = 23}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
