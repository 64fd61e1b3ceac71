// Contrib rotary embedding, and the rotation that GroupQueryAttention shares with it.
#include "io/onnx/contrib/rotary.h"

namespace autograph::io {
namespace {

Var piece(Var x, int64_t axis, int64_t begin, int64_t end) { return slice(x, {begin}, {end}, {axis}); }

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

// [..., n] with pairs of neighbours, rotated.
Var rotate_neighbours(Var x, Var cosines, Var sines) {
  const std::vector<int64_t> split_pairs{0, 0, 0, -1, 2};
  const Var pairs = reshape(x, split_pairs);
  const Var a = squeeze(piece(pairs, 4, 0, 1), {4});
  const Var b = squeeze(piece(pairs, 4, 1, 2), {4});
  const Var first = sub(mul(a, cosines), mul(b, sines));
  const Var second = add(mul(a, sines), mul(b, cosines));
  return reshape(concat({unsqueeze(first, {4}), unsqueeze(second, {4})}, 4), std::vector<int64_t>{0, 0, 0, -1});
}

}  // namespace

Var rotated(const ContribCall& call, Var x, Var cosines, Var sines, bool interleaved) {
  const int64_t half = call.extent(cosines, -1);
  const Dim& size = x.shape()[3];
  const bool is_whole = size.is_known() && size.value() == 2 * half;
  const Var turning = is_whole ? x : piece(x, 3, 0, 2 * half);
  std::vector<Var> parts;
  if (interleaved) {
    parts.push_back(rotate_neighbours(turning, cosines, sines));
  } else {
    const Var a = piece(turning, 3, 0, half);
    const Var b = piece(turning, 3, half, 2 * half);
    parts.push_back(sub(mul(a, cosines), mul(b, sines)));
    parts.push_back(add(mul(a, sines), mul(b, cosines)));
  }
  if (!is_whole) parts.push_back(piece(x, 3, 2 * half, kToTheEnd));
  return parts.size() == 1 ? parts[0] : concat(parts, 3);
}

namespace {

// Position ids as they are, [batch, length], or from the first one on: [1, length].
Var row_positions(const ContribCall& call, Var ids, Var length) {
  return call.rank(ids) == 1 ? unsqueeze(add(ids, counted(call, length)), {0}) : ids;
}

std::vector<Var> rotary_embedding_body(ContribCall& call) {
  call.only("is_packed_batching", {0});
  const Attributes& attributes = call.attributes();
  if (attributes.get_or("scale", 1.0F) != 1.0F)
    call.refuse("attribute 'scale'", "values other than 1 are not supported");
  const Var x = call["input"];
  const Var cosines = call["cos_cache"], sines = call["sin_cache"];
  const bool interleaved = attributes.flag("interleaved");
  if (call.rank(x) == 4) {
    const Var ids = row_positions(call, call["position_ids"], extent_of(x, 2));
    return {rotated(call, x, unsqueeze(gather(cosines, ids), {1}), unsqueeze(gather(sines, ids), {1}), interleaved)};
  }
  if (call.rank(x) != 3) call.refuse("input 'input'", "expected rank 3 or 4, got " + to_string(x.type()));
  const int64_t heads = attributes.integer("num_heads");
  // Without a number of heads the whole head turns.
  const int64_t size = heads > 0 ? -1 : 2 * call.extent(cosines, -1);
  const Var ids = row_positions(call, call["position_ids"], extent_of(x, 1));
  const Var per_head = reshape(x, std::vector<int64_t>{0, 0, heads > 0 ? heads : -1, size});
  const Var y =
      rotated(call, per_head, unsqueeze(gather(cosines, ids), {2}), unsqueeze(gather(sines, ids), {2}), interleaved);
  return {reshape(y, std::vector<int64_t>{0, 0, -1})};
}

}  // namespace

std::vector<ContribOp> contrib_rotary() {
  return {contrib_op("RotaryEmbedding", "input, position_ids, cos_cache, sin_cache", "output", "gather, mul, add, sub",
                     rotary_embedding_body,
                     {with_default("interleaved", int64_t{0}), with_default("num_heads", int64_t{0}),
                      with_default("rotary_embedding_dim", int64_t{0}), with_default("is_packed_batching", int64_t{0}),
                      optional_attribute("scale", AttributeType::real)})};
}

}  // namespace autograph::io
