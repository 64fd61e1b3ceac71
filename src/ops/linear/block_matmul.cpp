// block_matmul: y = x w^T, w [n, k] given as numbers of 4 or 8 bits in blocks along k:
//   w[j, i] = (q[j, i] - zero[j, i / block]) * scale[j, i / block].
//
// What MatMulNBits of ONNX Runtime's quantizer becomes. Numbers of 4 bits stand two in a byte, the first in the low
// bits; the last block is filled up. Missing zero points: 8 or 128. With x_bits = 16 kernels may round x to multiples
// of 1/32767 of the largest number in its block: files say so that have an accuracy_level of 2 to 4, which let ONNX
// Runtime round to 8 bits.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "graph/moved_bytes.h"
#include "ops/defs.h"
#include "ops/extents.h"
#include "ops/linear/block_weights.h"
#include "ops/sample.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  check_block_weights(context, 1, 3);
  const int64_t k = context.attributes().integer("k");
  const Shape &x = context.shape(0), &q = context.shape(1);
  if (!x.has_rank()) return context.set_output(0, context.dtype(0), Shape());
  context.require<ShapeError>(x.rank() >= 1, "input 'x'", "expected rank 1 or more, got 0");
  same_extent(context, x[x.rank() - 1], Dim(k), "inner extent");
  std::vector<Dim> dims;
  for (int64_t axis = 0; axis + 1 < x.rank(); ++axis) dims.push_back(x[axis]);
  dims.push_back(q.has_rank() ? q[0] : Dim::unknown());
  context.set_output(0, context.dtype(0), Shape(dims));
}

std::vector<Var> decompose(DecomposeContext& context) {
  const auto& inputs = context.inputs;
  const Var rows = floats_of_blocks(inputs[1], inputs[2], inputs[3], 3, context.attributes);
  return {matmul(inputs[0], transpose(rows, {1, 0}))};
}

OpCost cost(const CostContext& context) {
  const double outputs = static_cast<double>(context.outputs[0].shape().num_elements().value_or(0));
  return {.flops = 2 * outputs * static_cast<double>(context.attributes.integer("k")), .bytes = moved_bytes(context)};
}

OpSample sample(Random& random) {
  const int64_t bits = draw_one_of(random, {4, 8}), block = draw_one_of(random, {8, 16, 32});
  const int64_t k = draw(random, 1, 70), n = draw(random, 1, 40), blocks = (k + block - 1) / block;
  Dims dims = draw_dims(random, 1, 3);
  dims.back() = k;
  OpSample result;
  result.inputs = {draw_tensor(random, DType::f32, dims, -1, 1),
                   draw_tensor(random, DType::u8, {n, blocks, block * bits / 8}, 0, 255),
                   draw_tensor(random, DType::f32, {n, blocks}, 0.001, 0.1)};
  result.inputs.resize(4);
  if (draw_bool(random)) result.inputs[3] = draw_tensor(random, DType::f32, {n, blocks}, 0, bits == 4 ? 15 : 255);
  result.attributes = {{"bits", bits}, {"k", k}};
  if (draw_bool(random)) {
    result.inputs[0] = draw_whole_numbers(random, dims);
    result.attributes.set("x_bits", int64_t{16});
  }
  return result;
}

}  // namespace

Var block_matmul(Var x, Var q, Var scale, Var zero, int64_t k, int64_t bits, int64_t x_bits) {
  return apply(block_matmul_def(), {x, q, scale, zero}, {{"k", k}, {"bits", bits}, {"x_bits", x_bits}});
}

const OpDef& block_matmul_def() {
  static const OpDef def{
      .name = "block_matmul",
      .doc =
          "y = x w^T with w = (q - zero) * scale, q of 4 or 8 bits, a scale and a zero point for each block along k.",
      .inputs = {{"x", "T", "[..., k]."},
                 {"q", "Q", "[n, blocks, block * bits / 8]."},
                 {"scale", "T", "[n, blocks]."},
                 {"zero", "T", "[n, blocks]; missing: the middle.", Arity::optional}},
      .outputs = {{"y", "T", "[..., n]."}},
      .types = {{"T", DTypeSet{DType::f32}}, {"Q", DTypeSet{DType::u8}}},
      .attributes = block_attributes(),
      .infer = infer,
      .decompose = decompose,
      .cost = cost,
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
