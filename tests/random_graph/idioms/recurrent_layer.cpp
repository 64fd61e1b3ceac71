// Recurrent layers: the ops as torch, keras and paddle use them, cells spelled out step by step, and loops over cells
// as tf2onnx writes them.
#include <memory>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/shape.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

struct Kind {
  const char* op;
  int64_t gates;
};

// x is [length, batch, width].
std::vector<Var> layer(IdiomGraph& g, Var x, const Kind& kind, int64_t hidden, const std::string& direction) {
  const int64_t directions = direction == "bidirectional" ? 2 : 1, rows = kind.gates * hidden;
  std::vector<Var> inputs{x, g.weight({directions, rows, x.dim(2)}), g.weight({directions, rows, hidden})};
  inputs.push_back(g.chance(75) ? g.weight({directions, 2 * rows}) : Var());
  Attributes attributes{{"direction", direction}, {"hidden_size", hidden}};
  if (kind.gates == 3 && g.chance(50)) attributes.set("linear_before_reset", int64_t{1});
  const bool is_lstm = kind.gates == 4;
  if (x.shape()[1].is_known() && g.chance(40)) {
    const int64_t batch = x.dim(1);
    const Tensor lengths = draw_tensor(g.random(), DType::i32, {batch}, 1, 3);
    inputs.push_back(g.chance(30) && x.shape()[0].value_or(0) >= 3 ? g.constant(lengths) : Var());
    for (int k = 0; k < (is_lstm ? 2 : 1); ++k) {
      inputs.push_back(g.chance(50) ? g.weight({directions, batch, hidden})
                                    : g.weight({directions, batch, hidden}, 0, 0));
    }
  }
  return apply_all(get_op(kind.op), inputs, attributes, is_lstm ? 3 : 2);
}

// [length, directions, batch, hidden] as [length, batch, directions * hidden].
Var joined(IdiomGraph& g, Var y, int64_t directions) {
  if (directions == 1 && g.chance(70)) return squeeze(y, {1});
  return reshape(transpose(y, {0, 2, 1, 3}), std::vector<int64_t>{0, 0, directions * y.dim(3)});
}

Var layers(IdiomGraph& g, Var x) {
  const Kind kind = g.one_of<Kind>({{"lstm", 4}, {"lstm", 4}, {"gru", 3}, {"rnn", 1}});
  const int64_t hidden = g.one_of<int64_t>({1, 3, 4, 8, 16});
  Var y = transpose(x, {1, 0, 2});
  for (int64_t k = g.between(1, 2); k > 0; --k) {
    const std::string direction = g.one_of<std::string>({"forward", "reverse", "bidirectional"});
    const std::vector<Var> outputs = layer(g, y, kind, hidden, direction);
    y = joined(g, outputs[0], direction == "bidirectional" ? 2 : 1);
    if (g.chance(25)) g.output(outputs[1]);
  }
  return transpose(y, {1, 0, 2});
}

struct State {
  Var h, c;
};

struct CellWeights {
  Var w, r, b;
};

// One step of an LSTM, its gates in one product.
State step(IdiomGraph& g, Var x, const State& state, const CellWeights& weights, int64_t hidden) {
  const Var gates = add(add(matmul(x, weights.w), matmul(state.h, weights.r)), weights.b);
  const std::vector<Var> parts = split(gates, {hidden, hidden, hidden, hidden}, 1);
  const Var kept = mul(sigmoid(parts[1]), state.c);
  const Var c = add(kept, mul(sigmoid(parts[0]), tanh(parts[2])));
  (void)g;
  return {mul(sigmoid(parts[3]), tanh(c)), c};
}

CellWeights draw_weights(IdiomGraph& g, int64_t width, int64_t hidden) {
  return {g.weight({width, 4 * hidden}), g.weight({hidden, 4 * hidden}), g.weight({4 * hidden})};
}

// A few steps written out.
Var unrolled(IdiomGraph& g, Var x) {
  const int64_t hidden = g.one_of<int64_t>({3, 4, 8}), width = x.dim(2);
  const CellWeights weights = draw_weights(g, width, hidden);
  const Var first = gather(x, g.constant(Tensor::scalar<int64_t>(0)), 1);
  State state{matmul(first, g.weight({width, hidden})), matmul(first, g.weight({width, hidden}))};
  std::vector<Var> outputs;
  for (int64_t k = 0; k < x.dim(1) && k < 4; ++k) {
    const Var now =
        g.chance(50) ? gather(x, g.constant(Tensor::scalar(k)), 1) : squeeze(slice(x, {k}, {k + 1}, {1}), {1});
    state = step(g, now, state, weights, hidden);
    outputs.push_back(unsqueeze(state.h, {1}));
  }
  return concat(outputs, 1);
}

// A loop with the length of the sequence as its count, which picks its step by the turn.
Var looped(IdiomGraph& g, Var x) {
  const int64_t hidden = g.one_of<int64_t>({3, 4, 8}), width = x.dim(2);
  const CellWeights weights = draw_weights(g, width, hidden);
  const Var rows = transpose(x, {1, 0, 2});
  const Var start = matmul(gather(rows, g.constant(Tensor::scalar<int64_t>(0)), 0), g.weight({width, hidden}));
  const auto body = std::make_shared<Graph>();
  const auto take = [&](const Type& type, const char* name) { return Var(*body, body->add_input(type, name)); };
  const Var turn = take(Type(DType::i64, {}), "turn");
  const Var condition = take(Type(DType::boolean, {}), "condition");
  const State state{take(start.type(), "h"), take(start.type(), "c")};
  const Var all = take(rows.type(), "rows");
  const CellWeights inner{take(weights.w.type(), "w"), take(weights.r.type(), "r"), take(weights.b.type(), "b")};
  const State next = step(g, gather(all, turn, 0), state, inner, hidden);
  for (const Var& v : {condition, next.h, next.c, next.h}) body->add_output(v.id());
  const Var count = gather(shape(rows), g.constant(Tensor::scalar<int64_t>(0)), 0);
  const std::vector<Var> inputs{count,    g.constant(Tensor::scalar(true)), start, start, rows, weights.w, weights.r,
                                weights.b};
  const auto outputs = apply_all(get_op("loop"), inputs, {{"body", GraphRef(body)}, {"num_captures", int64_t{4}}}, 3);
  return transpose(outputs[2], {1, 0, 2});
}

}  // namespace

void add_recurrent_layer(IdiomGraph& g) {
  const Var x = g.sequence();
  const int64_t kind = g.between(0, 9);
  if (kind < 2 && x.shape()[1].is_known()) return g.leave(unrolled(g, x));
  if (kind == 2) return g.leave(looped(g, x));
  g.leave(layers(g, x));
}

}  // namespace autograph
