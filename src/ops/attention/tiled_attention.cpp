// Attention for training: tiled_attention gives the logarithms of the sums of its softmax as well, and
// tiled_attention_grad forms the weights from them again, tile by tile, so that neither keeps a weight:
//
//   lse = log(sum over keys of exp(s)), +infinity for a query that sees no key, with s the scores of attention
//   p = exp(s - lse)   ds = p * (gy v^T - delta)   gq = scale * ds k   gk = scale * ds^T q   gv = p^T gy
//
// A mask that learns gets ds itself, summed over the batch where all samples have the same mask: the one output that
// is as large as all weights are, and is not made for others.
//
// delta is what flows into a query's sum: gy * y over the head, less what flows into lse. It comes from outside, so
// that the op says how it depends on gy and lse, each for itself, and its own gradient is that of its body.
//
// These are the calls that kernels have: no cache, no padded keys, no scores as an output. Files have the body.
#include <algorithm>
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/attention.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "graph/moved_bytes.h"
#include "ops/attention/attention_body.h"
#include "ops/attention/heads.h"
#include "ops/attention/tiled_attention.h"
#include "ops/defs.h"
#include "ops/extents.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// Statistics of half precision are f32.
DType statistic_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

void infer(InferContext& context) {
  const auto [q, k, v] = infer_attention_heads(context);
  check_attention_mask(context, 3, q, k.length);
  context.set_output(0, context.dtype(0), pack_heads(context, 0, {q.batch, q.heads, q.length, v.size}));
  context.set_output(1, statistic_dtype(context.dtype(0)), Shape{q.batch, q.heads, q.length});
}

void infer_grad(InferContext& context) {
  const auto [q, k, v] = infer_attention_heads(context);
  check_attention_mask(context, 6, q, k.length);
  const HeadDims gy = infer_heads(context, 3, context.attributes().find_as<int64_t>("q_num_heads"));
  same_extent(context, q.heads, gy.heads, "heads of q and gy");
  same_extent(context, q.length, gy.length, "length of q and gy");
  same_extent(context, v.size, gy.size, "head size of v and gy");
  for (const size_t slot : {size_t{4}, size_t{5}}) {
    context.require_rank(slot, 3);
    if (!context.shape(slot).has_rank()) continue;
    same_extent(context, q.batch, context.shape(slot)[0], "batch of the sums");
    same_extent(context, q.heads, context.shape(slot)[1], "heads of the sums");
    same_extent(context, q.length, context.shape(slot)[2], "length of the sums");
  }
  for (size_t slot = 0; slot < 3; ++slot) context.set_output(slot, context.dtype(slot), context.shape(slot));
  if (context.num_outputs() < 4) return;
  context.require<ValueError>(context.has_input(6), "gmask", "needs attn_mask");
  const Shape& mask = context.shape(6);
  context.set_output(3, context.dtype(0),
                     mask.has_rank()
                         ? Shape{mask.rank() == 4 ? mask[0] : Dim(1), q.heads, q.length, mask[mask.rank() - 1]}
                         : Shape::unknown());
}

void vjp(VjpContext& c) {
  if (!c.in(0).shape().has_rank()) c.unsupported("its rule needs known ranks");
  const TiledOperands operands{c.in(0), c.in(1), c.in(2), c.has_input(3) ? c.in(3) : Var(), c.attributes()};
  const bool has_sums = c.num_outputs() == 2;
  const std::vector<Var> gradients =
      tiled_gradients(operands, {c.out(0), c.out(1)}, c.gy(0), has_sums && c.has_gy(1) ? c.gy(1) : Var(), c.wants(3));
  for (size_t slot = 0; slot < gradients.size(); ++slot) c.set(slot, cast(gradients[slot], c.in(slot).dtype()));
}

// ---- Cost, samples ---------------------------------------------------------------------------------------------

// Products of all queries with all keys, of the size of a head each.
OpCost cost_of_products(const CostContext& context, double with_size, double with_value_size) {
  const auto count = [](const Type& type) { return static_cast<double>(type.shape().num_elements().value_or(0)); };
  const Shape& k = context.inputs[1].shape();
  const auto keys = static_cast<double>(k[k.rank() - 2].value());
  const auto per_key = with_size * count(context.inputs[0]) + with_value_size * count(context.outputs[0]);
  return {.flops = 2 * keys * per_key, .bytes = moved_bytes(context)};
}

OpCost cost(const CostContext& context) { return cost_of_products(context, 1, 1); }

// Three products of the size of the keys and two of that of the values.
OpCost cost_of_grad(const CostContext& context) { return cost_of_products(context, 5, 0); }

// Every query sees a key: the sum of none is infinite, and has no differences.
OpSample sample(Random& random) {
  const DrawnHeads drawn = draw_heads(random);
  OpSample result;
  result.inputs = drawn.qkv;
  int64_t covered = drawn.keys;
  bool hides = false;
  if (draw_bool(random)) {
    hides = draw_bool(random);
    covered = draw_bool(random) ? drawn.keys : draw(random, 1, drawn.keys);
    Dims dims{drawn.batch, drawn.heads, drawn.queries, covered};
    dims.erase(dims.begin(), dims.begin() + draw(random, 0, 3));
    Tensor mask = draw_tensor(random, hides ? DType::boolean : DType::f32, dims);
    for (int64_t first = 0; hides && first < mask.num_elements(); first += covered)
      mask.mutable_data<bool>()[first] = true;
    result.inputs.emplace_back(std::move(mask));
  }
  const bool has_left = !hides && draw_bool(random);
  result.attributes = {
      {"is_causal", draw(random, 0, 1)},
      {"softcap", draw_one_of(random, {0.0f, 1.5f})},
      {"left_window_size", has_left ? std::max<int64_t>(0, drawn.queries - covered) + draw(random, 0, 1) : -1},
      {"right_window_size", draw(random, -1, 2)}};
  drawn.set_heads(result.attributes);
  if (draw_bool(random)) result.attributes.set("scale", 0.5f);
  result.num_outputs = 2;
  return result;
}

// The sums are drawn as well: the op is a function of them.
OpSample sample_grad(Random& random) {
  OpSample result = sample(random);
  const Datum mask = result.inputs.size() > 3 ? result.inputs[3] : Datum();
  const Dims q = result.inputs[0].tensor().dims(), v = result.inputs[2].tensor().dims();
  const bool packed = q.size() == 3;
  const int64_t heads = packed ? result.attributes.integer("q_num_heads") : q[1];
  const int64_t value_size = packed ? v[2] / result.attributes.integer("kv_num_heads") : v[3];
  Dims gy = q;
  gy.back() = packed ? heads * value_size : value_size;
  const Dims rows{q[0], heads, packed ? q[1] : q[2]};
  result.inputs.resize(3);
  result.inputs.emplace_back(draw_tensor(random, DType::f32, gy));
  result.inputs.emplace_back(draw_tensor(random, DType::f32, rows, 0, 3));
  result.inputs.emplace_back(draw_tensor(random, DType::f32, rows));
  result.num_outputs = 3;
  if (!mask.is_present()) return result;
  result.inputs.push_back(mask);
  if (draw_bool(random)) result.num_outputs = 4;
  return result;
}

std::vector<AttributeSpec> attributes() {
  return {{"is_causal", AttributeType::integer, "1: hide keys that come after the query.", int64_t{0}},
          {"kv_num_heads", AttributeType::integer, "Heads of k and v; needed when they have rank 3."},
          {"left_window_size", AttributeType::integer, "Keys seen before the query; -1: all.", int64_t{-1}},
          {"q_num_heads", AttributeType::integer, "Heads of q; needed when it has rank 3."},
          {"right_window_size", AttributeType::integer, "Keys seen after the query; -1: all.", int64_t{-1}},
          {"scale", AttributeType::real, "Factor of the scores; 1 / sqrt(size) when missing."},
          {"softcap", AttributeType::real, "Bounds the scores when above 0.", 0.0f}};
}

std::vector<TypeVar> types() {
  return {{"T", dtypes::kFloat}, {"S", dtypes::kFloat}, {"U", dtypes::kNumeric | dtypes::kBool}};
}

constexpr std::string_view kQueryDoc = "[batch, q heads, queries, size], or [batch, queries, q heads * size].";
constexpr std::string_view kKeyDoc = "[batch, kv heads, keys, size], or [batch, keys, kv heads * size].";
constexpr std::string_view kValueDoc = "[batch, kv heads, keys, value size], or [batch, keys, kv heads * value size].";
constexpr std::string_view kMaskDoc = "As attention has it.";

}  // namespace

std::vector<Var> tiled_attention(Var q, Var k, Var v, Var mask, Attributes attributes) {
  return apply_all(tiled_attention_def(), {q, k, v, mask}, std::move(attributes), 2);
}

std::vector<Var> tiled_attention_grad(Var q, Var k, Var v, Var gy, Var log_sum_exp, Var delta, Var mask,
                                      Attributes attributes, bool with_mask) {
  return apply_all(tiled_attention_grad_def(), {q, k, v, gy, log_sum_exp, delta, mask}, std::move(attributes),
                   with_mask ? 4 : 3);
}

std::vector<Var> tiled_gradients(const TiledOperands& operands, const std::vector<Var>& outputs, const Var& gy,
                                 const Var& of_sums, bool with_mask) {
  Var delta = gy * outputs[0];
  if (operands.q.rank() == 3) {
    const int64_t heads = operands.attributes.integer("q_num_heads");
    delta = transpose(reduce_sum(reshape(delta, {0, 0, heads, -1}), {3}, false), {0, 2, 1});
  } else {
    delta = reduce_sum(delta, {3}, false);
  }
  delta = cast(delta, outputs[1].dtype());
  if (of_sums.is_valid()) delta = delta - of_sums;
  return tiled_attention_grad(operands.q, operands.k, operands.v, gy, outputs[1], delta, operands.mask,
                              operands.attributes, with_mask);
}

Attributes tiled_attributes(Attributes attributes) {
  attributes.erase("qk_matmul_output_mode");
  attributes.erase("softmax_precision");
  return attributes;
}

const OpDef& tiled_attention_def() {
  static const OpDef def{
      .name = "tiled_attention",
      .doc =
          "attention that also gives the logarithms of the sums of exp(score), from which its gradient forms the "
          "weights again.",
      .inputs = {{"q", "T", kQueryDoc},
                 {"k", "T", kKeyDoc},
                 {"v", "T", kValueDoc},
                 {"attn_mask", "U", kMaskDoc, Arity::optional}},
      .outputs = {{"y", "T", "Like q with the value size."},
                  {"log_sum_exp", "S", "[batch, q heads, queries], f32 or f64; +infinity where no key is seen."}},
      .types = types(),
      .attributes = attributes(),
      .infer = infer,
      .decompose = tiled_attention_body,
      .vjp = vjp,
      .cost = cost,
      .sample = sample,
  };
  return def;
}

const OpDef& tiled_attention_grad_def() {
  static const OpDef def{
      .name = "tiled_attention_grad",
      .doc =
          "Gradients of tiled_attention: ds = p * (gy v^T - delta) with p = exp(scores - log_sum_exp), gq = scale * "
          "ds k, gk = scale * ds^T q, gv = p^T gy.",
      .inputs = {{"q", "T", kQueryDoc},
                 {"k", "T", kKeyDoc},
                 {"v", "T", kValueDoc},
                 {"gy", "T", "What flows into the output, in its shape."},
                 {"log_sum_exp", "S", "[batch, q heads, queries]."},
                 {"delta", "S",
                  "[batch, q heads, queries]: gy * output over a head, less what flows into log_sum_exp."},
                 {"attn_mask", "U", kMaskDoc, Arity::optional}},
      .outputs = {{"gq", "T", "Shape of q."},
                  {"gk", "T", "Shape of k."},
                  {"gv", "T", "Shape of v."},
                  {"gmask", "T",
                   "[batch of the mask, q heads, queries, keys of the mask]: ds, summed over the batch "
                   "where the mask has none.",
                   Arity::optional}},
      .types = types(),
      .attributes = attributes(),
      .infer = infer_grad,
      .decompose = tiled_attention_grad_body,
      .cost = cost_of_grad,
      .sample = sample_grad,
  };
  return def;
}

}  // namespace autograph
