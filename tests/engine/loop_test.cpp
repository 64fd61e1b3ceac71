// Loops and scans, through compile() on every device: random bodies against an interpreter that knows nothing of plans,
// passes or sessions, and what is special about them one by one.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "autograph/verify.h"
#include "conformance/interpreter.h"
#include "engine/built_in_devices.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/host_devices.h"

namespace autograph {
namespace {

constexpr int64_t kRows = 2, kWidth = 5;

int num_rounds() {
  const char* text = std::getenv("AG_LOOP_ROUNDS");
  return text ? std::atoi(text) : 150;
}

// A loop or scan drawn from a seed, its values small so that long runs stay finite.
class RandomLoop {
 public:
  explicit RandomLoop(uint64_t seed) : random_(seed) {}

  Graph make() {
    is_scan_ = one_in(3);
    num_states_ = draw(random_, one_in(6) ? 0 : 1, 3);
    num_stacks_ = draw(random_, num_states_ == 0 ? 1 : 0, 2);
    body_ = std::make_shared<Graph>("body");
    add_formal_inputs();
    add_captures();
    const int nodes = static_cast<int>(draw(random_, 1, 8));
    for (int k = 0; k < nodes; ++k) pool_.push_back(draw_node());
    finish_body();
    return std::move(graph_);
  }

  const std::vector<Datum>& inputs() const { return inputs_; }

 private:
  bool one_in(int64_t n) { return draw(random_, 1, n) == 1; }
  Var pick(const std::vector<Var>& from) {
    return from[static_cast<size_t>(draw(random_, 0, static_cast<int64_t>(from.size()) - 1))];
  }

  // A value of the graph around: a constant, or an input of a run.
  Var outer(const Tensor& value, const std::string& name) {
    if (one_in(2)) return constant(graph_, value, name);
    inputs_.emplace_back(value);
    return input(graph_, value.dtype(), Shape::of(value.dims()), name);
  }

  Tensor matrix(const Dims& dims) { return draw_tensor(random_, DType::f32, dims, -0.5, 0.5); }

  void add_formal_inputs() {
    turns_ = draw(random_, 0, 7);
    if (!is_scan_) {
      const bool has_limit = !one_in(4);
      node_inputs_.push_back(has_limit ? outer(Tensor::scalar(turns_), "limit") : Var());
      node_inputs_.push_back(one_in(2) ? Var() : outer(Tensor::scalar(!one_in(8)), "condition"));
      turn_ = input(*body_, DType::i64, {}, "turn");
      condition_ = input(*body_, DType::boolean, {}, "condition");
      limit_in_body_ = has_limit ? draw(random_, 0, 9) : turns_;
    }
    for (int64_t k = 0; k < num_states_; ++k) {
      node_inputs_.push_back(outer(matrix({kRows, kWidth}), "state" + std::to_string(k)));
      states_.push_back(input(*body_, DType::f32, {kRows, kWidth}, "state"));
    }
    pool_ = states_;
    if (!is_scan_) return;
    num_scans_ = draw(random_, 1, 2);
    for (int64_t k = 0; k < num_scans_; ++k) {
      const int64_t axis = draw(random_, 0, 2);
      Dims dims{kRows, kWidth};
      dims.insert(dims.begin() + axis, turns_);
      axes_.push_back(one_in(2) ? axis : axis - 3);
      directions_.push_back(draw(random_, 0, 1));
      node_inputs_.push_back(outer(matrix(dims), "scanned" + std::to_string(k)));
      pool_.push_back(input(*body_, DType::f32, {kRows, kWidth}, "slice"));
    }
  }

  void add_captures() {
    const auto capture = [&](const Tensor& value, Shape shape) {
      node_inputs_.push_back(outer(value, "captured" + std::to_string(num_captures_++)));
      return input(*body_, value.dtype(), std::move(shape), "captured");
    };
    if (one_in(2)) weights_.push_back(capture(matrix({kWidth, kWidth}), {kWidth, kWidth}));
    if (pool_.empty() || one_in(2)) pool_.push_back(capture(matrix({kRows, kWidth}), {kRows, kWidth}));
    if (!is_scan_ && one_in(2)) rows_ = capture(matrix({10, kRows, kWidth}), {10, kRows, kWidth});
  }

  Var draw_node() {
    const Var a = pick(pool_);
    switch (draw(random_, 0, 7)) {
      case 0: return add(a, pick(pool_));
      case 1: return mul(a, pick(pool_));
      case 2: return tanh(sub(a, pick(pool_)));
      case 3: return weights_.empty() ? sigmoid(a) : matmul(a, pick(weights_));
      case 4: return rows_.is_valid() ? gather(rows_, turn_, 0) : relu(a);
      case 5: return is_scan_ ? a : add(a, mul(cast(turn_, DType::f32), constant(*body_, Tensor::scalar(0.01F))));
      case 6: return transpose(reshape(a, {kWidth, kRows}), {1, 0});
      default: return weights_.empty() ? tanh(a) : matmul(a, sigmoid(pick(weights_)));
    }
  }

  Var next_condition() {
    const Var below = less(turn_, constant(*body_, Tensor::scalar(limit_in_body_ - 1)));
    if (num_states_ == 0 || one_in(2)) return one_in(3) && has_limit() ? condition_ : below;
    const Var sum = reduce_sum(states_.front(), {0, 1}, false);
    return logical_and(below, less(sum, constant(*body_, Tensor::scalar(1.0F))));
  }

  bool has_limit() const { return node_inputs_.front().is_valid(); }

  void finish_body() {
    Attributes attributes{{"num_captures", num_captures_}};
    if (!is_scan_) body_->add_output(next_condition().id());
    for (int64_t k = 0; k < num_states_; ++k) {
      // Now and then a state goes on as it is, or changes places with another.
      const Var next = one_in(5) ? pick(states_) : tanh(pick(pool_));
      body_->add_output(next.id());
    }
    std::vector<int64_t> out_axes, out_directions;
    for (int64_t k = 0; k < num_stacks_; ++k) {
      body_->add_output(!is_scan_ && one_in(4) ? turn_.id() : pick(pool_).id());
      out_axes.push_back(draw(random_, -3, 2));
      out_directions.push_back(draw(random_, 0, 1));
    }
    if (is_scan_) {
      attributes.set("num_scan_inputs", num_scans_);
      attributes.set("scan_input_axes", axes_);
      attributes.set("scan_input_directions", directions_);
      if (num_stacks_ > 0) attributes.set("scan_output_axes", out_axes);
      if (num_stacks_ > 0) attributes.set("scan_output_directions", out_directions);
    }
    attributes.set("body", GraphRef(body_));
    std::vector<ValueId> ids;
    for (const Var& v : node_inputs_) ids.push_back(v.is_valid() ? v.id() : ValueId{});
    const NodeId node = graph_.add_node(get_op(is_scan_ ? "scan" : "loop"), ids, attributes,
                                        {{}, static_cast<int>(num_states_ + num_stacks_)});
    for (const ValueId v : graph_.node(node).outputs()) graph_.add_output(v);
  }

  Random random_;
  Graph graph_;
  std::shared_ptr<Graph> body_;
  bool is_scan_ = false;
  int64_t num_states_ = 0, num_stacks_ = 0, num_scans_ = 0, num_captures_ = 0, turns_ = 0, limit_in_body_ = 0;
  std::vector<int64_t> axes_, directions_;
  std::vector<Var> node_inputs_, states_, pool_, weights_;
  Var turn_, condition_, rows_;
  std::vector<Datum> inputs_;
};

TEST(Loops, RandomBodiesGiveWhatAnInterpreterGives) {
  for (int round = 0; round < num_rounds(); ++round) {
    RandomLoop loop(static_cast<uint64_t>(round));
    const Graph graph = loop.make();
    const std::vector<Datum> expected = tests::interpret(graph, loop.inputs());
    for (const bool optimizes : {false, true}) {
      CompileOptions options;
      options.device = "cpu";
      options.threads = 1 + round % 2;
      options.expert.use_passes = optimizes;
      const Executable program = compile(graph, options);
      // Twice, since buffers of the first run are used again.
      for (int run = 0; run < 2; ++run) {
        ASSERT_EQ(difference(program.run(loop.inputs()), expected), "") << "seed " << round << ", passes " << optimizes;
      }
    }
  }
}

// ---- What exporters write --------------------------------------------------------------------------------------

// An LSTM as keras and tf2onnx write it: a counter beside the turn, the weights carried, the condition from a length
// that is read off a shape, and the sequence captured.
Graph keras_lstm(int64_t input_width, int64_t hidden, Random& random) {
  auto body = std::make_shared<Graph>();
  const Var turn = input(*body, DType::i64, {}, "turn");
  input(*body, DType::boolean, {}, "condition");
  const Var counter = input(*body, DType::i32, {}, "counter");
  const Var h = input(*body, DType::f32, Shape{Dim::unknown(), hidden}, "h");
  const Var c = input(*body, DType::f32, Shape{Dim::unknown(), hidden}, "c");
  const Var limit = input(*body, DType::i32, {}, "limit");
  const Var w = input(*body, DType::f32, {input_width, 4 * hidden}, "w");
  const Var r = input(*body, DType::f32, {hidden, 4 * hidden}, "r");
  const Var b = input(*body, DType::f32, {4 * hidden}, "b");
  const Var sequence = input(*body, DType::f32, Shape::of_rank(3), "sequence");
  const Var sum = add(add(matmul(gather(sequence, counter, 0), w), matmul(h, r)), b);
  const std::vector<Var> gates = split_evenly(sum, 4, 1);
  const Var next_c = add(mul(sigmoid(gates[1]), c), mul(sigmoid(gates[0]), tanh(gates[2])));
  const Var next_h = mul(sigmoid(gates[3]), tanh(next_c));
  const Var next = add(counter, constant(*body, Tensor::scalar(int32_t{1})));
  const auto as_float = [](Var v) { return cast(v, DType::f32); };
  const Var goes_on = logical_and(less(as_float(next), as_float(limit)), less(as_float(turn), as_float(limit)));
  for (const Var& v : {goes_on, next, identity(next_h), next_c, limit, w, r, b, next_h}) body->add_output(v.id());

  Graph graph;
  const Var x = input(graph, DType::f32, Shape{Dim::symbol("batch"), Dim::symbol("length"), input_width}, "x");
  const Var by_time = transpose(x, {1, 0, 2});
  const Var length = squeeze(cast(slice(shape(by_time), {0}, {1}, {0}), DType::i32), {0});
  const Var batch = slice(shape(x), {0}, {1}, {0});
  const Var zeros = apply(get_op("expand"), {constant(graph, Tensor::scalar(0.0F)),
                                             concat({batch, constant(graph, Tensor::vector({hidden}))}, 0)});
  const auto weight = [&](const Dims& dims) {
    return constant(graph, draw_tensor(random, DType::f32, dims, -0.5, 0.5));
  };
  const Var first = constant(graph, Tensor::scalar(int32_t{0}));
  const std::vector<Var> inputs{cast(length, DType::i64),
                                less(constant(graph, Tensor::scalar(0.0F)), cast(length, DType::f32)),
                                first,
                                zeros,
                                zeros,
                                length,
                                weight({input_width, 4 * hidden}),
                                weight({hidden, 4 * hidden}),
                                weight({4 * hidden}),
                                by_time};
  const Attributes attributes{{"body", GraphRef(body)}, {"num_captures", int64_t{1}}};
  const std::vector<Var> results = apply_all(get_op("loop"), inputs, attributes, 8);
  graph.add_output(transpose(results[7], {1, 0, 2}).id(), "y");
  graph.add_output(results[2].id(), "last_c");
  graph.add_output(results[0].id(), "count");
  return graph;
}

TEST(Loops, KerasLstmBecomesOneNodeForEveryLength) {
  Random random(5);
  const Graph graph = keras_lstm(6, 16, random);
  CompileOptions options;
  options.device = "cpu";
  options.profile = true;
  const Executable program = compile(graph, options);
  for (const auto& [batch, length] : {std::pair<int64_t, int64_t>{1, 7}, {3, 7}, {3, 1}, {1, 30}}) {
    const std::vector<Datum> inputs{draw_tensor(random, DType::f32, {batch, length, 6}, -1, 1)};
    ASSERT_EQ(difference(program.run(inputs), tests::interpret(graph, inputs)), "") << batch << " x " << length;
    const std::string plan = program.print_plan();
    EXPECT_NE(plan.find(" lstm "), std::string::npos) << plan;
    EXPECT_EQ(plan.find("evaluate"), std::string::npos) << plan;
  }
}

TEST(Loops, ALengthOfNothingGivesWhatWasThere) {
  Random random(6);
  const Graph graph = keras_lstm(6, 16, random);
  CompileOptions options;
  options.device = "cpu";
  const std::vector<Datum> inputs{Tensor::zeros(DType::f32, {2, 0, 6})};
  const std::vector<Datum> outputs = compile(graph, options).run(inputs);
  EXPECT_EQ(outputs[0].tensor().dims(), (Dims{2, 0, 16}));
  EXPECT_EQ(outputs[2].tensor().to_f64(), std::vector<double>{0});
}

// ---- Several at once -------------------------------------------------------------------------------------------

TEST(Loops, RunsAtTheSameTimeDoNotShareBuffers) {
  Random random(7);
  const Graph graph = keras_lstm(6, 16, random);
  CompileOptions options;
  options.device = "cpu";
  options.threads = 1;
  options.expert.disabled_passes = {"fuse_scanned_cell", "count_turns"};
  const Executable program = compile(graph, options);
  std::vector<std::vector<Datum>> inputs, expected;
  for (int k = 0; k < 4; ++k) {
    inputs.push_back({draw_tensor(random, DType::f32, {1 + k % 2, 9, 6}, -1, 1)});
    expected.push_back(tests::interpret(graph, inputs.back()));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t k = 0; k < inputs.size(); ++k) {
    threads.emplace_back([&, k] {
      for (int run = 0; run < 20; ++run) {
        if (!difference(program.run(inputs[k]), expected[k]).empty()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A state that grows by a row each turn, and a body that does some work on it.
TEST(Loops, AStateThatGrowsForManyTurns) {
  auto body = std::make_shared<Graph>();
  const Var turn = input(*body, DType::i64, {}, "turn");
  const Var condition = input(*body, DType::boolean, {}, "condition");
  const Var state = input(*body, DType::f32, Shape{Dim::unknown(), 3}, "state");
  const Var row = input(*body, DType::f32, {1, 3}, "row");
  body->add_output(condition.id());
  body->add_output(concat({tanh(state), mul(row, cast(turn, DType::f32))}, 0).id());
  Graph graph;
  const Var limit = input(graph, DType::i64, {}, "limit");
  const Var start = input(graph, DType::f32, {1, 3}, "start");
  const Attributes attributes{{"body", GraphRef(body)}, {"num_captures", int64_t{1}}};
  graph.add_output(apply_all(get_op("loop"), {limit, Var(), start, start}, attributes, 1)[0].id());
  for (const std::string& device : host_devices()) {
    CompileOptions options;
    options.device = device;
    const Executable program = compile(graph, options);
    for (const int64_t turns : {3, 40}) {
      const std::vector<Datum> inputs{Tensor::scalar(turns), Tensor::of<float>({1, 3}, {0.5, -1, 2})};
      EXPECT_EQ(difference(program.run(inputs), tests::interpret(graph, inputs)), "") << device << " " << turns;
    }
  }
}

// ---- Nested ----------------------------------------------------------------------------------------------------

// for i: for j in range(i): state = tanh(state w), with w captured through both.
TEST(Loops, LoopsInLoops) {
  const auto loop_inputs = [](Graph& g) {
    const Var turn = input(g, DType::i64, {}, "turn");
    return std::pair(turn, input(g, DType::boolean, {}, "condition"));
  };
  auto inner = std::make_shared<Graph>();
  const auto [inner_turn, inner_condition] = loop_inputs(*inner);
  const Var s = input(*inner, DType::f32, {2, 4}, "s");
  const Var w = input(*inner, DType::f32, {4, 4}, "w");
  inner->add_output(inner_condition.id());
  inner->add_output(tanh(matmul(s, sigmoid(w))).id());
  auto middle = std::make_shared<Graph>();
  const auto [turn, condition] = loop_inputs(*middle);
  const Var state = input(*middle, DType::f32, {2, 4}, "state");
  const Var weights = input(*middle, DType::f32, {4, 4}, "weights");
  const Attributes inside{{"body", GraphRef(inner)}, {"num_captures", int64_t{1}}};
  const Var next = apply_all(get_op("loop"), {turn, Var(), state, weights}, inside, 1)[0];
  for (const Var& v : {condition, next, next}) middle->add_output(v.id());
  Random random(8);
  Graph graph;
  const Var limit = input(graph, DType::i64, {}, "limit");
  const Var start = input(graph, DType::f32, {2, 4}, "start");
  const Var matrix = constant(graph, draw_tensor(random, DType::f32, {4, 4}, -1, 1));
  const Attributes outside{{"body", GraphRef(middle)}, {"num_captures", int64_t{1}}};
  for (const Var& v : apply_all(get_op("loop"), {limit, Var(), start, matrix}, outside, 2)) graph.add_output(v.id());
  for (const std::string& device : built_in_devices()) {
    CompileOptions options;
    options.device = device;
    const Executable program = compile(graph, options);
    for (const int64_t turns : {1, 5}) {
      const std::vector<Datum> inputs{Tensor::scalar(turns), draw_tensor(random, DType::f32, {2, 4}, -1, 1)};
      EXPECT_EQ(difference(program.run(inputs), tests::interpret(graph, inputs)), "") << device << " " << turns;
    }
  }
}

}  // namespace
}  // namespace autograph
