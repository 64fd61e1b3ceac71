#include "ops/linear/block_weights.h"

#include <fmt/format.h>

#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "ops/extents.h"
#include "ops/sample.h"

namespace autograph {

std::vector<AttributeSpec> block_attributes() {
  return {{"bits", AttributeType::integer, "4 or 8.", int64_t{4}},
          {.name = "k", .type = AttributeType::integer, .doc = "Columns of w.", .required = true},
          {"x_bits", AttributeType::integer, "Bits of x that count in each block: 16 or 32.", int64_t{32}}};
}

void check_block_weights(const InferContext& context, size_t slot, int64_t rank) {
  context.require_rank(slot, rank);
  const int64_t bits = context.attributes().integer("bits"), k = context.attributes().integer("k");
  context.require<ValueError>(bits == 4 || bits == 8, "bits", fmt::format("expected 4 or 8, got {}", bits));
  const int64_t x_bits = context.attributes().integer("x_bits");
  context.require<ValueError>(x_bits == 16 || x_bits == 32, "x_bits", fmt::format("expected 16 or 32, got {}", x_bits));
  context.require<ValueError>(k >= 1, "k", fmt::format("expected 1 or more, got {}", k));
  const Shape& q = context.shape(slot);
  for (const size_t other : {slot + 1, slot + 2}) {
    if (!context.has_input(other)) continue;
    context.require_rank(other, rank - 1);
    if (!q.has_rank() || !context.shape(other).has_rank()) continue;
    for (int64_t axis = 0; axis + 1 < rank; ++axis) same_extent(context, q[axis], context.shape(other)[axis], "scales");
  }
  if (!q.is_static()) return;
  const int64_t blocks = q[rank - 2].value(), block = q[rank - 1].value() * 8 / bits;
  context.require<ShapeError>(block > 0 && blocks == (k - 1) / block + 1, "input 'q'",
                              fmt::format("expected blocks of {} for k = {}, got {}", block, k, to_string(q)));
}

Var floats_of_blocks(Var q, Var scale, Var zero, int64_t rank, const Attributes& attributes) {
  const int64_t bits = attributes.integer("bits");
  std::vector<int64_t> joined(static_cast<size_t>(rank), 0);
  joined.back() = -1;
  if (bits == 4) {
    const Var low = bitwise_and(q, scalar_like(q, 15)), high = bit_shift(q, scalar_like(q, 4), /*left=*/false);
    q = reshape(concat({unsqueeze(low, {rank}), unsqueeze(high, {rank})}, rank), joined);
  }
  const Var numbers = cast(q, DType::f32);
  const Var middle = zero.is_valid() ? unsqueeze(zero, {rank - 1}) : scalar_like(numbers, bits == 4 ? 8 : 128);
  const Var weights = mul(sub(numbers, middle), unsqueeze(scale, {rank - 1}));
  joined.pop_back();
  joined.back() = -1;
  return slice(reshape(weights, joined), {0}, {attributes.integer("k")}, {rank - 2});
}

Tensor draw_whole_numbers(Random& random, const Dims& dims) {
  const std::vector<double> numbers = draw_tensor(random, DType::i8, dims, -1, 1).to_f64();
  return Tensor::of<float>(dims, std::vector<float>(numbers.begin(), numbers.end()));
}

}  // namespace autograph
