#include "ops/attention/heads.h"

#include <fmt/core.h>

#include "ops/extents.h"
#include "ops/sample.h"

namespace autograph {

HeadDims infer_heads(const InferContext& context, size_t slot, const int64_t* num_heads) {
  const Shape& shape = context.shape(slot);
  if (num_heads && *num_heads < 1) {
    context.fail<ValueError>("number of heads", fmt::format("expected 1 or more, got {}", *num_heads));
  }
  if (!shape.has_rank()) return {};
  if (shape.rank() == 4) {
    if (num_heads) same_extent(context, shape[1], Dim(*num_heads), "number of heads");
    return {shape[0], shape[1], shape[2], shape[3]};
  }
  if (shape.rank() != 3) {
    context.fail<ShapeError>("rank", fmt::format("expected 3 or 4, got {}", to_string(shape)));
  }
  context.require<ValueError>(num_heads != nullptr, "number of heads", "required when inputs have rank 3");
  const Dim& packed = shape[2];
  if (packed.is_known() && packed.value() % *num_heads != 0) {
    context.fail<ShapeError>("number of heads",
                             fmt::format("expected a divisor of {}, got {}", packed.value(), *num_heads));
  }
  return {shape[0], Dim(*num_heads), shape[1], floor_div(packed, *num_heads)};
}

Shape pack_heads(const InferContext& context, size_t slot, const HeadDims& dims) {
  const Shape& like = context.shape(slot);
  if (!like.has_rank()) return Shape::unknown();
  if (like.rank() == 4) return {dims.batch, dims.heads, dims.length, dims.size};
  const bool known = !dims.heads.is_unknown() && !dims.size.is_unknown();
  return {dims.batch, dims.length, known ? dims.heads * dims.size : Dim::unknown()};
}

AttentionHeads infer_attention_heads(const InferContext& context) {
  const Attributes& attributes = context.attributes();
  for (const char* name : {"left_window_size", "right_window_size"}) {
    const int64_t size = attributes.integer(name);
    context.require<ValueError>(size >= -1, name, fmt::format("expected -1 or more, got {}", size));
  }
  context.require<ValueError>(attributes.get_or<float>("scale", 1) >= 0, "scale", "expected 0 or more");
  const auto* kv_heads = attributes.find_as<int64_t>("kv_num_heads");
  HeadDims q = infer_heads(context, 0, attributes.find_as<int64_t>("q_num_heads"));
  HeadDims k = infer_heads(context, 1, kv_heads), v = infer_heads(context, 2, kv_heads);
  same_extent(context, q.size, k.size, "head size of q and k");
  same_extent(context, k.length, v.length, "length of k and v");
  same_extent(context, k.heads, v.heads, "heads of k and v");
  same_extent(context, q.batch, same_extent(context, k.batch, v.batch, "batch of k and v"), "batch of q and k");
  if (q.heads.is_known() && k.heads.is_known() && (k.heads.value() == 0 || q.heads.value() % k.heads.value() != 0)) {
    context.fail<ShapeError>("heads",
                             fmt::format("expected a multiple of {} for q, got {}", k.heads.value(), q.heads.value()));
  }
  return {q, k, v};
}

void check_attention_mask(const InferContext& context, size_t slot, const HeadDims& q, const Dim& keys) {
  if (!context.has_input(slot) || !context.shape(slot).has_rank()) return;
  const Shape& mask = context.shape(slot);
  const Dim* expected[] = {&q.batch, &q.heads, &q.length};
  bool fits = mask.rank() >= 1 && mask.rank() <= 4;
  for (int64_t back = 2; fits && back <= mask.rank(); ++back) {
    const Dim& extent = mask[mask.rank() - back];
    const Dim& target = *expected[4 - back];
    fits = !extent.is_known() || !target.is_known() || extent.value() == 1 || extent.value() == target.value();
  }
  if (fits && mask[mask.rank() - 1].is_known() && keys.is_known()) fits = mask[mask.rank() - 1].value() <= keys.value();
  if (fits) return;
  context.fail<ShapeError>("attn_mask",
                           fmt::format("{} does not broadcast to [{},{},{},{}]", to_string(mask), to_string(q.batch),
                                       to_string(q.heads), to_string(q.length), to_string(keys)));
}

void DrawnHeads::set_heads(Attributes& attributes) const {
  if (!packed) return;
  attributes.set("q_num_heads", heads);
  attributes.set("kv_num_heads", kv_heads);
}

DrawnHeads draw_heads(Random& random) {
  DrawnHeads drawn;
  drawn.batch = draw(random, 1, 2), drawn.kv_heads = draw(random, 1, 2);
  drawn.heads = drawn.kv_heads * draw(random, 1, 2);
  drawn.queries = draw(random, 1, 4), drawn.keys = draw(random, 1, 4);
  drawn.size = draw(random, 1, 4), drawn.value_size = draw(random, 1, 4);
  drawn.packed = draw_bool(random);
  const auto add = [&](int64_t heads, int64_t length, int64_t size) {
    const Dims dims = drawn.packed ? Dims{drawn.batch, length, heads * size} : Dims{drawn.batch, heads, length, size};
    drawn.qkv.emplace_back(draw_tensor(random, DType::f32, dims));
  };
  add(drawn.heads, drawn.queries, drawn.size);
  add(drawn.kv_heads, drawn.keys, drawn.size);
  add(drawn.kv_heads, drawn.keys, drawn.value_size);
  return drawn;
}

Heads::Heads(const TensorView& view, int64_t num_heads) : layout_(view.dims(), num_heads), values_(real_values(view)) {}

Heads::Heads(int64_t batch, int64_t heads, int64_t length, int64_t size)
    : layout_(Dims{batch, heads, length, size}, heads),
      values_(static_cast<size_t>(batch * heads * length * size), 0.0) {}

}  // namespace autograph
