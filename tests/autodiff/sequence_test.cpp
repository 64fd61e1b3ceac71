// Gradients through sequences and optionals, against central differences in f64.
#include <gtest/gtest.h>

#include "autodiff/gradient_check.h"
#include "autograph/autodiff.h"
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

TEST(SequenceGradient, OfListsThatALoopCarriesIsRefused) {
  CaseBuilder c(7);
  const Var list = sequence_construct({c.input({2})});
  Graph body("loop");
  const Var turn(body, body.add_input(Type(DType::i64, Shape())));
  const Var condition(body, body.add_input(Type(DType::boolean, Shape())));
  const Var x(body, body.add_input(Type(DType::f64, {2}))), inside(body, body.add_input(list.type()));
  body.add_output(identity(condition).id());
  body.add_output((x * sequence_at(inside, constant(body, Tensor::scalar<int64_t>(0)))).id());
  const Var y = loop(c.number(3), {}, {c.input({2})}, body, {list})[0];
  EXPECT_THROW(grad(reduce_sum(y), c.test.wanted), UnsupportedError);
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

}  // namespace
}  // namespace autograph
