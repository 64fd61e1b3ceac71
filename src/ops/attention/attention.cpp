// attention: y = softmax(softcap(scale * q k^T) + bias) v for every head, with grouped heads and a key/value cache.
//
// q, k, v are [batch, heads, length, size], or [batch, length, heads * size] with the numbers of heads as attributes.
// Several query heads share a key/value head when there are more of them. past_key and past_value go before k and v.
// The bias is the mask (bool: false hides; others are added), the causal frontier, the window and the padded keys; keys
// beyond the last dim of the mask are hidden. A query that sees no key gives a row of zeros, never NaN. With
// softcap > 0 a score s becomes softcap * tanh(s / softcap). The reference computes in f64 whatever softmax_precision
// says and rounds once.
#include <algorithm>
#include <cmath>
#include <limits>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/attention.h"
#include "graph/moved_bytes.h"
#include "ops/attention/attention_mask.h"
#include "ops/attention/attention_vjp.h"
#include "ops/attention/heads.h"
#include "ops/defs.h"
#include "ops/extents.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// ---- Inference -------------------------------------------------------------------------------------------------

void check_options(const InferContext& context) {
  const Attributes& attributes = context.attributes();
  const int64_t mode = attributes.integer("qk_matmul_output_mode");
  context.require<ValueError>(mode >= 0 && mode <= 3, "qk_matmul_output_mode",
                              fmt::format("expected 0..3, got {}", mode));
  context.require<ValueError>(context.has_input(4) == context.has_input(5), "past_key",
                              "must be given together with past_value");
  context.require<ValueError>(!context.has_input(4) || !context.has_input(6), "nonpad_kv_seqlen",
                              "does not go together with past_key");
  if (const DType* precision = attributes.find_as<DType>("softmax_precision")) {
    context.require<ValueError>(dtypes::kFloat.contains(*precision), "softmax_precision",
                                fmt::format("expected {}, got {}", to_string(dtypes::kFloat), to_string(*precision)));
  }
}

// Joins the cache in `slot` with the new keys or values: checks it and adds its length.
void extend_by_past(const InferContext& context, size_t slot, HeadDims& dims) {
  if (!context.has_input(slot)) return;
  context.require_rank(slot, 4);
  const Shape& past = context.shape(slot);
  if (!past.has_rank()) {
    dims.length = Dim::unknown();
    return;
  }
  dims.batch = same_extent(context, dims.batch, past[0], "batch of the cache");
  dims.heads = same_extent(context, dims.heads, past[1], "heads of the cache");
  dims.size = same_extent(context, dims.size, past[3], "head size of the cache");
  dims.length = dims.length.is_unknown() || past[2].is_unknown() ? Dim::unknown() : past[2] + dims.length;
}

void infer(InferContext& context) {
  check_options(context);
  auto [q, k, v] = infer_attention_heads(context);
  extend_by_past(context, 4, k);
  extend_by_past(context, 5, v);
  check_attention_mask(context, 3, q, k.length);
  require_vector(context, 6, q.batch, "nonpad_kv_seqlen");
  context.set_output(0, context.dtype(0), pack_heads(context, 0, {q.batch, q.heads, q.length, v.size}));
  context.set_output(1, context.dtype(1), Shape{k.batch, k.heads, k.length, k.size});
  context.set_output(2, context.dtype(2), Shape{v.batch, v.heads, v.length, v.size});
  context.set_output(3, context.dtype(0), Shape{q.batch, q.heads, q.length, k.length});
}

// ---- Reference -------------------------------------------------------------------------------------------------

// The cached positions followed by the new ones.
Heads with_past(const TensorView& past, const Heads& fresh) {
  const int64_t past_length = past.is_present() ? past.dim(2) : 0;
  Heads all(fresh.batch(), fresh.heads(), past_length + fresh.length(), fresh.size());
  const Heads cached = past.is_present() ? Heads(past, 0) : Heads(0, 0, 0, 0);
  for (int64_t b = 0; b < all.batch(); ++b) {
    for (int64_t head = 0; head < all.heads(); ++head) {
      for (int64_t i = 0; i < all.length(); ++i) {
        const double* source = i < past_length ? cached.row(b, head, i) : fresh.row(b, head, i - past_length);
        std::copy_n(source, all.size(), all.row(b, head, i));
      }
    }
  }
  return all;
}

// In place; a row that hides every key becomes zeros. Scores that are all minus infinity by themselves give NaN.
void softmax_row(std::vector<double>& row, bool any_visible) {
  if (!any_visible) {
    std::fill(row.begin(), row.end(), 0.0);
    return;
  }
  double largest = -std::numeric_limits<double>::infinity();
  for (const double score : row) largest = std::fmax(largest, score);
  double sum = 0;
  for (double& score : row) sum += score = std::exp(score - largest);
  for (double& score : row) score /= sum;
}

struct ScoreOptions {
  explicit ScoreOptions(const Attributes& attributes, int64_t head_size)
      : scale(attributes.get_or<float>("scale", 1 / std::sqrt(static_cast<float>(head_size)))),
        softcap(attributes.real("softcap")),
        output_mode(attributes.integer("qk_matmul_output_mode")) {}
  double scale;
  double softcap;
  int64_t output_mode;
};

// Attention weights of one query; `stages` receives the row that output 3 shows.
void weigh_keys(const double* query, const Heads& keys, std::pair<int64_t, int64_t> batch_head,
                const ScoreOptions& options, std::pair<const std::vector<double>&, bool> bias,
                std::pair<std::vector<double>&, double*> rows) {
  std::vector<double>& row = rows.first;
  const auto show = [&](int64_t mode, double* target) {
    if (target && options.output_mode == mode) std::copy(row.begin(), row.end(), target);
  };
  for (size_t j = 0; j < row.size(); ++j) {
    const double* key = keys.row(batch_head.first, batch_head.second, static_cast<int64_t>(j));
    double sum = 0;
    for (int64_t d = 0; d < keys.size(); ++d) sum += query[d] * key[d];
    row[j] = sum * options.scale;
  }
  show(0, rows.second);
  if (options.softcap > 0) {
    for (double& score : row) score = options.softcap * std::tanh(score / options.softcap);
  }
  show(1, rows.second);
  for (size_t j = 0; j < row.size(); ++j) row[j] += bias.first[j];
  show(2, rows.second);
  softmax_row(row, bias.second);
  show(3, rows.second);
}

void reference(const OpCall& call) {
  const auto heads_of = [&](const char* name) { return call.attributes.get_or<int64_t>(name, 1); };
  const Heads q(call.input(0), heads_of("q_num_heads"));
  const Heads k = with_past(call.input(4), Heads(call.input(1), heads_of("kv_num_heads")));
  const Heads v = with_past(call.input(5), Heads(call.input(2), heads_of("kv_num_heads")));
  const int64_t past = call.input(4).is_present() ? call.input(4).dim(2) : 0;
  const AttentionBias bias(call, {q.batch(), q.heads(), q.length(), k.length()}, past);
  const ScoreOptions options(call.attributes, q.size());
  // Outputs in the layout of q; its elements are overwritten head by head.
  std::vector<double> y(static_cast<size_t>(call.output(0).num_elements()), 0.0);
  std::vector<double> shown(static_cast<size_t>(q.batch() * q.heads() * q.length() * k.length()));
  std::vector<double> bias_row(static_cast<size_t>(k.length()));
  std::vector<double> row(static_cast<size_t>(k.length()));
  const bool packed = call.input(0).rank() == 3;
  for (int64_t b = 0; b < q.batch(); ++b) {
    for (int64_t head = 0; head < q.heads(); ++head) {
      const int64_t kv_head = head / (q.heads() / k.heads());
      for (int64_t i = 0; i < q.length(); ++i) {
        const int64_t matrix_row = (b * q.heads() + head) * q.length() + i;
        const bool any = bias.fill(b, head, i, bias_row);
        weigh_keys(q.row(b, head, i), k, {b, kv_head}, options, {bias_row, any},
                   {row, shown.data() + matrix_row * k.length()});
        double* out = y.data() + (packed ? (b * q.length() + i) * q.heads() + head : matrix_row) * v.size();
        for (int64_t j = 0; j < k.length(); ++j) {
          const double weight = row[static_cast<size_t>(j)];
          const double* value = v.row(b, kv_head, j);
          if (!any) continue;  // hidden values may be NaN
          for (int64_t d = 0; d < v.size(); ++d) out[d] += weight * value[d];
        }
      }
    }
  }
  store_reals(y, call.output(0));
  if (call.has_output(1)) store_reals(k.values(), call.output(1));
  if (call.has_output(2)) store_reals(v.values(), call.output(2));
  if (call.has_output(3)) store_reals(shown, call.output(3));
}

// ---- Cost, ONNX, samples ---------------------------------------------------------------------------------------

OpCost cost(const CostContext& context) {
  OpCost cost{.bytes = moved_bytes(context)};
  // Every element of q meets every key, and every element of y every value.
  const Shape& k = context.inputs[1].shape();
  double keys = static_cast<double>(k[k.rank() - 2].value());
  if (k.rank() == 3) keys = static_cast<double>(k[1].value());
  if (context.inputs.size() > 4 && context.inputs[4].is_static()) {
    keys += static_cast<double>(context.inputs[4].shape()[2].value());
  }
  const auto count = [](const Type& type) { return static_cast<double>(type.shape().num_elements().value_or(0)); };
  cost.flops = 2 * keys * (count(context.inputs[0]) + count(context.outputs[0]));
  return cost;
}

// Windows are younger than the op; older opsets do not know the attributes at all.
void export_onnx(ExportNode& to) {
  for (const char* name : {"left_window_size", "right_window_size"}) {
    if (to.attributes.get_or<int64_t>(name, -1) != -1) to.opset = std::max(to.opset, 25);
  }
  if (to.opset >= 25) return;
  to.attributes.erase("left_window_size");
  to.attributes.erase("right_window_size");
}

Tensor draw_mask(Random& random, const Dims& dims) {
  return draw_bool(random) ? draw_tensor(random, DType::boolean, dims) : draw_tensor(random, DType::f32, dims);
}

OpSample sample(Random& random) {
  const DrawnHeads drawn = draw_heads(random);
  OpSample result;
  result.inputs = drawn.qkv;
  result.inputs.resize(7);
  int64_t past = 0;
  if (draw(random, 0, 2) == 0) {
    past = draw(random, 1, 3);
    result.inputs[4] = draw_tensor(random, DType::f32, {drawn.batch, drawn.kv_heads, past, drawn.size});
    result.inputs[5] = draw_tensor(random, DType::f32, {drawn.batch, drawn.kv_heads, past, drawn.value_size});
  } else if (draw_bool(random)) {
    result.inputs[6] = draw_tensor(random, DType::i64, {drawn.batch}, 0, static_cast<double>(drawn.keys));
  }
  if (draw_bool(random)) {
    const Dims full{drawn.batch, drawn.heads, drawn.queries, past + drawn.keys};
    result.inputs[3] = draw_mask(random, Dims(full.begin() + draw(random, 0, 3), full.end()));
  }
  result.attributes = {{"is_causal", draw(random, 0, 1)},
                       {"softcap", draw_one_of(random, {0.0f, 1.5f})},
                       {"left_window_size", draw(random, -1, 2)},
                       {"right_window_size", draw(random, -1, 2)},
                       {"qk_matmul_output_mode", draw(random, 0, 3)}};
  drawn.set_heads(result.attributes);
  if (draw_bool(random)) result.attributes.set("scale", 0.5f);
  result.num_outputs = static_cast<int>(draw_one_of(random, {1, 3, 4}));
  return result;
}

}  // namespace

Var attention(Var q, Var k, Var v, AttentionOptions options) {
  Attributes attributes{{"is_causal", int64_t{options.is_causal}}};
  if (options.q_num_heads > 0) attributes.set("q_num_heads", options.q_num_heads);
  if (options.kv_num_heads > 0) attributes.set("kv_num_heads", options.kv_num_heads);
  if (options.scale > 0) attributes.set("scale", options.scale);
  return apply(attention_def(), {q, k, v, options.mask}, std::move(attributes));
}

const OpDef& attention_def() {
  static const OpDef def{
      .name = "attention",
      .doc = "y = softmax(scale * q k^T + bias) v for every head, with grouped heads, masks and a key/value cache.",
      .inputs = {{"q", "T1", "[batch, q heads, queries, size], or [batch, queries, q heads * size]."},
                 {"k", "T1", "[batch, kv heads, keys, size], or [batch, keys, kv heads * size]."},
                 {"v", "T2", "[batch, kv heads, keys, value size], or [batch, keys, kv heads * value size]."},
                 {"attn_mask", "U", "Broadcasts to [batch, q heads, queries, all keys]; the last dim may be shorter.",
                  Arity::optional},
                 {"past_key", "T1", "[batch, kv heads, past keys, size]; goes before k.", Arity::optional},
                 {"past_value", "T2", "[batch, kv heads, past keys, value size]; goes before v.", Arity::optional},
                 {"nonpad_kv_seqlen", "I", "[batch], how many of the keys are not padding.", Arity::optional}},
      .outputs = {{"y", "T1", "Like q with the value size."},
                  {"present_key", "T1", "[batch, kv heads, all keys, size].", Arity::optional},
                  {"present_value", "T2", "[batch, kv heads, all keys, value size].", Arity::optional},
                  {"qk_matmul_output", "T1", "[batch, q heads, queries, all keys]; which stage: see the mode.",
                   Arity::optional}},
      .types = {{"T1", dtypes::kFloat},
                {"T2", dtypes::kFloat},
                {"U", dtypes::kNumeric | dtypes::kBool},
                {"I", dtypes::kI64}},
      .attributes = {{"is_causal", AttributeType::integer, "1: hide keys that come after the query.", int64_t{0}},
                     {"kv_num_heads", AttributeType::integer, "Heads of k and v; needed when they have rank 3."},
                     {"left_window_size", AttributeType::integer, "Keys seen before the query; -1: all.", int64_t{-1}},
                     {"q_num_heads", AttributeType::integer, "Heads of q; needed when it has rank 3."},
                     {"qk_matmul_output_mode", AttributeType::integer,
                      "Output 3: 0 scaled scores, 1 after softcap, 2 after bias, 3 after softmax.", int64_t{0}},
                     {"right_window_size", AttributeType::integer, "Keys seen after the query; -1: all.", int64_t{-1}},
                     {"scale", AttributeType::real, "Factor of the scores; 1 / sqrt(size) when missing."},
                     {"softcap", AttributeType::real, "Bounds the scores when above 0.", 0.0f},
                     {"softmax_precision", AttributeType::dtype, "Dtype in which kernels compute the softmax."}},
      .infer = infer,
      .reference = reference,
      .vjp = attention_vjp,
      .cost = cost,
      .onnx = {{.name = "Attention", .since = 23, .export_node = export_onnx, .export_since = 23}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
