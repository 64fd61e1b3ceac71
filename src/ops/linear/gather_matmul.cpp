// gather_matmul: y[t, c] = w[index[t, c]] x[t, c], products with matrices that are chosen while running.
// gather_block_matmul: the same with weights of 4 or 8 bits, as block_matmul has them.
//
// What the experts of MoE and QMoE become (Shazeer et al. 2017, "Outrageously large neural networks"): each token
// chooses some, whose matrices lie behind each other. x has a row for each choice, or one for all of a token.
#include <algorithm>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
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

// y [tokens, choices, n] of x with rows of `k`.
void infer_product(InferContext& context, const Dim& k, const Dim& n) {
  context.require_rank(0, 3);
  context.require_rank(1, 2);
  const Shape &x = context.shape(0), &index = context.shape(1);
  Dim tokens = index.has_rank() ? index[0] : Dim::unknown(), choices = index.has_rank() ? index[1] : Dim::unknown();
  if (x.has_rank()) {
    tokens = same_extent(context, tokens, x[0], "tokens of 'x' and 'index'");
    same_extent(context, x[2], k, "inner extent");
    if (x[1] != Dim(1)) choices = same_extent(context, choices, x[1], "choices of 'x' and 'index'");
  }
  context.set_output(0, context.dtype(0), Shape({tokens, choices, n}));
}

// x [tokens, choices or 1, k] times rows [tokens, choices, n, k].
Var product_of_rows(Var rows, Var x) { return squeeze(matmul(rows, unsqueeze(x, {3})), {3}); }

// All matrices are read, or as many as there are choices.
OpCost cost_of(const CostContext& context, double k) {
  double bytes = moved_bytes({context.attributes, context.inputs, {}});
  const double outputs = static_cast<double>(context.outputs[0].shape().num_elements().value_or(0));
  const Shape &index = context.inputs[1].shape(), &w = context.inputs[2].shape();
  if (index.is_static() && w.is_static() && w.num_elements().value_or(0) > 0) {
    const double share = static_cast<double>(index.num_elements().value()) / static_cast<double>(w[0].value());
    bytes *= std::min(1.0, share);
  }
  return {.flops = 2 * outputs * k, .bytes = bytes + moved_bytes({context.attributes, {}, context.outputs})};
}

// x and index of a sample.
std::vector<Datum> draw_choices(Random& random, int64_t k, int64_t matrices, bool is_whole) {
  const int64_t tokens = draw(random, 1, 9), choices = draw(random, 1, 3), rows = draw_bool(random) ? choices : 1;
  const Dims dims{tokens, rows, k};
  return {is_whole ? draw_whole_numbers(random, dims) : draw_tensor(random, DType::f32, dims, -1, 1),
          draw_tensor(random, DType::i64, {tokens, choices}, static_cast<double>(-matrices),
                      static_cast<double>(matrices - 1))};
}

// ---- gather_matmul ---------------------------------------------------------------------------------------------

void infer(InferContext& context) {
  context.require_rank(2, 3);
  const Shape& w = context.shape(2);
  infer_product(context, w.has_rank() ? w[2] : Dim::unknown(), w.has_rank() ? w[1] : Dim::unknown());
}

std::vector<Var> decompose(DecomposeContext& context) {
  return {product_of_rows(gather(context.inputs[2], context.inputs[1]), context.inputs[0])};
}

OpCost cost(const CostContext& context) {
  const Shape& w = context.inputs[2].shape();
  return cost_of(context, w.is_static() ? static_cast<double>(w[2].value()) : 0);
}

OpSample sample(Random& random) {
  const int64_t matrices = draw(random, 1, 5), n = draw(random, 1, 40), k = draw(random, 1, 40);
  OpSample result{.inputs = draw_choices(random, k, matrices, /*is_whole=*/false)};
  result.inputs.emplace_back(draw_tensor(random, DType::f32, {matrices, n, k}, -1, 1));
  return result;
}

// ---- gather_block_matmul ---------------------------------------------------------------------------------------

void infer_blocks(InferContext& context) {
  check_block_weights(context, 2, 4);
  const Shape& q = context.shape(2);
  infer_product(context, Dim(context.attributes().integer("k")), q.has_rank() ? q[1] : Dim::unknown());
}

std::vector<Var> decompose_blocks(DecomposeContext& context) {
  const Var index = context.inputs[1], zero = context.inputs[4];
  const auto chosen = [&](Var v) { return v.is_valid() ? gather(v, index) : Var(); };
  constexpr int64_t kRank = 5;  // of the numbers that were chosen
  const Var rows =
      floats_of_blocks(chosen(context.inputs[2]), chosen(context.inputs[3]), chosen(zero), kRank, context.attributes);
  return {product_of_rows(rows, context.inputs[0])};
}

OpCost cost_of_blocks(const CostContext& context) {
  return cost_of(context, static_cast<double>(context.attributes.integer("k")));
}

OpSample sample_blocks(Random& random) {
  const int64_t bits = draw_one_of(random, {4, 8}), block = draw_one_of(random, {8, 16, 32});
  const int64_t matrices = draw(random, 1, 5), n = draw(random, 1, 40), k = draw(random, 1, 70);
  const int64_t blocks = (k + block - 1) / block;
  const bool rounds = draw_bool(random);
  OpSample result{.inputs = draw_choices(random, k, matrices, /*is_whole=*/rounds)};
  result.inputs.emplace_back(draw_tensor(random, DType::u8, {matrices, n, blocks, block * bits / 8}, 0, 255));
  result.inputs.emplace_back(draw_tensor(random, DType::f32, {matrices, n, blocks}, 0.001, 0.1));
  result.inputs.resize(5);
  if (draw_bool(random)) {
    result.inputs[4] = draw_tensor(random, DType::f32, {matrices, n, blocks}, 0, bits == 4 ? 15 : 255);
  }
  result.attributes = {{"bits", bits}, {"k", k}, {"x_bits", int64_t{rounds ? 16 : 32}}};
  return result;
}

}  // namespace

Var gather_matmul(Var x, Var index, Var w) { return apply(gather_matmul_def(), {x, index, w}); }

Var gather_block_matmul(Var x, Var index, Var q, Var scale, Var zero, int64_t k, int64_t bits, int64_t x_bits) {
  return apply(gather_block_matmul_def(), {x, index, q, scale, zero}, {{"k", k}, {"bits", bits}, {"x_bits", x_bits}});
}

const OpDef& gather_matmul_def() {
  static const OpDef def{
      .name = "gather_matmul",
      .doc = "y[t, c] = w[index[t, c]] x[t, c]: products with matrices that are chosen row by row.",
      .inputs = {{"x", "T", "[tokens, choices or 1, k]."},
                 {"index", "I", "[tokens, choices], -matrices to matrices - 1."},
                 {"w", "T", "[matrices, n, k]."}},
      .outputs = {{"y", "T", "[tokens, choices, n]."}},
      .types = {{"T", dtypes::kFloat}, {"I", DTypeSet{DType::i64}}},
      .infer = infer,
      .decompose = decompose,
      .cost = cost,
      .sample = sample,
  };
  return def;
}

const OpDef& gather_block_matmul_def() {
  static const OpDef def{
      .name = "gather_block_matmul",
      .doc = "y[t, c] = w[index[t, c]] x[t, c] with w = (q - zero) * scale, q of 4 or 8 bits in blocks along k.",
      .inputs = {{"x", "T", "[tokens, choices or 1, k]."},
                 {"index", "I", "[tokens, choices], -matrices to matrices - 1."},
                 {"q", "Q", "[matrices, n, blocks, block * bits / 8]."},
                 {"scale", "T", "[matrices, n, blocks]."},
                 {"zero", "T", "[matrices, n, blocks]; missing: the middle.", Arity::optional}},
      .outputs = {{"y", "T", "[tokens, choices, n]."}},
      .types = {{"T", DTypeSet{DType::f32}}, {"I", DTypeSet{DType::i64}}, {"Q", DTypeSet{DType::u8}}},
      .attributes = block_attributes(),
      .infer = infer_blocks,
      .decompose = decompose_blocks,
      .cost = cost_of_blocks,
      .sample = sample_blocks,
  };
  return def;
}

}  // namespace autograph
