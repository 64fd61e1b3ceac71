// If, Loop and Scan with values captured from around them.
#include <memory>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

// A graph of its own, for a branch or a body.
struct Nested {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Var input(const Type& type, const std::string& name) { return {*graph, graph->add_input(type, name)}; }
  void output(Var v) { graph->add_output(v.id()); }
};

// The type with the extents of a run left open, as exporters leave them.
Type open_type(IdiomGraph& g, const Type& type) {
  return g.chance(50) ? type : Type(type.dtype(), Shape::of_rank(type.shape().rank()));
}

Var branch_body(IdiomGraph& g, Nested& nested, Var x, Var other) {
  const Var w = constant(*nested.graph, draw_tensor(g.random(), x.dtype(), {}, 0.5, 1.5));
  switch (g.between(0, 4)) {
    case 0: return relu(mul(x, w));
    case 1: return add(x, other);
    case 2: return sub(mul(other, w), x);
    case 3: return add(sigmoid(x), mul(x, w));
    default: return mul(x, w);
  }
}

GraphRef draw_branch(IdiomGraph& g, const Type& type) {
  Nested nested;
  const Var x = nested.input(type, "x");
  const Var other = nested.input(type, "other");
  nested.output(branch_body(g, nested, x, other));
  return nested.graph;
}

Var draw_condition(IdiomGraph& g, Var x) {
  switch (g.between(0, 3)) {
    case 0: return g.input(DType::boolean, {});
    case 1: return g.constant(Tensor::scalar(g.chance(50)));
    case 2: return greater(reduce_sum(abs(x), {}, false), scalar_like(x, -1));
    default: return greater(size(x), g.constant(Tensor::scalar<int64_t>(40)));
  }
}

Var chosen(IdiomGraph& g, Var x) {
  const Var other = add_activation(g, x);
  const Type type = open_type(g, x.type());
  const Attributes branches{{"then_branch", draw_branch(g, type)}, {"else_branch", draw_branch(g, type)}};
  return apply_all(get_op("if"), {draw_condition(g, x), x, other}, branches, 1)[0];
}

// A few turns over a state, with a weight from outside; the states of all turns may be stacked.
Var looped(IdiomGraph& g, Var x) {
  const int64_t width = x.dim(-1);
  Nested body;
  body.input(Type(DType::i64, {}), "turn");
  const Var condition = body.input(Type(DType::boolean, {}), "condition");
  const Var state = body.input(x.type(), "state");
  const Var w = body.input(Type(x.dtype(), Shape{width, width}), "w");
  const Var outside = body.input(x.type(), "outside");
  const Var next = g.chance(60) ? tanh(add(matmul(state, w), outside)) : mul(sigmoid(matmul(state, w)), outside);
  body.output(g.chance(60) ? condition : less(reduce_max(next, {}, false), scalar_like(next, 0.9)));
  body.output(next);
  const bool is_stacked = g.chance(40);
  if (is_stacked) body.output(next);
  const Var count = g.chance(60) ? g.constant(Tensor::scalar<int64_t>(g.between(0, 4))) : g.input(DType::i64, {}, 0, 4);
  const Var start = g.chance(50) ? g.constant(Tensor::scalar(true)) : Var();
  const std::vector<Var> inputs{count, start, x, g.weight({width, width}), mul(x, g.number(x, 0.5))};
  const auto outputs = apply_all(get_op("loop"), inputs, {{"body", GraphRef(body.graph)}, {"num_captures", int64_t{2}}},
                                 is_stacked ? 2 : 1);
  if (is_stacked) g.output(outputs[1]);
  return outputs[0];
}

// A recurrence over the length of a sequence [N, L, D].
Var scanned(IdiomGraph& g, Var x) {
  const int64_t width = x.dim(2), hidden = g.one_of<int64_t>({3, 4, 8});
  Nested body;
  const Dim batch = x.shape()[0];
  const Var state = body.input(Type(x.dtype(), Shape{batch, hidden}), "state");
  const Var step = body.input(Type(x.dtype(), Shape{batch, width}), "step");
  const Var w = body.input(Type(x.dtype(), Shape{width, hidden}), "w");
  const Var next = tanh(add(matmul(step, w), mul(state, scalar_like(state, 0.5))));
  body.output(next);
  body.output(next);
  const Var start = mul(reduce_mean(matmul(x, g.weight({width, hidden})), {1}, false), g.number(x, 0.1));
  const Attributes attributes{{"body", GraphRef(body.graph)},
                              {"num_scan_inputs", int64_t{1}},
                              {"num_captures", int64_t{1}},
                              {"scan_input_axes", std::vector<int64_t>{1}},
                              {"scan_input_directions", std::vector<int64_t>{g.between(0, 1)}},
                              {"scan_output_axes", std::vector<int64_t>{1}}};
  const auto outputs = apply_all(get_op("scan"), {start, x, g.weight({width, hidden})}, attributes, 2);
  g.leave(outputs[0]);
  return outputs[1];
}

}  // namespace

void add_control_flow(IdiomGraph& g) {
  switch (g.between(0, 3)) {
    case 0: return g.leave(scanned(g, g.sequence()));
    case 1: return g.leave(looped(g, g.chance(50) ? g.row() : g.sequence()));
    case 2: return g.leave(chosen(g, g.image()));
    default: return g.leave(chosen(g, g.chance(50) ? g.row() : g.sequence()));
  }
}

}  // namespace autograph
