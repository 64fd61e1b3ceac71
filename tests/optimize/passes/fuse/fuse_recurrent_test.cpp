#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// How a model spells its cells.
struct Spelling {
  int64_t batch = 2, input = 3, hidden = 4, steps = 3;
  bool as_gemm = true;         // with the matrix transposed; else matmul and add
  bool one_product = true;     // a product for all gates and pieces of it
  bool slices = false;         // the pieces are slices
  bool swaps = false;          // summands and factors in the other order
  bool resets_product = true;  // GRU
  bool steps_towards = false;  // GRU: n + z * (h - n)
  bool zero_start = false;     // h and c begin as constants

  int64_t rows(bool of_x) const { return of_x ? input : hidden; }
};

Var sum_of(const Spelling& s, Var a, Var b) { return s.swaps ? add(b, a) : add(a, b); }
Var product_of(const Spelling& s, Var a, Var b) { return s.swaps ? mul(b, a) : mul(a, b); }

// Products of a vector with the matrices of all gates.
class Linear {
 public:
  Linear(Graph& graph, const Spelling& s, int64_t rows, int64_t gates, Random& random)
      : graph_(graph), s_(s), gates_(gates) {
    const int64_t products = s.one_product ? 1 : gates, columns = gates * s.hidden / products;
    for (int64_t k = 0; k < products; ++k) {
      const Dims dims = s.as_gemm ? Dims{columns, rows} : Dims{rows, columns};
      matrices_.push_back(constant(graph, draw_tensor(random, DType::f32, dims, -1, 1)));
      biases_.push_back(constant(graph, draw_tensor(random, DType::f32, {columns}, -1, 1)));
    }
  }

  std::vector<Var> operator()(Var x) const {
    std::vector<Var> results;
    for (size_t k = 0; k < matrices_.size(); ++k) {
      results.push_back(s_.as_gemm ? gemm(x, matrices_[k], biases_[k], {.transpose_b = true})
                                   : sum_of(s_, matmul(x, matrices_[k]), biases_[k]));
    }
    return s_.one_product ? pieces(results.front()) : results;
  }

  // What constant folding leaves for x = 0.
  std::vector<Var> of_zeros() const {
    std::vector<Var> results;
    for (const Var& bias : biases_) {
      const Tensor row = graph_.value(bias.id()).constant();  // not a reference: the graph grows
      const int64_t columns = row.dims()[0];
      Tensor rows = Tensor::zeros(DType::f32, {s_.batch, columns});
      for (int64_t at = 0; at < s_.batch * columns; ++at) {
        rows.mutable_data<float>()[at] = row.data<float>()[at % columns];
      }
      if (!s_.one_product) {
        results.push_back(constant(graph_, rows));
        continue;
      }
      for (int64_t g = 0; g < gates_; ++g) {
        Tensor piece = Tensor::zeros(DType::f32, {s_.batch, s_.hidden});
        for (int64_t at = 0; at < s_.batch * s_.hidden; ++at) {
          piece.mutable_data<float>()[at] = row.data<float>()[g * s_.hidden + at % s_.hidden];
        }
        results.push_back(constant(graph_, piece));
      }
    }
    return results;
  }

 private:
  std::vector<Var> pieces(Var whole) const {
    if (!s_.slices) return split(whole, std::vector<int64_t>(static_cast<size_t>(gates_), s_.hidden), 1);
    std::vector<Var> results;
    for (int64_t g = 0; g < gates_; ++g) {
      const int64_t end = g + 1 == gates_ ? 1 << 30 : (g + 1) * s_.hidden;
      results.push_back(slice(whole, {g * s_.hidden - gates_ * s_.hidden}, {end}, {-1}));
    }
    return results;
  }

  Graph& graph_;
  Spelling s_;
  int64_t gates_;
  std::vector<Var> matrices_, biases_;
};

struct State {
  Var h, c;
};

// A layer of cells with common weights.
class Layer {
 public:
  Layer(Graph& graph, const Spelling& s, bool is_lstm, Random& random, int64_t input = 0)
      : graph_(graph),
        s_(s),
        is_lstm_(is_lstm),
        from_x_(graph, s, input > 0 ? input : s.input, is_lstm ? 4 : 3, random),
        from_h_(graph, s, s.hidden, is_lstm ? 4 : 3, random) {}

  State start(const std::string& name) {
    if (!s_.zero_start) {
      const Var h = input(graph_, DType::f32, {s_.batch, s_.hidden}, name + "h");
      return {h, is_lstm_ ? input(graph_, DType::f32, {s_.batch, s_.hidden}, name + "c") : Var{}};
    }
    const Var zeros = constant(graph_, Tensor::zeros(DType::f32, {s_.batch, s_.hidden}));
    return {zeros, is_lstm_ ? zeros : Var{}};
  }

  State operator()(Var x, const State& state) const { return is_lstm_ ? lstm_step(x, state) : gru_step(x, state); }

 private:
  bool is_folded(Var h) const { return graph_.value(h.id()).is_constant(); }

  State lstm_step(Var x, const State& state) const {
    const auto a = from_x_(x), b = is_folded(state.h) ? from_h_.of_zeros() : from_h_(state.h);
    const auto gate = [&](size_t g) { return sum_of(s_, a[g], b[g]); };
    const Var kept = product_of(s_, sigmoid(gate(1)), state.c);
    const Var c = sum_of(s_, kept, product_of(s_, sigmoid(gate(0)), tanh(gate(2))));
    return {product_of(s_, sigmoid(gate(3)), tanh(c)), c};
  }

  State gru_step(Var x, const State& state) const {
    const auto a = from_x_(x), b = is_folded(state.h) ? from_h_.of_zeros() : from_h_(state.h);
    const Var r = sigmoid(sum_of(s_, a[0], b[0])), z = sigmoid(sum_of(s_, a[1], b[1]));
    const Var memory = s_.resets_product ? product_of(s_, r, b[2]) : from_h_(product_of(s_, r, state.h))[2];
    const Var n = tanh(sum_of(s_, a[2], memory));
    if (s_.steps_towards) return {sum_of(s_, product_of(s_, sub(state.h, n), z), n), {}};
    return {sum_of(s_, product_of(s_, sub(scalar_like(z, 1), z), n), product_of(s_, z, state.h)), {}};
  }

  Graph& graph_;
  Spelling s_;
  bool is_lstm_;
  Linear from_x_, from_h_;
};

// A network of one layer whose x are rows of one tensor; gives all h and the last state.
Graph unrolled(const Spelling& s, bool is_lstm) {
  Graph graph;
  Random random(5);
  Layer layer(graph, s, is_lstm, random);
  const Var xs = input(graph, DType::f32, {s.steps, s.batch, s.input}, "x");
  State state = layer.start("");
  for (int64_t t = 0; t < s.steps; ++t) {
    state = layer(gather(xs, constant(graph, Tensor::scalar(t))), state);
    graph.add_output(state.h.id(), "h" + std::to_string(t));
  }
  if (is_lstm) graph.add_output(state.c.id(), "c");
  return graph;
}

constexpr FloatTolerance kTolerance{.rtol = 1e-5, .atol = 1e-5};

size_t count(const Graph& graph, const std::string& op) {
  size_t found = 0;
  for (const NodeId id : graph.nodes()) found += graph.node(id).op().name == op ? 1 : 0;
  return found;
}

// Does only the node of the layer compute, and everything else move elements?
void expect_one_node(const Graph& after, const std::string& op) {
  EXPECT_EQ(count(after, op), 1u) << ops_of(after);
  const size_t moving = count(after, "reshape") + count(after, "split") + count(after, "gather");
  EXPECT_EQ(1 + moving, after.num_nodes()) << ops_of(after);
  EXPECT_LE(count(after, "gather"), 1u) << ops_of(after);  // of the only x
}

TEST(FuseRecurrent, FindsCellsInTheirSpellings) {
  Random random(3);
  for (int round = 0; round < 120; ++round) {
    Spelling s{.batch = draw(random, 1, 3), .input = draw(random, 1, 5), .hidden = draw(random, 1, 5)};
    s.steps = draw(random, 1, 4);
    s.as_gemm = draw(random, 0, 1) == 1;
    s.one_product = draw(random, 0, 1) == 1;
    s.slices = draw(random, 0, 1) == 1;
    s.swaps = draw(random, 0, 1) == 1;
    const bool is_lstm = draw(random, 0, 1) == 1;
    s.resets_product = draw(random, 0, 1) == 1;
    s.steps_towards = draw(random, 0, 1) == 1;
    s.zero_start = s.steps > 1 && s.resets_product && draw(random, 0, 1) == 1;
    SCOPED_TRACE(
        fmt::format("{} batch {} input {} hidden {} steps {} gemm {} one product {} slices {} swaps {} resets {} "
                    "zeros {}",
                    is_lstm ? "lstm" : "gru", s.batch, s.input, s.hidden, s.steps, s.as_gemm, s.one_product, s.slices,
                    s.swaps, s.resets_product, s.zero_start));
    expect_one_node(after_pass(fuse_recurrent, unrolled(s, is_lstm), true, kTolerance), is_lstm ? "lstm" : "gru");
  }
}

TEST(FuseRecurrent, JoinsWhatIsNotOneTensor) {
  Graph graph;
  Random random(5);
  const Spelling s;
  Layer layer(graph, s, true, random);
  State state = layer.start("");
  for (const std::string name : {"a", "b"}) {
    state = layer(input(graph, DType::f32, {s.batch, s.input}, name), state);
  }
  graph.add_output(state.h.id(), "h");
  const Graph after = after_pass(fuse_recurrent, graph, true, kTolerance);
  EXPECT_EQ(count(after, "lstm"), 1u);
  EXPECT_EQ(count(after, "concat"), 1u);
  EXPECT_EQ(count(after, "split"), 0u);  // only the last h is read
}

TEST(FuseRecurrent, StacksLayers) {
  for (const bool is_lstm : {true, false}) {
    Graph graph;
    Random random(5);
    const Spelling s;
    Layer first(graph, s, is_lstm, random), second(graph, s, is_lstm, random, s.hidden);
    const Var xs = input(graph, DType::f32, {s.steps, s.batch, s.input}, "x");
    State below = first.start("below"), above = second.start("above");
    for (int64_t t = 0; t < s.steps; ++t) {
      below = first(gather(xs, constant(graph, Tensor::scalar(t))), below);
      above = second(below.h, above);
    }
    graph.add_output(above.h.id(), "h");
    const Graph after = after_pass(fuse_recurrent, graph, true, kTolerance);
    EXPECT_EQ(count(after, is_lstm ? "lstm" : "gru"), 2u) << ops_of(after);
    EXPECT_EQ(count(after, "tanh"), 0u) << ops_of(after);
  }
}

// A decoder reads its own h: a node for each step.
TEST(FuseRecurrent, KeepsStepsApartThatReadTheirOwnResult) {
  for (const bool is_lstm : {true, false}) {
    Graph graph;
    Random random(5);
    const Spelling s{.input = 4, .hidden = 4};
    Layer layer(graph, s, is_lstm, random);
    State state = layer.start("");
    Var x = input(graph, DType::f32, {s.batch, s.input}, "x");
    for (int64_t t = 0; t < s.steps; ++t) {
      state = layer(x, state);
      x = exp(state.h);
    }
    graph.add_output(x.id(), "y");
    const Graph after = after_pass(fuse_recurrent, graph, true, kTolerance);
    EXPECT_EQ(count(after, is_lstm ? "lstm" : "gru"), 3u) << ops_of(after);
  }
}

TEST(FuseRecurrent, CutsWhereSomebodyReadsC) {
  Graph graph;
  Random random(5);
  const Spelling s;
  Layer layer(graph, s, true, random);
  const Var x = input(graph, DType::f32, {s.batch, s.input}, "x");
  State state = layer(x, layer.start(""));
  graph.add_output(state.c.id(), "c");
  state = layer(exp(x), layer(relu(x), state));
  graph.add_output(state.h.id(), "h");
  EXPECT_EQ(count(after_pass(fuse_recurrent, graph, true, kTolerance), "lstm"), 2u);
}

TEST(FuseRecurrent, DoesNotJoinCellsOfOtherWeights) {
  Graph graph;
  Random random(5);
  const Spelling s;
  Layer first(graph, s, true, random), second(graph, s, true, random);
  const Var x = input(graph, DType::f32, {s.batch, s.input}, "x");
  graph.add_output(second(exp(x), first(x, first.start(""))).h.id(), "h");
  EXPECT_EQ(count(after_pass(fuse_recurrent, graph, true, kTolerance), "lstm"), 2u);
}

// With a bias for each row of the batch the op has no form.
TEST(FuseRecurrent, LeavesAloneWhatHasNoForm) {
  const auto with_gate = [](const std::function<Var(Var)>& change, int64_t batch) {
    Graph graph;
    Random random(5);
    const Spelling s{.batch = batch};
    const Var x = input(graph, DType::f32, {batch, s.input}, "x"), h = input(graph, DType::f32, {batch, s.hidden}, "h");
    const Var c = input(graph, DType::f32, {batch, s.hidden}, "c");
    Linear from_x(graph, s, s.input, 4, random), from_h(graph, s, s.hidden, 4, random);
    const auto a = from_x(x), b = from_h(h);
    const Var next =
        add(mul(sigmoid(change(add(a[0], b[0]))), c), mul(sigmoid(add(a[1], b[1])), tanh(add(a[2], b[2]))));
    graph.add_output(mul(sigmoid(add(a[3], b[3])), tanh(next)).id(), "h");
    return graph;
  };
  Random random(9);
  const Tensor rows = draw_tensor(random, DType::f32, {2, 4}), row = draw_tensor(random, DType::f32, {1, 4});
  expect_untouched(fuse_recurrent, with_gate([&](Var v) { return add(v, constant(v.graph(), rows)); }, 2));
  expect_untouched(fuse_recurrent, with_gate([&](Var v) { return relu(v); }, 2));
  expect_untouched(fuse_recurrent, with_gate([&](Var v) { return add(v, v); }, 2));
  EXPECT_EQ(count(after_pass(fuse_recurrent, with_gate([&](Var v) { return add(v, constant(v.graph(), row)); }, 2),
                             true, kTolerance),
                  "lstm"),
            1u);
}

// What torch exports for LSTMCell and GRUCell in a loop, through all passes on the processor's own kernels.
TEST(FuseRecurrent, RunsAsTheReferenceDoes) {
  Random random(21);
  for (const bool is_lstm : {true, false}) {
    for (const bool zero_start : {true, false}) {
      const Graph graph =
          unrolled({.batch = 1, .input = 20, .hidden = 24, .steps = 6, .zero_start = zero_start}, is_lstm);
      CompileOptions plain;
      plain.device = "reference";
      plain.expert.use_passes = false;
      const auto inputs = random_inputs(graph, random);
      const Executable fast = compile(graph);
      EXPECT_EQ(difference(fast.run(inputs), compile(graph, plain).run(inputs), kTolerance), "");
    }
  }
}

}  // namespace
}  // namespace autograph
