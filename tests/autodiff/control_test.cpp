// Gradients through branches and loops.
#include <gtest/gtest.h>

#include "autodiff/gradient_check.h"
#include "autograph/autodiff.h"
#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
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
  explicit CaseBuilder(uint64_t seed) : random(seed) { test.graph = std::make_shared<Graph>("control"); }

  Var input(const Dims& dims) {
    const Tensor elements = draw_tensor(random, DType::f64, dims, -1, 1);
    const ValueId id = test.graph->add_input(elements.type(), "x" + std::to_string(test.wanted.size()));
    test.inputs.emplace_back(elements);
    test.wanted.emplace_back(*test.graph, id);
    return test.wanted.back();
  }

  void check(const std::vector<Var>& outputs) {
    test.outputs = outputs;
    const std::string text = print_text(*test.graph);
    EXPECT_EQ(check_gradients(test, random), "") << text;
  }

  Random random;
  GradientCase test;
};

Var body_input(Graph& body, const Shape& shape, DType dtype = DType::f64) {
  return Var(body, body.add_input(Type(dtype, shape)));
}

Graph branch(bool squares, const Dims& dims) {
  Graph body("branch");
  const Var a = body_input(body, Shape::of(dims)), b = body_input(body, Shape::of(dims));
  body.add_output((squares ? a * a * b : sin(b)).id());
  body.add_output((squares ? b : a + b).id());
  return body;
}

TEST(ControlGradient, OfTheBranchThatIsTaken) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    CaseBuilder c(seed);
    const Var a = c.input({2, 3}), b = c.input({2, 3});
    const Var condition = greater(reduce_sum(a, {}, false), scalar_like(a, 0));
    const std::vector<Var> y = if_else(condition, branch(true, {2, 3}), branch(false, {2, 3}), {a, tanh(b)});
    c.check({y[0], y[1] * y[1]});
  }
}

// h' = tanh(x w + h r + b): a recurrent layer. Every h comes out.
Graph cell(int64_t batch, int64_t in, int64_t hidden) {
  Graph body("cell");
  const Var h = body_input(body, {batch, hidden}), x = body_input(body, {batch, in});
  const Var w = body_input(body, {in, hidden}), r = body_input(body, {hidden, hidden}), b = body_input(body, {hidden});
  const Var next = tanh(matmul(x, w) + matmul(h, r) + b);
  body.add_output(next.id());
  body.add_output((next * 2).id());
  return body;
}

TEST(ControlGradient, OfAScanInAnyDirection) {
  for (int64_t direction = 0; direction < 2; ++direction) {
    for (int64_t axis = 0; axis < 2; ++axis) {
      CaseBuilder c(static_cast<uint64_t>(10 * direction + axis));
      const Var h = c.input({2, 3}), w = c.input({4, 3}), r = c.input({3, 3}), b = c.input({3});
      const Var x = c.input(axis == 0 ? Dims{5, 2, 4} : Dims{2, 5, 4});
      const std::vector<Var> y = scan({h}, {x}, cell(2, 4, 3), {w, r, b},
                                      {{"scan_input_axes", std::vector<int64_t>{axis}},
                                       {"scan_input_directions", std::vector<int64_t>{direction}},
                                       {"scan_output_axes", std::vector<int64_t>{-1}},
                                       {"scan_output_directions", std::vector<int64_t>{1 - direction}}});
      c.check({y[0], y[1]});
      CaseBuilder last(7);
      const Var state = last.input({2, 3}), weights = last.input({4, 3});
      const std::vector<Var> z =
          scan({state}, {last.input({3, 2, 4})}, cell(2, 4, 3), {weights, last.input({3, 3}), last.input({3})});
      last.check({z[0]});
    }
  }
}

// A product of all slices with a counter beside it, and no gradient through the counter.
TEST(ControlGradient, OfAScanWithWholeNumbersForAState) {
  Graph body("count");
  const Var n = body_input(body, Shape(), DType::i64), product = body_input(body, {2}), x = body_input(body, {2});
  body.add_output((n + scalar_like(n, 1)).id());
  body.add_output((product * x * (cast(n, DType::f64) + 1)).id());
  CaseBuilder c(3);
  const Var start = constant(*c.test.graph, Tensor::scalar<int64_t>(0));
  const std::vector<Var> y = scan({start, c.input({2})}, {c.input({4, 2})}, body);
  c.check({y[1]});
}

// x <- x * a + b for some turns; every x comes out.
Graph affine_body(bool stops) {
  Graph body("affine");
  const Var turn = body_input(body, Shape(), DType::i64), condition = body_input(body, Shape(), DType::boolean);
  const Var x = body_input(body, {3}), a = body_input(body, {3}), b = body_input(body, {3});
  const Var next = x * a + b * (cast(turn, DType::f64) + 1);
  const Var goes_on = less(reduce_sum(next * next, {}, false), scalar_like(next, 2));
  body.add_output((stops ? goes_on : condition).id());
  body.add_output(next.id());
  body.add_output(sin(x).id());
  return body;
}

TEST(ControlGradient, OfALoopWithAKnownNumberOfTurns) {
  for (const int64_t turns : {0, 1, 5}) {
    CaseBuilder c(static_cast<uint64_t>(turns));
    const Var x = c.input({3}), a = c.input({3}), b = c.input({3});
    const std::vector<Var> y =
        loop(constant(*c.test.graph, Tensor::scalar(turns)), {}, {x}, affine_body(false), {a, b});
    c.check({y[0], y[1]});
  }
}

TEST(ControlGradient, OfALoopThatStopsByItself) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    CaseBuilder c(seed);
    const Var x = c.input({3}), a = c.input({3}), b = c.input({3});
    const std::vector<Var> y =
        loop(constant(*c.test.graph, Tensor::scalar<int64_t>(20)), {}, {x}, affine_body(true), {a, b});
    c.check({y[0]});
  }
}

TEST(ControlGradient, OfALoopInALoop) {
  Graph outer("outer");
  const Var turn = body_input(outer, Shape(), DType::i64), condition = body_input(outer, Shape(), DType::boolean);
  const Var x = body_input(outer, {3}), a = body_input(outer, {3}), b = body_input(outer, {3});
  const std::vector<Var> inner =
      loop(constant(outer, Tensor::scalar<int64_t>(2)), {}, {tanh(x)}, affine_body(false), {a, b});
  outer.add_output(condition.id());
  outer.add_output((inner[0] + reduce_sum(inner[1], {0}, false)).id());
  (void)turn;
  CaseBuilder c(5);
  const Var start = c.input({3}), p = c.input({3}), q = c.input({3});
  c.check(loop(constant(*c.test.graph, Tensor::scalar<int64_t>(3)), {}, {start}, outer, {p, q}));
}

// Exporters leave shapes out of bodies: they are those of the call.
TEST(ControlGradient, OfABodyThatStatesNoShapes) {
  Graph body("affine");
  const Var turn = body_input(body, Shape::unknown(), DType::i64);
  const Var condition = body_input(body, Shape::unknown(), DType::boolean);
  const Var x = body_input(body, Shape::unknown()), a = body_input(body, Shape::unknown());
  body.add_output(condition.id());
  body.add_output((x * a + cast(turn, DType::f64)).id());
  CaseBuilder c(1);
  c.check(loop(constant(*c.test.graph, Tensor::scalar<int64_t>(3)), {}, {c.input({2, 3})}, body, {c.input({3})}));

  Graph step("step");
  const Var sum = body_input(step, Shape::unknown()), slice = body_input(step, Shape::unknown());
  step.add_output((sum * slice).id());
  CaseBuilder scanned(2);
  scanned.check(scan({scanned.input({2, 3})}, {scanned.input({4, 3})}, step));
}

TEST(ControlGradient, AStateThatGrowsIsRefused) {
  Graph body("growing");
  body_input(body, Shape(), DType::i64);
  const Var condition = body_input(body, Shape(), DType::boolean), x = body_input(body, Shape::unknown());
  body.add_output(condition.id());
  body.add_output(concat({x, x}, 0).id());
  CaseBuilder c(1);
  const Var start = c.input({2});
  const std::vector<Var> y = loop(constant(*c.test.graph, Tensor::scalar<int64_t>(2)), {}, {start}, body);
  const std::string message = message_of<UnsupportedError>([&] { vjp({y[0]}, {y[0]}, {start}); });
  EXPECT_NE(message.find("state 0 is f64[2] before a step and f64[4] behind it (node "), std::string::npos) << message;
}

}  // namespace
}  // namespace autograph
