// lstm_gates_grad: what flows into the gates of an LSTM layer of one direction, position by position from the last one
// to the first. `sums` are what goes into the functions of the gates i, o, f, c of all positions: W x + R h + b, which
// can be formed at once where all h are known. With i, o, f = sigmoid, n = tanh of them, c' = f * c + i * n,
// h' = o * tanh(c'), and gh, gc what flows into h' and c':
//
//   do = gh * tanh(c')   dc = gc + gh * o * (1 - tanh(c')^2)   di = dc * n   df = dc * c   dn = dc * i
//   gsums = those times i (1 - i), o (1 - o), f (1 - f), 1 - n^2;   before it gh = gy + gsums R, gc = dc * f
//
// The products with x and h, which make up most of the gradient, stay outside, for all positions at once.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/shape.h"
#include "graph/moved_bytes.h"
#include "ops/defs.h"
#include "ops/extents.h"
#include "ops/real_values.h"
#include "ops/sample.h"

namespace autograph {
namespace {

constexpr int64_t kGates = 4;

void infer(InferContext& context) {
  context.require_rank(0, 3);
  context.require_rank(1, 2);
  context.require_rank(3, 3);
  const Shape &sums = context.shape(0), &r = context.shape(1), &gy = context.shape(3);
  Dim batch = Dim::unknown(), hidden = Dim::unknown();
  if (sums.has_rank()) batch = sums[1];
  if (r.has_rank()) {
    hidden = r[1];
    const bool fits = !r[0].is_known() || !r[1].is_known() || r[0].value() == kGates * r[1].value();
    context.require<ShapeError>(fits, "r", "expected [4 * hidden, hidden], got " + to_string(r));
    if (sums.has_rank()) same_extent(context, r[0], sums[2], "rows of gates");
  }
  if (gy.has_rank() && sums.has_rank()) {
    same_extent(context, sums[0], gy[0], "length");
    same_extent(context, sums[1], gy[1], "batch");
    same_extent(context, hidden, gy[2], "hidden");
  }
  for (const size_t slot : {size_t{2}, size_t{4}}) {
    context.require_rank(slot, 2);
    if (!context.shape(slot).has_rank()) continue;
    same_extent(context, batch, context.shape(slot)[0], "batch");
    same_extent(context, hidden, context.shape(slot)[1], "hidden");
  }
  context.set_output(0, context.dtype(0), sums);
  context.set_output(1, context.dtype(0), context.shape(2));
  context.set_output(2, context.dtype(0), context.shape(2));
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// One sequence: everything in f64, element by element.
class Sequence {
 public:
  Sequence(int64_t length, int64_t hidden, const std::vector<double>& r) : length_(length), hidden_(hidden), r_(r) {}

  // `at` gives the position of step t in memory. gh and gc become the gradients of the first states.
  template <class At>
  void run(const At& at, const double* sums, std::vector<double> c, const double* gy, std::vector<double>& gh,
           std::vector<double>& gc, double* gsums) const {
    std::vector<std::vector<double>> before;
    for (int64_t t = 0; t < length_; ++t) {
      before.push_back(c);
      const double* s = sums + at(t) * kGates * hidden_;
      for (int64_t j = 0; j < hidden_; ++j) c[index(j)] = next_cell(s, j, c[index(j)]);
    }
    for (int64_t t = length_; t-- > 0;) {
      for (int64_t j = 0; j < hidden_; ++j) gh[index(j)] += gy[at(t) * hidden_ + j];
      double* g = gsums + at(t) * kGates * hidden_;
      for (int64_t j = 0; j < hidden_; ++j) {
        back(sums + at(t) * kGates * hidden_, j, before[index(t)][index(j)], gh[index(j)], gc[index(j)], g);
      }
      for (int64_t j = 0; j < hidden_; ++j) {
        gh[index(j)] = 0;
        for (int64_t k = 0; k < kGates * hidden_; ++k) gh[index(j)] += g[k] * r_[index(k * hidden_ + j)];
      }
    }
  }

 private:
  static size_t index(int64_t i) { return static_cast<size_t>(i); }

  double next_cell(const double* s, int64_t j, double c) const {
    return sigmoid_of(s[2 * hidden_ + j]) * c + sigmoid_of(s[j]) * std::tanh(s[3 * hidden_ + j]);
  }

  void back(const double* s, int64_t j, double c, double gh, double& gc, double* g) const {
    const double i = sigmoid_of(s[j]), o = sigmoid_of(s[hidden_ + j]), f = sigmoid_of(s[2 * hidden_ + j]);
    const double n = std::tanh(s[3 * hidden_ + j]), y = std::tanh(f * c + i * n);
    const double dc = gc + gh * o * (1 - y * y);
    g[j] = dc * n * i * (1 - i);
    g[hidden_ + j] = gh * y * o * (1 - o);
    g[2 * hidden_ + j] = dc * c * f * (1 - f);
    g[3 * hidden_ + j] = dc * i * (1 - n * n);
    gc = dc * f;
  }

  int64_t length_, hidden_;
  const std::vector<double>& r_;
};

void reference(const OpCall& call) {
  const int64_t length = call.input(0).dim(0), batch = call.input(0).dim(1), hidden = call.input(1).dim(1);
  const std::vector<double> sums = real_values(call.input(0)), r = real_values(call.input(1)),
                            c = real_values(call.input(2)), gy = real_values(call.input(3)),
                            last = real_values(call.input(4));
  std::vector<double> gsums(sums.size()), first_h, first_c;
  const bool reverse = call.attributes.flag("reverse");
  const Sequence sequence(length, hidden, r);
  for (int64_t b = 0; b < batch; ++b) {
    const auto at = [&](int64_t t) { return (reverse ? length - 1 - t : t) * batch; };
    const auto row = [&](const std::vector<double>& rows) {
      return std::vector<double>(rows.begin() + b * hidden, rows.begin() + (b + 1) * hidden);
    };
    std::vector<double> gh(static_cast<size_t>(hidden), 0.0), gc = row(last);
    sequence.run(at, sums.data() + b * kGates * hidden, row(c), gy.data() + b * hidden, gh, gc,
                 gsums.data() + b * kGates * hidden);
    first_h.insert(first_h.end(), gh.begin(), gh.end());
    first_c.insert(first_c.end(), gc.begin(), gc.end());
  }
  store_reals(gsums, call.output(0));
  if (call.has_output(1)) store_reals(first_h, call.output(1));
  if (call.has_output(2)) store_reals(first_c, call.output(2));
}

// The gates of one position, [batch, hidden] each.
struct Gates {
  explicit Gates(const Var& sums, int64_t hidden) {
    const auto piece = [&](int64_t k) { return slice(sums, {k * hidden}, {(k + 1) * hidden}, {1}); };
    i = sigmoid(piece(0)), o = sigmoid(piece(1)), f = sigmoid(piece(2)), n = tanh(piece(3));
  }
  Var i, o, f, n;
};

Type without_first(const Var& x) {
  return Type(x.dtype(), Shape(std::vector<Dim>(x.shape().dims().begin() + 1, x.shape().dims().end())));
}

Var add_input(Graph& body, const Type& type) { return Var(body, body.add_input(type)); }

// c goes on by a position; what it was before comes out.
Graph forward_body(const Var& sums, const Var& c0, int64_t hidden) {
  Graph body("cells");
  const Var c = add_input(body, c0.type()), s = add_input(body, without_first(sums));
  const Gates gates(s, hidden);
  body.add_output((gates.f * c + gates.i * gates.n).id());
  body.add_output(identity(c).id());
  return body;
}

Graph backward_body(const DecomposeContext& context, const Var& cells, int64_t hidden) {
  Graph body("gradients");
  const std::vector<Var>& in = context.inputs;
  const Var gh = add_input(body, in[2].type()), gc = add_input(body, in[2].type());
  const Var s = add_input(body, without_first(in[0])), c = add_input(body, without_first(cells));
  const Var gy = add_input(body, without_first(in[3])), r = add_input(body, in[1].type());
  const Gates g(s, hidden);
  const Var y = tanh(g.f * c + g.i * g.n), flow = gh + gy;
  const Var dc = gc + flow * g.o * (1 - y * y);
  const Var gsums = concat(
      {dc * g.n * g.i * (1 - g.i), flow * y * g.o * (1 - g.o), dc * c * g.f * (1 - g.f), dc * g.i * (1 - g.n * g.n)},
      1);
  body.add_output(matmul(gsums, r).id());
  body.add_output((dc * g.f).id());
  body.add_output(gsums.id());
  return body;
}

std::vector<Var> decompose(DecomposeContext& context) {
  const Var &sums = context.inputs[0], &r = context.inputs[1], &c0 = context.inputs[2];
  AG_CHECK_USER(r.shape().has_rank() && r.shape()[1].is_known(), UnsupportedError,
                "[lstm_gates_grad] r: expected known extents, got {}", to_string(r.shape()));
  const int64_t hidden = r.dim(1), reverse = context.attributes.integer("reverse");
  const auto directions = [](size_t scanned, int64_t in, int64_t out) {
    return Attributes{{"scan_input_directions", std::vector<int64_t>(scanned, in)},
                      {"scan_output_directions", std::vector<int64_t>{out}}};
  };
  const Var cells = scan({c0}, {sums}, forward_body(sums, c0, hidden), {}, directions(1, reverse, reverse)).back();
  const std::vector<Var> outputs =
      scan({c0 * 0, context.inputs[4]}, {sums, cells, context.inputs[3]}, backward_body(context, cells, hidden), {r},
           directions(3, 1 - reverse, 1 - reverse));
  return {outputs[2], outputs[0], outputs[1]};
}

OpCost cost(const CostContext& context) {
  constexpr double kOpsPerGate = 30;
  const auto sums = static_cast<double>(*context.inputs[0].shape().num_elements());
  const auto hidden = static_cast<double>(context.inputs[1].shape().static_dims()[1]);
  return {.flops = sums * (2 * hidden + kOpsPerGate), .bytes = moved_bytes(context)};
}

OpSample sample(Random& random) {
  const int64_t length = draw(random, 1, 3), batch = draw(random, 1, 3), hidden = draw(random, 1, 3);
  const Dims states{batch, hidden};
  return {
      .inputs = {draw_tensor(random, DType::f32, {length, batch, kGates * hidden}),
                 draw_tensor(random, DType::f32, {kGates * hidden, hidden}), draw_tensor(random, DType::f32, states),
                 draw_tensor(random, DType::f32, {length, batch, hidden}), draw_tensor(random, DType::f32, states)},
      .attributes = {{"reverse", draw(random, 0, 1)}},
      .num_outputs = 3};
}

}  // namespace

std::vector<Var> lstm_gates_grad(Var sums, Var r, Var c, Var gy, Var gc, bool reverse) {
  return apply_all(lstm_gates_grad_def(), {sums, r, c, gy, gc}, {{"reverse", int64_t{reverse ? 1 : 0}}}, 3);
}

const OpDef& lstm_gates_grad_def() {
  static const OpDef def{
      .name = "lstm_gates_grad",
      .doc = "What flows into the sums of the gates of an LSTM layer, from the last position to the first.",
      .inputs = {{"sums", "T", "[length, batch, 4 * hidden]: W x + R h + b of gates i, o, f, c."},
                 {"r", "T", "[4 * hidden, hidden]."},
                 {"c", "T", "[batch, hidden], before the first position."},
                 {"gy", "T", "[length, batch, hidden]: what flows into each h."},
                 {"gc", "T", "[batch, hidden]: what flows into the last c."}},
      .outputs = {{"gsums", "T", "Shape of sums."},
                  {"gh0", "T", "[batch, hidden]: what flows into the first h."},
                  {"gc0", "T", "[batch, hidden]: what flows into the first c."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = {{"reverse", AttributeType::integer, "1: the layer goes from the last position to the first.",
                      int64_t{0}}},
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .cost = cost,
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
