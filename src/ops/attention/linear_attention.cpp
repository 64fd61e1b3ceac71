// linear_attention: a recurrence over positions with a [d_k, d_v] state for every key/value head,
//   S = exp(g) S + k (outer) u,   o = scale * q^T S,
// where g is the decay (rules gated and gated_delta; else no decay) and u is v, or beta * (v - S^T k) with the decayed
// S (rules delta and gated_delta).
//
// Several query heads share a key/value head and its state when there are more of them. scale 0 means 1 / sqrt(d_k).
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/attention.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "ops/attention/heads.h"
#include "ops/defs.h"
#include "ops/extents.h"
#include "ops/gradients.h"
#include "ops/sample.h"

namespace autograph {
namespace {

bool uses_decay(const Attributes& attributes) {
  const std::string& rule = attributes.text("update_rule");
  return rule == "gated" || rule == "gated_delta";
}

bool uses_beta(const Attributes& attributes) {
  const std::string& rule = attributes.text("update_rule");
  return rule == "delta" || rule == "gated_delta";
}

void check_gate(const InferContext& context, size_t slot, bool expected, const HeadDims& k, const Dim& wide) {
  const char* name = slot == 4 ? "decay" : "beta";
  const std::string& rule = context.attributes().text("update_rule");
  context.require<ValueError>(context.has_input(slot) == expected, name,
                              fmt::format("update_rule '{}' {} it", rule, expected ? "requires" : "forbids"));
  if (!expected) return;
  context.require_rank(slot, 3);
  const Shape& gate = context.shape(slot);
  if (!gate.has_rank()) return;
  same_extent(context, gate[0], k.batch, "batch of the gates");
  same_extent(context, gate[1], k.length, "length of the gates");
  if (!gate[2].is_known() || !k.heads.is_known() || !wide.is_known()) return;
  const bool fits = gate[2].value() == k.heads.value() || gate[2].value() == wide.value();
  context.require<ShapeError>(
      fits, name,
      fmt::format("expected a last dim of {} or {}, got {}", k.heads.value(), wide.value(), gate[2].value()));
}

void infer(InferContext& context) {
  const int64_t q_heads = context.attributes().integer("q_num_heads");
  const int64_t kv_heads = context.attributes().integer("kv_num_heads");
  for (const size_t slot : {size_t{0}, size_t{1}, size_t{2}}) context.require_rank(slot, 3);
  const HeadDims q = infer_heads(context, 0, &q_heads);
  HeadDims k = infer_heads(context, 1, &kv_heads);
  const HeadDims v = infer_heads(context, 2, &kv_heads);
  context.require<ValueError>(q_heads % kv_heads == 0, "q_num_heads",
                              fmt::format("expected a multiple of kv_num_heads {}, got {}", kv_heads, q_heads));
  k.batch = same_extent(context, same_extent(context, q.batch, k.batch, "batch"), v.batch, "batch");
  k.length = same_extent(context, same_extent(context, q.length, k.length, "length"), v.length, "length");
  k.size = same_extent(context, q.size, k.size, "key size");
  k.heads = Dim(kv_heads);
  const Dim wide = k.size.is_unknown() ? Dim::unknown() : k.heads * k.size;
  check_gate(context, 4, uses_decay(context.attributes()), k, wide);
  check_gate(context, 5, uses_beta(context.attributes()), k, Dim(1));
  if (context.has_input(3)) {
    context.require_rank(3, 4);
    const Dim expected[] = {k.batch, k.heads, k.size, v.size};
    for (int64_t axis = 0; context.shape(3).has_rank() && axis < 4; ++axis) {
      same_extent(context, context.shape(3)[axis], expected[axis], "past_state");
    }
  }
  const Dim packed = v.size.is_unknown() ? Dim::unknown() : Dim(q_heads) * v.size;
  context.set_output(0, context.dtype(0), Shape{k.batch, k.length, packed});
  context.set_output(1, context.has_input(3) ? context.dtype(3) : context.dtype(0),
                     Shape{k.batch, k.heads, k.size, v.size});
}

// One head's state, [d_k, d_v], and the step that moves it to the next position.
struct State {
  double* values;
  int64_t key_size;
  int64_t value_size;

  void decay(int64_t row, double factor) const {
    for (int64_t m = 0; m < value_size; ++m) values[row * value_size + m] *= factor;
  }
  // sum_d weights[d] * S[d, m] for every m.
  std::vector<double> read(const double* weights) const {
    std::vector<double> sums(static_cast<size_t>(value_size), 0.0);
    for (int64_t d = 0; d < key_size; ++d) {
      for (int64_t m = 0; m < value_size; ++m) sums[static_cast<size_t>(m)] += weights[d] * values[d * value_size + m];
    }
    return sums;
  }
  void write(const double* key, const std::vector<double>& update) const {
    for (int64_t d = 0; d < key_size; ++d) {
      for (int64_t m = 0; m < value_size; ++m) values[d * value_size + m] += key[d] * update[static_cast<size_t>(m)];
    }
  }
};

// A gate input: [batch, length, n] where n is 1, one per head, or several per head.
class Gate {
 public:
  Gate(const TensorView& view, int64_t heads) : values_(real_values(view)) {
    if (!view.is_present()) return;
    width_ = view.dim(2);
    per_head_ = width_ == 1 ? 0 : width_ / heads;
  }
  bool is_present() const { return width_ > 0; }
  double at(int64_t position, int64_t head, int64_t element) const {
    const int64_t i = position * width_ + head * per_head_ + (per_head_ > 1 ? element : 0);
    return values_[static_cast<size_t>(i)];
  }

 private:
  std::vector<double> values_;
  int64_t width_ = 0;
  int64_t per_head_ = 0;
};

void reference(const OpCall& call) {
  const int64_t kv_heads = call.attributes.integer("kv_num_heads");
  const Heads q(call.input(0), call.attributes.integer("q_num_heads"));
  const Heads k(call.input(1), kv_heads);
  const Heads v(call.input(2), kv_heads);
  const Gate decay(call.input(4), kv_heads);
  const Gate beta(call.input(5), kv_heads);
  const int64_t group = q.heads() / kv_heads;
  std::vector<double> states(static_cast<size_t>(call.output(1).num_elements()), 0.0);
  if (call.input(3).is_present()) states = real_values(call.input(3));
  std::vector<double> y(static_cast<size_t>(call.output(0).num_elements()), 0.0);
  const float given_scale = call.attributes.real("scale");
  const double scale = given_scale == 0 ? 1 / std::sqrt(static_cast<double>(k.size())) : given_scale;
  for (int64_t b_head = 0; b_head < k.batch() * kv_heads; ++b_head) {
    const int64_t b = b_head / kv_heads, head = b_head % kv_heads;
    const State state{states.data() + b_head * k.size() * v.size(), k.size(), v.size()};
    for (int64_t i = 0; i < k.length(); ++i) {
      const int64_t position = b * k.length() + i;
      const double* key = k.row(b, head, i);
      if (decay.is_present()) {
        for (int64_t d = 0; d < k.size(); ++d) state.decay(d, std::exp(decay.at(position, head, d)));
      }
      std::vector<double> update(v.row(b, head, i), v.row(b, head, i) + v.size());
      if (beta.is_present()) {
        const std::vector<double> stored = state.read(key);
        for (size_t m = 0; m < update.size(); ++m) update[m] = beta.at(position, head, 0) * (update[m] - stored[m]);
      }
      state.write(key, update);
      for (int64_t reader = head * group; reader < (head + 1) * group; ++reader) {
        const std::vector<double> out = state.read(q.row(b, reader, i));
        for (size_t m = 0; m < out.size(); ++m) {
          y[static_cast<size_t>((position * q.heads() + reader) * v.size()) + m] = scale * out[m];
        }
      }
    }
  }
  store_reals(y, call.output(0));
  store_reals(states, call.output(1));
}

// ---- Body: how it is differentiated --------------------------------------------------------------------------------

// x [batch, length, heads * ...] as [length, batch, heads, dims...].
Var by_position(const Var& x, const std::vector<int64_t>& dims) {
  std::vector<int64_t> shape{0, 0};
  shape.insert(shape.end(), dims.begin(), dims.end());
  return reshape(transpose(x, {1, 0, 2}), shape);
}

// What a scan reads at each position: rows and columns of matrices, for all heads.
struct Scanned {
  std::vector<Var> values;
  // The place of decay and beta in `values`; 0: not given.
  size_t decay = 0, beta = 0;
};

Scanned scanned_inputs(const DecomposeContext& context, int64_t kv_heads, int64_t d_k, int64_t d_v) {
  const std::vector<Var>& in = context.inputs;
  const int64_t group = context.attributes.integer("q_num_heads") / kv_heads;
  Scanned scanned{{by_position(in[0], {kv_heads, group, d_k}), by_position(in[1], {kv_heads, 1, d_k}),
                   by_position(in[2], {kv_heads, 1, d_v})}};
  if (in[4].is_valid()) {
    scanned.decay = scanned.values.size();
    scanned.values.push_back(by_position(exp(in[4]), {kv_heads, in[4].dim(2) / kv_heads, 1}));
  }
  if (in[5].is_valid()) {
    scanned.beta = scanned.values.size();
    scanned.values.push_back(by_position(in[5], {in[5].dim(2), 1, 1}));
  }
  return scanned;
}

// Moves the state [batch, kv heads, d_k, d_v] on by a position, and reads it.
Graph position_body(const Scanned& scanned, const Var& first) {
  Graph body("position");
  const auto input = [&](const Type& type) { return Var(body, body.add_input(type)); };
  Var state = input(first.type());
  std::vector<Var> at;
  for (const Var& each : scanned.values) {
    const auto& dims = each.shape().dims();
    at.push_back(input(Type(each.dtype(), Shape(std::vector<Dim>(dims.begin() + 1, dims.end())))));
  }
  const Var &query = at[0], &key = at[1];
  if (scanned.decay > 0) state = state * at[scanned.decay];
  Var update = at[2];
  if (scanned.beta > 0) update = at[scanned.beta] * (update - matmul(key, state));
  state = state + matmul(transpose(key, {0, 1, 3, 2}), update);
  body.add_output(state.id());
  body.add_output(matmul(query, state).id());
  return body;
}

std::vector<Var> decompose(DecomposeContext& context) {
  const std::vector<Var>& in = context.inputs;
  const int64_t kv_heads = context.attributes.integer("kv_num_heads");
  for (const Var& each : in) {
    AG_CHECK_USER(!each.is_valid() || each.type().is_static(), UnsupportedError,
                  "[linear_attention] body: expected known extents, got {}", to_string(each.type()));
  }
  const int64_t d_k = in[1].dim(2) / kv_heads, d_v = in[2].dim(2) / kv_heads;
  const Var first =
      in[3].is_valid()
          ? cast(in[3], in[0].dtype())
          : cast(constant_like(in[0], Tensor::zeros(DType::f32, {in[0].dim(0), kv_heads, d_k, d_v})), in[0].dtype());
  const Scanned scanned = scanned_inputs(context, kv_heads, d_k, d_v);
  const std::vector<Var> results = scan({first}, scanned.values, position_body(scanned, first), {}, {});
  const float given_scale = context.attributes.real("scale");
  const double scale = given_scale == 0 ? 1 / std::sqrt(static_cast<double>(d_k)) : static_cast<double>(given_scale);
  // [length, batch, kv heads, group, d_v]
  const Var y = reshape(transpose(results[1] * scale, {1, 0, 2, 3, 4}), {in[0].dim(0), in[0].dim(1), -1});
  return {y, in[3].is_valid() ? cast(results[0], in[3].dtype()) : results[0]};
}

OpSample sample(Random& random) {
  const int64_t batch = draw(random, 1, 2), length = draw(random, 1, 4), kv_heads = draw(random, 1, 2);
  const int64_t q_heads = kv_heads * draw(random, 1, 2), d_k = draw(random, 1, 3), d_v = draw(random, 1, 3);
  const auto tensor = [&](int64_t width) { return draw_tensor(random, DType::f32, {batch, length, width}, -1, 1); };
  OpSample result;
  result.attributes = {{"q_num_heads", q_heads},
                       {"kv_num_heads", kv_heads},
                       {"scale", draw_one_of(random, {0.0f, 0.5f})},
                       {"update_rule", std::string(draw_one_of(random, {"linear", "gated", "delta", "gated_delta"}))}};
  result.inputs = {tensor(q_heads * d_k), tensor(kv_heads * d_k), tensor(kv_heads * d_v)};
  result.inputs.resize(6);
  if (draw_bool(random)) result.inputs[3] = draw_tensor(random, DType::f32, {batch, kv_heads, d_k, d_v});
  if (uses_decay(result.attributes)) result.inputs[4] = tensor(draw_bool(random) ? kv_heads : kv_heads * d_k);
  if (uses_beta(result.attributes)) result.inputs[5] = tensor(draw_bool(random) ? kv_heads : 1);
  result.num_outputs = 2;
  return result;
}

}  // namespace

std::vector<Var> linear_attention(Var query, Var key, Var value, Attributes attributes, Var state, Var decay,
                                  Var beta) {
  return apply_all(linear_attention_def(), {query, key, value, state, decay, beta}, std::move(attributes), 2);
}

const OpDef& linear_attention_def() {
  static const OpDef def{
      .name = "linear_attention",
      .doc = "Attention as a recurrence: S = exp(g) S + k (outer) u, o = scale * q^T S, position by position.",
      .inputs = {{"query", "T", "[batch, length, q heads * d_k]."},
                 {"key", "T", "[batch, length, kv heads * d_k]."},
                 {"value", "T", "[batch, length, kv heads * d_v]."},
                 {"past_state", "S", "[batch, kv heads, d_k, d_v]; zeros when missing.", Arity::optional},
                 {"decay", "T", "Logarithm of the decay, [batch, length, kv heads] or [batch, length, kv heads * d_k].",
                  Arity::optional},
                 {"beta", "T", "Update rate, [batch, length, kv heads] or [batch, length, 1].", Arity::optional}},
      .outputs = {{"y", "T", "[batch, length, q heads * d_v]."},
                  {"present_state", "S", "[batch, kv heads, d_k, d_v], dtype of past_state or else of query."}},
      .types = {{"T", dtypes::kFloat}, {"S", dtypes::kFloat}},
      .attributes =
          {{"chunk_size", AttributeType::integer, "Hint for kernels that work in chunks.", int64_t{64}},
           {.name = "kv_num_heads", .type = AttributeType::integer, .doc = "Heads of key and value.", .required = true},
           {.name = "q_num_heads",
            .type = AttributeType::integer,
            .doc = "Heads of query, a multiple of kv_num_heads.",
            .required = true},
           {"scale", AttributeType::real, "Factor of the output; 0: 1 / sqrt(d_k).", 0.0f},
           {.name = "update_rule",
            .type = AttributeType::text,
            .doc = "Which terms the recurrence has.",
            .default_value = std::string("gated_delta"),
            .allowed = {"linear", "gated", "delta", "gated_delta"}}},
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .onnx = {{.name = "LinearAttention", .since = 27, .export_since = 27}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
