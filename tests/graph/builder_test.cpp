// What builders say about mistakes: where they are made, and as mistakes.
#include "autograph/builder.h"

#include <gtest/gtest.h>

#include "autograph/eager.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "support/message_of.h"

namespace autograph {
namespace {

void expect_said(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

// ---- Values that are not given -------------------------------------------------------------------------------------

TEST(Builder, ValuesThatAreNotGivenSaySo) {
  expect_said(message_of<ValueError>([] { Var() + 1; }), "got Var()");
  expect_said(message_of<ValueError>([] { scalar_like(Var(), 1); }), "got Var()");
  expect_said(message_of<ValueError>([] { (void)Var().type(); }), "got Var()");
  expect_said(message_of<ValueError>([] { (void)Var().shape(); }), "got Var()");
  expect_said(message_of<ValueError>([] { (void)Var().dtype(); }), "got Var()");
  expect_said(message_of<ValueError>([] { (void)Var().dim(0); }), "got Var()");
  expect_said(message_of<ValueError>([] { (void)Var().known(); }), "got Var()");
  expect_said(message_of<ValueError>([] { (void)eager(Tensor::scalar(1.0F)).graph(); }), "constant_like()");
}

TEST(Builder, NumbersOfInputsAndOutputsAreSaidAsTheyAre) {
  Graph graph;
  const ValueId x = graph.add_input(Type(DType::f32, {2}));
  const auto error = [&](std::string_view op, size_t num_inputs, int num_outputs = -1) {
    const std::vector<ValueId> inputs(num_inputs, x);
    return message_of<ValueError>(
        [&] { graph.add_node(get_op(op), inputs, {}, {.provenance = {}, .num_outputs = num_outputs}); });
  };
  EXPECT_EQ(error("add", 1), "[add] inputs: expected 2, got 1");
  EXPECT_EQ(error("add", 2, 3), "[add] outputs: expected 1, got 3");
  EXPECT_EQ(error("clip", 4), "[clip] inputs: expected 1 to 3, got 4");
  EXPECT_EQ(error("gather_elements", 3), "[gather_elements] inputs: expected 2, got 3");
  EXPECT_EQ(error("adam", 1, 1), "[adam] inputs: expected 2 or more, got 1");
}

TEST(Builder, ExtentsThatAreNotThereSaySo) {
  GraphBuilder g;
  const Var shapeless = g.input("shapeless", DType::f32, Shape::unknown());
  expect_said(message_of<ShapeError>([&] { (void)shapeless.dim(0); }), "expected a known rank, got f32[...]");
  expect_said(message_of<ShapeError>([&] { (void)shapeless.rank(); }), "expected a known rank");
  const Var x = g.input("x", DType::f32, {2, Dim::symbol("n")});
  EXPECT_EQ(x.dim(0), 2);
  EXPECT_EQ(x.dim(-2), 2);
  expect_said(message_of<ShapeError>([&] { (void)x.dim(7); }), "expected -2..1 for f32[2,n], got 7");
  expect_said(message_of<ShapeError>([&] { (void)x.dim(-3); }), "got -3");
  expect_said(message_of<ShapeError>([&] { (void)x.dim(1); }), "expected a known extent, got n");
  expect_said(message_of<ShapeError>([&] { (void)g.input("s", DType::f32, {}).dim(0); }), "expected none for f32[]");
}

// ---- Things without elements or dtype ------------------------------------------------------------------------------

TEST(Builder, TensorsWithoutElementsAreRefused) {
  GraphBuilder g;
  expect_said(message_of<ValueError>([&] { g.state("z", Tensor()); }), "state 'z'");
  expect_said(message_of<ValueError>([&] { g.constant(Tensor(), "c"); }), "constant 'c'");
}

TEST(Builder, OnlyStatesHaveInitialElements) {
  Graph graph;
  const ValueId id = graph.add_constant(Tensor::scalar(1.0F), "c");
  expect_said(message_of<ValueError>([&] { graph.set_initial(id, Tensor::scalar(2.0F)); }), "'c' is not a state");
}

TEST(Builder, InputsHaveADtype) {
  GraphBuilder g;
  expect_said(message_of<TypeError>([&] { g.input("x", DType::undefined, {2}); }), "input 'x': expected a dtype");
}

// ---- Names, extents, other graphs ----------------------------------------------------------------------------------

TEST(Builder, NamesAreTakenOnce) {
  GraphBuilder g;
  const Var x = g.input("x", DType::f32, {2});
  expect_said(message_of<ValueError>([&] { g.input("x", DType::f32, {2}); }), "input 'x': expected a new name");
  g.output("y", x);
  expect_said(message_of<ValueError>([&] { g.output("y", x); }), "output 'y': expected a new name");
  g.input("", DType::f32, {2});
  g.input("", DType::f32, {2});
  g.output("", x);
  g.output("", x);
  EXPECT_EQ(g.build().inputs().size(), 3U);
  EXPECT_EQ(g.build().outputs().size(), 3U);
}

TEST(Builder, NegativeExtentsAreRefused) {
  GraphBuilder g;
  expect_said(message_of<ShapeError>([&] { g.input("x", DType::f32, {3, -2}); }), "input 'x': expected extents of 0");
  EXPECT_TRUE(g.input("x", DType::f32, {-1}).shape()[0].is_unknown());
}

TEST(Builder, StatesOfOtherGraphsAreLeftAlone) {
  GraphBuilder g, h;
  const Var s = g.state("s", Tensor::scalar(1.0F));
  expect_said(message_of<ValueError>([&] { h.update(s, s + 1); }), "the state: belongs to another graph");
  EXPECT_TRUE(g.build().updates().empty());
  const Var t = h.state("t", Tensor::scalar(1.0F));
  expect_said(message_of<ValueError>([&] { h.update(t, s); }), "the new value: belongs to another graph");
  expect_said(message_of<ValueError>([&] { h.update(t, Var()); }), "the new value: expected a value, got none");
}

}  // namespace
}  // namespace autograph
