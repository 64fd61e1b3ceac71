// Gradients through sequences and optionals, against central differences in f64.
#include <gtest/gtest.h>

#include "autodiff/gradient_check.h"
#include "autograph/autodiff.h"
#include "autograph/compile.h"
#include "autograph/eager.h"
#include "autograph/error.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/sequence.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "autograph/text.h"
#include "ops/sample.h"
#include "support/message_of.h"

namespace autograph {
namespace {

// A case in the making: inputs with drawn elements, all of them wanted.
class CaseBuilder {
 public:
  explicit CaseBuilder(uint64_t seed) : random(seed) {
    test.graph = std::make_shared<Graph>("sequences");
    test.is_f64 = true;
  }

  Var input(const Dims& dims) {
    const Tensor elements = draw_tensor(random, DType::f64, dims, -1, 1);
    const ValueId id = test.graph->add_input(elements.type(), "x" + std::to_string(test.wanted.size()));
    test.inputs.emplace_back(elements);
    test.wanted.emplace_back(*test.graph, id);
    return test.wanted.back();
  }
  Var number(int64_t value) { return constant(*test.graph, Tensor::scalar(value)); }

  void check(const std::vector<Var>& outputs) {
    test.outputs = outputs;
    const std::string text = print_text(*test.graph);
    EXPECT_EQ(check_gradients(test, random, true), "") << text;
  }

  Random random;
  GradientCase test;
};

TEST(SequenceGradient, OfWhatIsPutInAndTakenOut) {
  for (const int64_t position : {0, 2, -1, -3}) {
    CaseBuilder c(static_cast<uint64_t>(position + 3));
    const Var list = sequence_construct({c.input({2}), sin(c.input({2})), c.input({2})});
    const Var x = sequence_at(list, c.number(position)), y = sequence_at(list, c.number(1));
    c.check({x * x, x * y});
  }
}

TEST(SequenceGradient, OfElementsOfDifferentShapes) {
  CaseBuilder c(1);
  const Var a = c.input({2}), b = c.input({3});
  const Var list = sequence_construct({a * a, b * b});
  c.check({reduce_sum(reshape(sequence_at(list, c.number(1)), {3}))});
}

TEST(SequenceGradient, OfInsertingAndErasing) {
  for (const int64_t position : {0, 1, 2, -1, -2}) {
    CaseBuilder c(static_cast<uint64_t>(position + 2));
    const Var list = sequence_construct({c.input({2}), c.input({2})});
    const Var longer = sequence_insert(list, exp(c.input({2})), c.number(position));
    const Var appended = sequence_insert(longer, c.input({2}));
    const Var shorter = sequence_erase(sequence_erase(appended, c.number(position == 2 ? 0 : position)));
    const Var y = concat_from_sequence(shorter, 0);
    c.check({y * y, sequence_at(longer, c.number(1))});
  }
}

TEST(SequenceGradient, OfSplittingAndJoining) {
  for (const int64_t axis : {0, 1, -1}) {
    for (const bool keep_dims : {false, true}) {
      CaseBuilder c(static_cast<uint64_t>(axis + 1));
      const Var pieces = split_to_sequence(c.input({3, 4}), {}, axis, keep_dims);
      const Var y = concat_from_sequence(pieces, axis, !keep_dims);
      c.check({y * y * y, sequence_at(pieces, c.number(1))});
    }
    CaseBuilder sized(7);
    const Var sizes = constant(*sized.test.graph, Tensor::vector(axis == 0 ? Dims{1, 2} : Dims{3, 1}));
    const Var y = concat_from_sequence(split_to_sequence(sized.input({3, 4}), sizes, axis), axis);
    sized.check({y * y});
  }
}

// Elements of two lists, a tensor that every call reads whole, and a captured one.
TEST(SequenceGradient, OfAMap) {
  Graph body("map");
  const auto body_input = [&](const Shape& shape) { return Var(body, body.add_input(Type(DType::f64, shape))); };
  const Var a = body_input({2}), b = body_input({2}), whole = body_input({2, 2}), captured = body_input({2});
  const Var product = reshape(matmul(reshape(a * b, {1, 2}), whole), {2});
  body.add_output((product * captured).id());
  body.add_output(sin(a).id());
  CaseBuilder c(3);
  const Var first = sequence_construct({c.input({2}), c.input({2}), c.input({2})});
  const Var second = sequence_construct({c.input({2}), c.input({2}), c.input({2})});
  const std::vector<Var> lists = sequence_map(first, {second, c.input({2, 2})}, body, {c.input({2})});
  const Var y = concat_from_sequence(lists[0], 0), z = concat_from_sequence(lists[1], 0, true);
  c.check({y * y, z, sequence_at(first, c.number(0))});
}

// What no call reads gets a gradient of 0.
TEST(SequenceGradient, OfAMapOverNothing) {
  Graph body("map");
  const auto body_input = [&](const Shape& shape) { return Var(body, body.add_input(Type(DType::f64, shape))); };
  const Var a = body_input({2}), captured = body_input({2});
  body.add_output((a * captured).id());
  CaseBuilder c(5);
  const Var nothing = sequence_erase(sequence_construct({c.input({2})}));
  const Var list = sequence_map(nothing, {}, body, {c.input({2})})[0];
  const Var y = concat_from_sequence(sequence_insert(list, c.input({2})), 0);
  c.check({y * y});
}

// The branch that does not read the list gives zeros.
TEST(SequenceGradient, OfBranches) {
  for (const bool is_taken : {true, false}) {
    CaseBuilder c(6);
    const Var list = sequence_construct({c.input({2}), c.input({2})}), x = c.input({2});
    Graph reads("reads"), ignores("ignores");
    for (Graph* body : {&reads, &ignores}) {
      const Var inside(*body, body->add_input(list.type())), y(*body, body->add_input(x.type()));
      const Var at = constant(*body, Tensor::scalar<int64_t>(1));
      body->add_output((body == &reads ? sequence_at(inside, at) * y : sin(y)).id());
    }
    const Var condition = constant(*c.test.graph, Tensor::scalar(is_taken));
    const Var y = if_else(condition, reads, ignores, {list, x})[0];
    c.check({y * y});
  }
}

TEST(SequenceGradient, OfOptionals) {
  CaseBuilder c(4);
  const Var x = c.input({2, 3});
  const Var held = optional_of(sin(x));
  const Var list = optional_of(sequence_construct({x, x * x}));
  c.check({optional_get_element(held) * 2.0, optional_get_element(held) * x, optional_get_element(x),
           sequence_at(optional_get_element(list), c.number(1))});
}

TEST(SequenceGradient, IsTheSameInDefineByRun) {
  const Var x = variable(Tensor::of<double>({2}, {1, 2})), y = variable(Tensor::of<double>({2}, {3, 4}));
  const Var list = sequence_construct({x, y});
  const Var at = eager(Tensor::scalar<int64_t>(1));
  const Var z = concat_from_sequence(list, 0) * 2.0;
  backward(reduce_sum(z * z) + reduce_sum(sequence_at(list, at)));
  EXPECT_EQ(gradient(x).known()->to_f64(), (std::vector<double>{8, 16}));
  EXPECT_EQ(gradient(y).known()->to_f64(), (std::vector<double>{25, 33}));
}

// The body of a loop over lists: (turn, condition, list, state, captured) -> (condition, list with one more, state).
Graph adding_body(const Type& list) {
  Graph body("adding");
  body.add_input(Type(DType::i64, {}));
  const ValueId condition = body.add_input(Type(DType::boolean, {}));
  const Var grown(body, body.add_input(list)), state = input(body, DType::f64, {2}, "state");
  const Var captured = input(body, DType::f64, {2}, "captured");
  body.add_output(condition);
  body.add_output(sequence_insert(grown, state * captured).id());
  body.add_output(sin(state + captured).id());
  return body;
}

// The gradients of both losses by the compiled graph.
void expect_same_gradients(CaseBuilder& c, const Var& of_lists, const Var& of_tensors) {
  Graph& graph = *c.test.graph;
  const size_t count = c.test.wanted.size();
  for (const Var& loss : {of_lists, of_tensors}) {
    for (const Var& gradient : grad(loss, c.test.wanted)) graph.add_output(gradient.id());
  }
  const Outputs outputs = compile(graph).run(c.test.inputs);
  for (size_t k = 0; k < count; ++k) {
    const std::vector<double> got = outputs[k].tensor().to_f64(), right = outputs[count + k].tensor().to_f64();
    ASSERT_EQ(got.size(), right.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], right[i], 1e-12) << "input " << k << " at " << i;
  }
}

// What ONNX makes of appending to a list in a loop.
TEST(SequenceGradient, OfListsThatLoopsAddTo) {
  CaseBuilder c(1);
  const Var state = c.input({2}), captured = c.input({2});
  // An empty list whose elements have a known shape.
  const Var none = split_to_sequence(constant(*c.test.graph, Tensor::zeros(DType::f64, {0, 2})), {}, 0, false);
  const Graph body = adding_body(Type::sequence(Type(DType::f64, {2})));
  const std::vector<Var> outputs = loop(c.number(2), {}, {none, state}, body, {captured});
  const Var joined = concat_from_sequence(outputs[0], 0, false);
  const Var next = sin(state + captured), second = next * captured;
  const Var expected = concat({state * captured, second}, 0);
  const Var weights = concat({captured, state}, 0);
  expect_same_gradients(c, reduce_sum(joined * weights) + reduce_sum(outputs[1]),
                        reduce_sum(expected * weights) + reduce_sum(sin(next + captured)));
}

// Nothing says which shape the elements of an empty list have: neither the list nor what the loop gives.
TEST(SequenceGradient, OfListsThatBeginEmpty) {
  for (const bool says_shape : {true, false}) {
    CaseBuilder c(1);
    const Var state = c.input({2}), captured = c.input({2});
    const Type element(DType::f64, says_shape ? Shape{2} : Shape::unknown());
    const Var none = sequence_empty(*c.test.graph, DType::f64);
    const std::vector<Var> outputs =
        loop(c.number(2), {}, {none, state}, adding_body(Type::sequence(element)), {captured});
    const Var joined = reshape(concat_from_sequence(outputs[0], 0, false), {4});
    const Var next = sin(state + captured);
    const Var expected = concat({state * captured, next * captured}, 0);
    const Var weights = concat({captured, state}, 0);
    expect_same_gradients(c, reduce_sum(joined * weights) + reduce_sum(outputs[1]),
                          reduce_sum(expected * weights) + reduce_sum(sin(next + captured)));
  }
}

// Each turn has a list of its own, which begins empty.
TEST(SequenceGradient, OfListsThatBeginEmptyInEachTurn) {
  CaseBuilder c(2);
  const Var x = c.input({2}), factor = c.input({2});
  Graph body("turn");
  body.add_input(Type(DType::i64, {}));
  body.add_output(body.add_input(Type(DType::boolean, {})));
  const Var state = input(body, DType::f64, {2}, "state"), captured = input(body, DType::f64, {2}, "captured");
  const Var list = sequence_insert(sequence_insert(sequence_empty(body, DType::f64), state * captured), sin(state));
  body.add_output(reshape(reduce_sum(concat_from_sequence(list, 0, true), {0}, false), {2}).id());
  const Var last = loop(c.number(2), {}, {x}, body, {factor})[0];
  const Var once = x * factor + sin(x);
  expect_same_gradients(c, reduce_sum(last * last),
                        reduce_sum((once * factor + sin(once)) * (once * factor + sin(once))));
}

// A loop within a loop adds to a list that begins empty in each turn of the outer one.
TEST(SequenceGradient, OfListsThatInnerLoopsAddTo) {
  CaseBuilder c(3);
  const Var x = c.input({2}), factor = c.input({2});
  Graph body("outer");
  body.add_input(Type(DType::i64, {}));
  body.add_output(body.add_input(Type(DType::boolean, {})));
  const Var state = input(body, DType::f64, {2}, "state"), captured = input(body, DType::f64, {2}, "captured");
  const Graph inner = adding_body(Type::sequence(Type(DType::f64, Shape::unknown())));
  const Var turns = constant(body, Tensor::scalar<int64_t>(2));
  const std::vector<Var> inside = loop(turns, {}, {sequence_empty(body, DType::f64), state}, inner, {captured});
  body.add_output(reshape(reduce_sum(concat_from_sequence(inside[0], 0, true), {0}, false), {2}).id());
  const Var last = loop(c.number(2), {}, {x}, body, {factor})[0];
  const auto turn = [&](const Var& v) { return v * factor + sin(v + factor) * factor; };
  expect_same_gradients(c, reduce_sum(last * last), reduce_sum(turn(turn(x)) * turn(turn(x))));
}

// Broadcasts and reductions of what was joined, over axes that only the run tells.
TEST(SequenceGradient, OfWhatNobodyKnowsTheRankOf) {
  CaseBuilder c(4);
  const Var a = c.input({2}), b = c.input({2}), column = c.input({2, 1});
  const Var none = sequence_empty(*c.test.graph, DType::f64);
  const Var rows = concat_from_sequence(sequence_insert(sequence_insert(none, a * b), sin(a)), 0, true);
  ASSERT_FALSE(rows.shape().has_rank());
  const Var y = rows * b * column;
  c.check({reduce_sum(y * y), reduce_sum(exp(reduce_mean(y, {-1}, false))), reduce_l2(rows, {0}, true) * b});
}

TEST(SequenceGradient, OfListsThatWereFilledBeforeALoopAddsToThem) {
  CaseBuilder c(5);
  const Var a = c.input({2}), state = c.input({2}), captured = c.input({2});
  const Graph body = adding_body(Type::sequence(Type(DType::f64, {2})));
  const Var list = loop(c.number(2), {}, {sequence_construct({a * a, a}), state}, body, {captured})[0];
  const Var joined = reshape(concat_from_sequence(list, 0, true), {4, 2});
  const Var second = sin(state + captured) * captured;
  const Var tensors =
      reduce_sum(a * a * a * a) + reduce_sum(a * a) + reduce_sum((state * captured) * (state * captured));
  expect_same_gradients(c, reduce_sum(joined * joined), tensors + reduce_sum(second * second));
}

TEST(SequenceGradient, OfListsThatLoopsReadWhole) {
  CaseBuilder c(2);
  const Var a = c.input({2}), b = c.input({2}), state = c.input({2});
  Graph body("reading");
  const Var turn(body, body.add_input(Type(DType::i64, {})));
  body.add_output(body.add_input(Type(DType::boolean, {})));
  const Var x = input(body, DType::f64, {2}, "state");
  const Var list(body, body.add_input(Type::sequence(Type(DType::f64, {2}))));
  body.add_output((x * sequence_at(list, turn)).id());
  const Var last = loop(c.number(3), {}, {state}, body, {sequence_construct({a * b, sin(b), a})})[0];
  expect_same_gradients(c, reduce_sum(last), reduce_sum(state * a * b * sin(b) * a));
}

TEST(SequenceGradient, ListsThatLoopsChangeOtherwiseAreRefused) {
  Graph graph("changing");
  const Var x = input(graph, DType::f32, {2}, "x");
  Graph body("changing");
  body.add_input(Type(DType::i64, {}));
  body.add_output(body.add_input(Type(DType::boolean, {})));
  const Var list(body, body.add_input(Type::sequence(Type(DType::f32, {2}))));
  const Var first = sequence_at(list, constant(body, Tensor::scalar(int64_t{0})));
  body.add_output(sequence_insert(list, first + first).id());
  const Var most = constant(graph, Tensor::scalar(int64_t{2}));
  const Var last = loop(most, {}, {sequence_construct({x})}, body, {})[0];
  const Var loss = reduce_sum(concat_from_sequence(last, 0), {0}, false);
  const std::string message = message_of<UnsupportedError>([&] { grad(loss, {x}); });
  EXPECT_EQ(message.find("[gradient] loop: state 0 is seq(f32[2]); a list has a gradient where each turn adds one "
                         "tensor to its end and does nothing else with it (node "),
            0U)
      << message;
}

}  // namespace
}  // namespace autograph
