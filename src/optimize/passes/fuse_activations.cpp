// fuse_activations: activation functions that a model spells out in arithmetic become one node.
//
//   gelu          x/2 (1 + erf(x / sqrt 2)), with approximate = tanh: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
//                 or x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3))
//   hard_swish    x clip(x + 3, 0, 6) / 6, x clip(x/6 + 1/2, 0, 1), x hard_sigmoid(x; 1/6, 1/2)
//   hard_sigmoid  clip(a x + b, 0, h) / h
//   swish         x sigmoid(alpha x), x / (1 + exp(-x))
//   mish          x tanh(softplus(x))
//   softplus      log(1 + exp(x))
//
// Products, sums and polynomials are compared as formulas, so that order, brackets and the place of constants do not
// matter (see optimize/match.h). Holds before: floats, and nothing outside the formula reads a value inside it. The
// fused ops are arranged so that they do not overflow; where the spelled-out form does (x / (1 + exp(-x)) at -100 in
// f16), the fused one gives the limit instead.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr double kInverseSqrtTwo = std::numbers::sqrt2 / 2;
constexpr double kSqrtTwoOverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kCubic = 0.044715;

// An activation of x.
struct Activation {
  const OpDef* op;
  ValueId x;
  Attributes attributes;
};
using Match = std::optional<Activation>;

// scale * x * gate.
struct Gated {
  double scale;
  ValueId x;
  ValueId gate;
};

// The polynomial in the tanh of the approximate gelu, times `factor`.
Polynomial cubic_argument(double factor) { return {0, factor * kSqrtTwoOverPi, 0, factor * kSqrtTwoOverPi * kCubic}; }

// gate = a + b * f(argument), with f an op of one input; nothing when it is something else.
struct FunctionGate {
  ValueId argument;
  double factor;
  double offset;
};

std::optional<FunctionGate> function_gate(const Graph& graph, const Gated& product, const OpDef& function) {
  const Affine affine = affine_of(graph, product.gate);
  const Node* node = made_once_by(graph, affine.x, function);
  if (!node) return std::nullopt;
  return FunctionGate{node->input(0), affine.factor * product.scale, affine.offset * product.scale};
}

bool is_half_each(const FunctionGate& gate, DType dtype) {
  return is_close(gate.factor, 0.5, dtype) && is_close(gate.offset, 0.5, dtype);
}

// Does f32, the dtype of attributes, hold the number with all its digits?
bool is_attribute(double x) {
  const double magnitude = std::fabs(x);
  return x == 0 || (magnitude >= std::numeric_limits<float>::min() && magnitude <= std::numeric_limits<float>::max());
}

bool is_plain(const FunctionGate& gate, DType dtype) { return is_close(gate.factor, 1, dtype) && gate.offset == 0; }

Match match_gelu(const Graph& graph, const Gated& product) {
  const DType dtype = graph.type(product.x).dtype();
  const auto matches = [&](const OpDef& function, const Polynomial& expected, bool halves) {
    const auto gate = function_gate(graph, product, function);
    if (!gate || !(halves ? is_half_each(*gate, dtype) : is_plain(*gate, dtype))) return false;
    return is_polynomial(polynomial_in(graph, gate->argument, product.x), expected, dtype);
  };
  if (matches(erf_def(), {0, kInverseSqrtTwo, 0, 0}, true)) {
    return Activation{&gelu_def(), product.x, {{"approximate", std::string("none")}}};
  }
  if (matches(tanh_def(), cubic_argument(1), true) || matches(sigmoid_def(), cubic_argument(2), false)) {
    return Activation{&gelu_def(), product.x, {{"approximate", std::string("tanh")}}};
  }
  return std::nullopt;
}

Match match_swish(const Graph& graph, const Gated& product) {
  const DType dtype = graph.type(product.x).dtype();
  const auto gate = function_gate(graph, product, sigmoid_def());
  if (!gate || !is_plain(*gate, dtype)) return std::nullopt;
  const auto alpha = polynomial_in(graph, gate->argument, product.x);
  if (!alpha || (*alpha)[0] != 0 || (*alpha)[2] != 0 || (*alpha)[3] != 0) return std::nullopt;
  if (!is_attribute((*alpha)[1])) return std::nullopt;
  return Activation{&swish_def(), product.x, {{"alpha", static_cast<float>((*alpha)[1])}}};
}

// x of log(1 + exp(x)) or softplus(x); invalid when it is something else.
ValueId softplus_argument(const Graph& graph, ValueId v) {
  if (const Node* node = made_once_by(graph, v, softplus_def())) return node->input(0);
  const Node* log = made_once_by(graph, v, log_def());
  if (!log) return {};
  const Affine sum = affine_of(graph, log->input(0));
  const Node* exp = made_once_by(graph, sum.x, exp_def());
  return exp && sum.x != log->input(0) && sum.factor == 1 && sum.offset == 1 ? exp->input(0) : ValueId{};
}

Match match_mish(const Graph& graph, const Gated& product) {
  const auto gate = function_gate(graph, product, tanh_def());
  if (!gate || !is_plain(*gate, graph.type(product.x).dtype())) return std::nullopt;
  if (softplus_argument(graph, gate->argument) != product.x) return std::nullopt;
  return Activation{&mish_def(), product.x, {}};
}

// clip(argument, 0, high).
struct Clip {
  ValueId argument;
  double high;
};

std::optional<Clip> clip_from_zero(const Graph& graph, const Node* clip) {
  if (!clip || scalar_constant(graph, clip->input(1)) != 0.0) return std::nullopt;
  const auto high = scalar_constant(graph, clip->input(2));
  if (!high || !(*high > 0) || !std::isfinite(*high)) return std::nullopt;
  return Clip{clip->input(0), *high};
}

Match match_hard_swish(const Graph& graph, const Gated& product) {
  const DType dtype = graph.type(product.x).dtype();
  const Activation hard_swish{&hard_swish_def(), product.x, {}};
  if (const Node* gate = made_once_by(graph, product.gate, hard_sigmoid_def())) {
    const bool fits = gate->input(0) == product.x && is_close(product.scale, 1, dtype) &&
                      is_close(gate->attributes().real("alpha"), 1.0 / 6, dtype) &&
                      is_close(gate->attributes().real("beta"), 0.5, dtype);
    return fits ? Match(hard_swish) : std::nullopt;
  }
  const auto clip = clip_from_zero(graph, made_once_by(graph, product.gate, clip_def()));
  if (!clip || !is_close(product.scale * clip->high, 1, dtype)) return std::nullopt;
  const Polynomial expected{clip->high / 2, clip->high / 6, 0, 0};
  const bool fits = is_polynomial(polynomial_in(graph, clip->argument, product.x), expected, dtype);
  return fits ? Match(hard_swish) : std::nullopt;
}

// A product of two factors, as x and gate either way.
Match match_gated(const Graph& graph, ValueId root) {
  const Product product = product_of(graph, root);
  if (product.factors.size() != 2) return std::nullopt;
  for (const size_t x : {0, 1}) {
    const Gated gated{product.scale, product.factors[x], product.factors[1 - x]};
    for (const auto match : {match_gelu, match_swish, match_hard_swish, match_mish}) {
      if (Match found = match(graph, gated)) return found;
    }
  }
  return std::nullopt;
}

// clip(a x + b, 0, h) / h, where h may be 1 and a x + b is not x itself.
Match match_hard_sigmoid(const Graph& graph, ValueId root) {
  Product product{1, {root}};
  const Node* node = made_by(graph, root, clip_def());
  if (!node) {
    product = product_of(graph, root);
    if (product.factors.size() == 1) node = made_once_by(graph, product.factors[0], clip_def());
  }
  const auto clip = clip_from_zero(graph, node);
  if (!clip || !is_close(product.scale * clip->high, 1, graph.type(root).dtype())) return std::nullopt;
  const Affine inside = affine_of(graph, clip->argument);
  if (inside.x == clip->argument) return std::nullopt;
  if (!is_attribute(inside.factor * product.scale) || !is_attribute(inside.offset * product.scale)) return std::nullopt;
  return Activation{&hard_sigmoid_def(),
                    inside.x,
                    {{"alpha", static_cast<float>(inside.factor * product.scale)},
                     {"beta", static_cast<float>(inside.offset * product.scale)}}};
}

// x / (1 + exp(-x)).
Match match_swish_quotient(const Graph& graph, const Node& div) {
  const Affine sum = affine_of(graph, div.input(1));
  const Node* exp = made_once_by(graph, sum.x, exp_def());
  if (!exp || sum.x == div.input(1) || sum.factor != 1 || sum.offset != 1) return std::nullopt;
  const auto exponent = polynomial_in(graph, exp->input(0), div.input(0));
  if (!exponent || (*exponent)[0] != 0 || (*exponent)[2] != 0 || (*exponent)[3] != 0) return std::nullopt;
  if (!is_attribute((*exponent)[1])) return std::nullopt;
  return Activation{&swish_def(), div.input(0), {{"alpha", static_cast<float>(-(*exponent)[1])}}};
}

Match match_softplus(const Graph& graph, const Node& log) {
  const Affine sum = affine_of(graph, log.input(0));
  const Node* exp = made_once_by(graph, sum.x, exp_def());
  if (!exp || sum.x == log.input(0) || sum.factor != 1 || sum.offset != 1) return std::nullopt;
  return Activation{&softplus_def(), exp->input(0), {}};
}

Match match_activation(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.outputs().size() != 1 || !dtypes::kFloat.contains(graph.type(node.output(0)).dtype())) return std::nullopt;
  const ValueId root = node.output(0);
  const bool is_div = &node.op() == &div_def();
  if (&node.op() == &log_def()) return match_softplus(graph, node);
  if (&node.op() == &clip_def()) return match_hard_sigmoid(graph, root);
  if (&node.op() != &mul_def() && !is_div) return std::nullopt;
  Match match = match_gated(graph, root);
  if (!match && is_div) match = match_swish_quotient(graph, node);
  return match ? match : match_hard_sigmoid(graph, root);
}

// Constants of a higher rank than x would add dims.
bool keeps_rank(const Graph& graph, ValueId x, ValueId root) {
  const Shape& from = graph.type(x).shape();
  const Shape& to = graph.type(root).shape();
  return from.has_rank() && to.has_rank() && from.rank() == to.rank();
}

}  // namespace

// Readers first, so that the longest formula wins: hard_swish before the hard_sigmoid inside it.
bool fuse_activations(Graph& graph, PassContext&) {
  bool changed = false;
  std::vector<NodeId> order = graph.topological_order();
  std::reverse(order.begin(), order.end());
  for (const NodeId id : order) {
    if (!graph.is_live(id)) continue;
    const Match match = match_activation(graph, id);
    if (!match) continue;
    const ValueId root = graph.node(id).output(0);
    if (!keeps_rank(graph, match->x, root)) continue;
    const NodeId fused = graph.add_node(*match->op, {match->x}, match->attributes);
    replace_pattern(graph, root, graph.node(fused).output(0));
    changed = true;
  }
  return changed;
}

}  // namespace autograph
