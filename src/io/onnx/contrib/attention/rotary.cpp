// Contrib rotary embedding, and the rotation that GroupQueryAttention shares with it.
#include "io/onnx/contrib/attention/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace autograph::io {
namespace {

Var piece(Var x, int64_t axis, int64_t begin, int64_t end) { return slice(x, {begin}, {end}, {axis}); }

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
  if (call.rank(ids) > 2) call.refuse("input 'position_ids'", "expected rank 1 or 2, got " + to_string(ids.type()));
  return call.rank(ids) == 1 ? unsqueeze(add(ids, counted(call, length)), {0}) : ids;
}

// The axis of positions in an input of any accepted rank.
int64_t position_axis(const ContribCall& call, Var x) {
  const int64_t rank = call.rank(x);
  if (rank != 3 && rank != 4) call.refuse("input 'input'", "expected rank 3 or 4, got " + to_string(x.type()));
  return rank == 4 ? 2 : 1;
}

// x [batch, heads, length, size] or [batch, length, heads * size] turned by angles [batch or 1, length, half].
Var turned(const ContribCall& call, Var x, Var cosines, Var sines) {
  const Attributes& attributes = call.attributes();
  call.only("is_packed_batching", {0});
  if (attributes.get_or("scale", 1.0F) != 1.0F)
    call.refuse("attribute 'scale'", "values other than 1 are not supported");
  const bool interleaved = attributes.flag("interleaved");
  if (call.rank(x) == 4) return rotated(call, x, unsqueeze(cosines, {1}), unsqueeze(sines, {1}), interleaved);
  const int64_t heads = attributes.integer("num_heads");
  // Without a number of heads the whole head turns.
  const int64_t size = heads > 0 ? -1 : 2 * call.extent(cosines, -1);
  const Var per_head = reshape(x, std::vector<int64_t>{0, 0, heads > 0 ? heads : -1, size});
  const Var y = rotated(call, per_head, unsqueeze(cosines, {2}), unsqueeze(sines, {2}), interleaved);
  return reshape(y, std::vector<int64_t>{0, 0, -1});
}

std::vector<Var> rotary_embedding_body(ContribCall& call) {
  const Var x = call["input"];
  const Var ids = row_positions(call, call["position_ids"], extent_of(x, position_axis(call, x)));
  return {turned(call, x, gather(call["cos_cache"], ids), gather(call["sin_cache"], ids))};
}

// ---- Three positions for each token ----------------------------------------------------------------------------

// Which of the three positions (time, height, width) turns each pair: sections one after the other, or in turns as long
// as height and width have pairs left.
std::vector<int64_t> position_of_pairs(const ContribCall& call, int64_t half) {
  const auto* sections = call.attributes().find_as<std::vector<int64_t>>("mrope_section");
  if (!sections || sections->size() != 3 || *std::min_element(sections->begin(), sections->end()) < 0 ||
      std::accumulate(sections->begin(), sections->end(), int64_t{0}) != half) {
    call.refuse("attribute 'mrope_section'", fmt::format("expected three numbers with the sum {}", half));
  }
  call.only("mrope_layout", {0, 1});
  std::vector<int64_t> position(static_cast<size_t>(half), 0);
  const bool takes_turns = call.attributes().flag("mrope_layout");
  for (int64_t pair = 0; pair < half; ++pair) {
    int64_t which = pair % 3;
    if (takes_turns) {
      if (pair >= 3 * (*sections)[static_cast<size_t>(which)]) which = 0;
    } else {
      which = pair < (*sections)[0] ? 0 : pair < (*sections)[0] + (*sections)[1] ? 1 : 2;
    }
    position[static_cast<size_t>(pair)] = which;
  }
  return position;
}

// Rows of a cache [positions, half] for ids [3, batch, length], of each pair by its own position.
Var rows_of_pairs(const ContribCall& call, Var cache, Var ids, const std::vector<int64_t>& position) {
  const auto half = static_cast<int64_t>(position.size());
  Var result;
  for (int64_t which = 0; which < 3; ++which) {
    const Var rows = gather(cache, squeeze(piece(ids, 0, which, which + 1), {0}));
    if (!result.is_valid()) {
      result = rows;
      continue;
    }
    Tensor is_of = Tensor::empty(DType::boolean, {half});
    for (int64_t pair = 0; pair < half; ++pair) {
      is_of.mutable_data<bool>()[pair] = position[static_cast<size_t>(pair)] == which;
    }
    result = where(call.constant(is_of), rows, result);
  }
  return result;
}

std::vector<Var> multimodal_rotary_embedding(ContribCall& call) {
  const Var x = call["input"], ids = call["position_ids"];
  position_axis(call, x);
  if (call.rank(ids) != 3) call.refuse("input 'position_ids'", "expected rank 3, got " + to_string(ids.type()));
  const std::vector<int64_t> position = position_of_pairs(call, call.extent(call["cos_cache"], -1));
  return {turned(call, x, rows_of_pairs(call, call["cos_cache"], ids, position),
                 rows_of_pairs(call, call["sin_cache"], ids, position))};
}

}  // namespace

std::vector<ContribOp> contrib_rotary() {
  return {
      contrib_op("RotaryEmbedding", "input, position_ids, cos_cache, sin_cache", "output", "gather, mul, add, sub",
                 rotary_embedding_body,
                 {with_default("interleaved", int64_t{0}), with_default("num_heads", int64_t{0}),
                  with_default("rotary_embedding_dim", int64_t{0}), with_default("is_packed_batching", int64_t{0}),
                  optional_attribute("scale", AttributeType::real)}),
      contrib_op("MRotaryEmbedding", "input, position_ids, cos_cache, sin_cache", "output",
                 "gather, where, mul, add, sub", multimodal_rotary_embedding,
                 {required_attribute("mrope_section", AttributeType::integers),
                  with_default("mrope_layout", int64_t{0}), with_default("interleaved", int64_t{0}),
                  with_default("num_heads", int64_t{0}), with_default("rotary_embedding_dim", int64_t{0}),
                  with_default("is_packed_batching", int64_t{0}), optional_attribute("scale", AttributeType::real)})};
}

}  // namespace autograph::io
