// If, Loop and Scan with values captured from around them.
#include <memory>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
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

// As exporters of paddle write an assignment.
Var assigned(IdiomGraph& g, Nested& body, Var x) {
  if (g.chance(25)) return x;
  const Var zero = constant(*body.graph, Tensor::zeros(x.dtype(), {1}));
  return squeeze(add(unsqueeze(x, {0}), zero), {0});
}

// A decoder that looks at features [N, L, D] in each turn and writes what it makes of them into a table [N, turns, D]
// by an index of the table's own extents.
Var decoded(IdiomGraph& g, Var features) {
  const int64_t width = features.dim(-1), turns = g.between(1, 4);
  const Var first = reduce_mean(features, {1}, false);
  const Var table =
      concat(std::vector<Var>(static_cast<size_t>(turns), mul(unsqueeze(first, {1}), g.number(first, 0))), 1);
  Nested body;
  const Var turn = body.input(Type(DType::i64, {}), "turn");
  const Var condition = body.input(Type(DType::boolean, {}), "condition");
  const Var state = body.input(open_type(g, first.type()), "state");
  const Var seen = body.input(open_type(g, features.type()), "seen");
  const Var written = body.input(open_type(g, table.type()), "written");
  const Var w = body.input(Type(features.dtype(), Shape{width, width}), "w");
  const Var scores = reduce_sum(mul(matmul(seen, w), unsqueeze(state, {1})), {2}, true);
  const Var next = tanh(add(reduce_sum(mul(seen, softmax(scores, 1)), {1}, false), state));
  const auto extent = [&](int64_t axis) { return slice(shape(written), {axis}, {axis + 1}, {0}); };
  const Var repeats = concat({extent(0), constant(*body.graph, Tensor::vector({1})), extent(2)}, 0);
  const Var index = apply(get_op("tile"), {reshape(turn, {1, 1, 1}), repeats});
  const Var update = apply(get_op("expand"), {unsqueeze(next, {1}), repeats});
  body.output(condition);
  body.output(assigned(g, body, next));
  body.output(assigned(g, body, seen));
  body.output(assigned(g, body, scatter_elements(written, index, update, 1)));
  const Var count = g.constant(Tensor::scalar(g.between(0, turns)));
  const auto outputs = apply_all(get_op("loop"), {count, Var(), first, features, table, g.weight({width, width})},
                                 {{"body", GraphRef(body.graph)}, {"num_captures", int64_t{1}}}, 3);
  g.output(outputs[0]);
  return outputs[2];
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
  switch (g.between(0, 4)) {
    case 0: return g.leave(scanned(g, g.sequence()));
    case 1: return g.leave(looped(g, g.chance(50) ? g.row() : g.sequence()));
    case 2: return g.leave(chosen(g, g.image()));
    case 3: return g.leave(decoded(g, g.sequence()));
    default: return g.leave(chosen(g, g.chance(50) ? g.row() : g.sequence()));
  }
}

}  // namespace autograph
