// flex_attention: y = prob_mod(softmax(score_mod(scale * q k^T))) v for every head, where score_mod and prob_mod are
// nested graphs from a tensor [batch, q heads, queries, keys] to another of the same type, each the identity when not
// given. Query head h meets key and value head h / (q heads / kv heads). From the scores to y all is computed in
// softmax_precision: f64 for f64 and f32 for the others by default.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/attention.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "graph/nested/inline_graph.h"
#include "ops/control/captures.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

constexpr size_t kNumTensors = 3;  // q, k, v; captured values follow
constexpr const char* kMods[] = {"score_mod", "prob_mod"};

DType compute_dtype(const Attributes& attributes, DType dtype) {
  const DType asked = attributes.get_or("softmax_precision", DType::undefined);
  if (asked != DType::undefined) return asked;
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

// Throws unless two dims that must agree do, as far as they are known.
void require_same(const InferContext& context, size_t slot, int64_t axis, const Dim& expected) {
  const Dim& got = context.shape(slot)[axis];
  if (!got.is_known() || !expected.is_known() || got == expected) return;
  const char* const names[] = {"q", "k", "v"};
  context.fail<ShapeError>(names[slot], fmt::format("expected extent {} on axis {}, got {}", to_string(expected), axis,
                                                    to_string(context.shape(slot))));
}

void check_mod(const InferContext& context, const char* mod, const Type& scores) {
  if (!context.attributes().contains(mod)) return;
  std::vector<Type> inputs{scores};
  for (size_t slot = num_formal_inputs(context); slot < context.num_inputs(); ++slot) {
    inputs.push_back(context.input(slot));
  }
  const std::vector<Type> outputs = context.infer_nested(mod, inputs);
  if (outputs.size() != 1) context.fail<ValueError>(mod, fmt::format("expected one output, got {}", outputs.size()));
  const Type& out = outputs[0];
  bool fits = out.is_tensor() && out.dtype() == scores.dtype();
  if (fits && out.shape().has_rank()) {
    fits = out.shape().rank() == 4;
    for (int64_t axis = 0; fits && axis < 4; ++axis) {
      const Dim& got = out.shape()[axis];
      const Dim& expected = scores.shape()[axis];
      fits = !got.is_known() || !expected.is_known() || got == expected;
    }
  }
  if (!fits) {
    context.fail<TypeError>(mod,
                            fmt::format("expected an output of type {}, got {}", to_string(scores), to_string(out)));
  }
}

void infer(InferContext& context) {
  for (size_t slot = 0; slot < kNumTensors; ++slot) context.require_rank(slot, 4);
  if (!context.shape(0).has_rank() || !context.shape(1).has_rank() || !context.shape(2).has_rank()) {
    return context.set_output(0, context.dtype(0), Shape::of_rank(4));
  }
  const Shape& q = context.shape(0);
  const Shape& k = context.shape(1);
  require_same(context, 1, 0, q[0]);
  require_same(context, 2, 0, q[0]);
  require_same(context, 1, 3, q[3]);
  require_same(context, 2, 1, k[1]);
  require_same(context, 2, 2, k[2]);
  const int64_t heads = q[1].value_or(0);
  const int64_t kv_heads = k[1].value_or(1);
  context.require<ShapeError>(kv_heads > 0 && heads % kv_heads == 0, "k",
                              fmt::format("expected heads that divide the {} of q, got {}", heads, kv_heads));
  const DType precision = compute_dtype(context.attributes(), context.dtype(0));
  context.require<TypeError>(dtypes::kFloat.contains(precision), "softmax_precision",
                             fmt::format("expected {}, got {}", to_string(dtypes::kFloat), to_string(precision)));
  const Type scores(precision, Shape{q[0], q[1], q[2], k[2]});
  for (const char* mod : kMods) check_mod(context, mod, scores);
  context.set_output(0, context.dtype(0), Shape{q[0], q[1], q[2], context.shape(2)[3]});
}

// Every head of x as often as query heads share it.
Var repeat_heads(Var x, int64_t times) {
  if (times == 1) return x;
  std::vector<int64_t> heads;
  for (int64_t head = 0; head < x.dim(1) * times; ++head) heads.push_back(head / times);
  return gather(x, constant_like(x, Tensor::vector(heads)), 1);
}

Var apply_mod(const DecomposeContext& context, const char* mod, Var x) {
  if (!context.attributes.contains(mod)) return x;
  std::vector<ValueId> inputs{x.id()};
  for (size_t slot = kNumTensors; slot < context.inputs.size(); ++slot) inputs.push_back(context.inputs[slot].id());
  const Graph& body = *context.attributes.get<GraphRef>(mod);
  inputs.resize(body.inputs().size());
  return {context.graph, inline_graph(context.graph, body, inputs)[0]};
}

std::vector<Var> decompose(DecomposeContext& context) {
  const DType given = context.inputs[0].dtype();
  const DType precision = compute_dtype(context.attributes, given);
  const auto precise = [precision](Var x) { return x.dtype() == precision ? x : cast(x, precision); };
  const Var q = precise(context.inputs[0]);
  const bool heads_known =
      q.shape()[1].is_known() && context.inputs[1].shape()[1].is_known() && q.shape()[3].is_known();
  AG_CHECK_USER(heads_known, UnsupportedError,
                "[flex_attention] q: expected a known number and size of heads, got {} with keys {}",
                to_string(q.shape()), to_string(context.inputs[1].shape()));
  const int64_t sharing = q.dim(1) / context.inputs[1].dim(1);
  const Var k = repeat_heads(precise(context.inputs[1]), sharing);
  const Var v = repeat_heads(precise(context.inputs[2]), sharing);
  const double scale = context.attributes.contains("scale") ? context.attributes.real("scale")
                                                            : 1 / std::sqrt(static_cast<double>(q.dim(3)));
  const Var products = matmul(q, transpose(k, {0, 1, 3, 2}));
  const Var scores = apply_mod(context, "score_mod", mul(products, scalar_like(products, scale)));
  const Var weights = apply_mod(context, "prob_mod", softmax(scores, -1));
  const Var y = matmul(weights, v);
  return {precision == given ? y : cast(y, given)};
}

std::vector<ValueId> import_onnx(ForeignNode& node) {
  import_captures(node);
  return node.emit();
}

// x times a captured factor.
GraphRef sample_mod(DType dtype) {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->add_input(Type(dtype, Shape::of_rank(4)), "x");
  const ValueId factor = graph->add_input(Type(dtype, Shape{}), "factor");
  graph->add_output(graph->node(graph->add_node(mul_def(), {x, factor})).output(0), "y");
  return graph;
}

OpSample sample(Random& random) {
  const int64_t batch = draw(random, 1, 2), kv_heads = draw(random, 1, 2), heads = kv_heads * draw(random, 1, 2);
  const int64_t keys = draw(random, 1, 4), size = draw(random, 1, 4);
  OpSample result;
  result.inputs = {draw_tensor(random, DType::f32, {batch, heads, draw(random, 1, 4), size}),
                   draw_tensor(random, DType::f32, {batch, kv_heads, keys, size}),
                   draw_tensor(random, DType::f32, {batch, kv_heads, keys, draw(random, 1, 4)})};
  if (draw_bool(random)) result.attributes.set("scale", 0.5F);
  const bool wide = draw_bool(random);
  if (wide) result.attributes.set("softmax_precision", DType::f64);
  bool any = false;
  for (const char* mod : kMods) {
    if (!draw_bool(random)) continue;
    result.attributes.set(mod, sample_mod(wide ? DType::f64 : DType::f32));
    any = true;
  }
  if (any) {
    result.inputs.emplace_back(draw_tensor(random, wide ? DType::f64 : DType::f32, {}));
    result.attributes.set("num_captures", int64_t{1});
  }
  return result;
}

}  // namespace

Var flex_attention(Var q, Var k, Var v, GraphRef score_mod, GraphRef prob_mod, const std::vector<Var>& captured,
                   float scale) {
  Attributes attributes{{"num_captures", std::ssize(captured)}};
  if (score_mod) attributes.set("score_mod", std::move(score_mod));
  if (prob_mod) attributes.set("prob_mod", std::move(prob_mod));
  if (scale != 0) attributes.set("scale", scale);
  std::vector<Var> inputs{q, k, v};
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  return apply(flex_attention_def(), inputs, std::move(attributes));
}

const OpDef& flex_attention_def() {
  static const OpDef def{
      .name = "flex_attention",
      .doc = "y = prob_mod(softmax(score_mod(scale * q k^T))) v for every head, the mods being nested graphs.",
      .inputs = {{"q", "T", "[batch, q heads, queries, size]."},
                 {"k", "T", "[batch, kv heads, keys, size]."},
                 {"v", "T", "[batch, kv heads, keys, value size]."},
                 {"captured", "", "Values that the nested graphs take after their first input.", Arity::variadic}},
      .outputs = {{"y", "T", "[batch, q heads, queries, value size]."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = {{"prob_mod", AttributeType::graph,
                      "[batch, q heads, queries, keys] after the softmax to the same."},
                     {"scale", AttributeType::real, "Factor of the scores; 1 / sqrt(size) when missing."},
                     {"score_mod", AttributeType::graph,
                      "[batch, q heads, queries, keys] before the softmax to the same."},
                     {"softmax_precision", AttributeType::dtype, "Dtype of the computation; f32, or f64 for f64."},
                     captures_spec()},
      .infer = infer,
      .decompose = decompose,
      .onnx = {{.name = "FlexAttention",
                .domain = "ai.onnx.preview",
                .import = import_onnx,
                .export_node = export_captures}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
