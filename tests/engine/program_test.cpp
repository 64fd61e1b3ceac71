// What users hold: builders with shared graphs, operators, runs by name.
#include <gtest/gtest.h>

#include "autograph/autograph.h"
#include "support/message_of.h"

namespace autograph {
namespace {

using Floats = std::vector<float>;

Tensor row(const Floats& values) { return Tensor::of<float>({static_cast<int64_t>(values.size())}, values); }

// y = a - b, twice = 2 a.
Executable difference() {
  GraphBuilder graph;
  const Var a = graph.input("a", DType::f32, {2});
  const Var b = graph.input("b", DType::f32, {2});
  graph.output("y", a - b);
  graph.output("twice", 2 * a);
  return compile(graph.build());
}

TEST(Program, RunsByName) {
  const Executable program = difference();
  const Outputs outputs = program.run({{"b", row({1, 2})}, {"a", row({5, 5})}});
  EXPECT_EQ(outputs["y"].to_f64(), (std::vector<double>{4, 3}));
  EXPECT_EQ(outputs["twice"].to_f64(), (std::vector<double>{10, 10}));
  EXPECT_TRUE(outputs[0].tensor().bitwise_equal(outputs["y"]));
  const std::vector<NamedInput> collected{{"a", row({5, 5})}, {"b", row({1, 2})}};
  EXPECT_TRUE(program.run(collected)["y"].bitwise_equal(outputs["y"]));
}

TEST(Program, NamesInMessagesStayOnTheirLine) {
  GraphBuilder graph;
  graph.output("y\n", relu(graph.input("a\n\033", DType::f32, {2})));
  const Executable program = compile(graph.build());
  const Tensor x = row({1, 2});
  EXPECT_EQ(message_of<ValueError>([&] { program.run({}); }), "[run] input 'a\\n\\x1b' of type f32[2]: not given");
  for (const std::string& message : {message_of<ValueError>([&] {
                                       program.run({{"b", x}});
                                     }),
                                     message_of<ValueError>([&] {
                                       program.run({{"a\n\033", x}})["yy"];
                                     })}) {
    EXPECT_FALSE(message.empty());
    EXPECT_EQ(message.find_first_of("\n\033"), std::string::npos) << message;
  }
}

TEST(Program, TellsWhichNamesAreWrong) {
  const Executable program = difference();
  const Tensor x = row({1, 2});
  EXPECT_EQ(message_of<ValueError>([&] { program.run({{"a", x}}); }), "[run] input 'b' of type f32[2]: not given");
  EXPECT_EQ(message_of<ValueError>([&] { program.run({{"a", x}, {"a", x}}); }), "[run] input 'a': given twice");
  EXPECT_NE(message_of<ValueError>([&] {
              program.run({{"a", x}, {"bb", x}});
            }).find("its inputs: a, b"),
            std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] {
              program.run({x, x})["twic"];
            }).find("did you mean 'twice'?"),
            std::string::npos);
}

TEST(Program, EmptyOnesAreErrors) {
  const Executable never;
  EXPECT_NE(message_of<ValueError>([&] { never.run({}); }).find("empty"), std::string::npos);
  EXPECT_THROW(never.graph(), ValueError);
  Executable from = difference();
  const Executable to = std::move(from);
  EXPECT_THROW(from.threads(), ValueError);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(to.graph().outputs().size(), 2U);
}

TEST(Builder, VarsKeepTheirGraph) {
  const auto make = [] {
    GraphBuilder graph("short-lived");
    return relu(graph.input("x", DType::f32, {2}) * 3);
  };
  const Var y = make();
  EXPECT_EQ(y.graph().name(), "short-lived");
  EXPECT_EQ(y.graph().nodes().size(), 2U);
}

TEST(Builder, OperatorsAreTheArithmeticOps) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {2});
  const Var y = graph.input("y", DType::i32, {2});
  graph.output("f", (1 - x) / (x + 0.5) - -x * 4);
  graph.output("i", (y + 3) * y - 7 / y);
  const Outputs outputs = compile(graph.build()).run({{"x", row({1, 2})}, {"y", Tensor::of<int32_t>({2}, {2, -3})}});
  EXPECT_EQ(outputs["f"].to_f64(), (std::vector<double>{0 / 1.5 + 4, static_cast<float>(-1 / 2.5) + 8}));
  EXPECT_EQ(outputs["i"].to_f64(), (std::vector<double>{5 * 2 - 3, 0 * -3 + 2}));
}

TEST(Builder, RefusesValuesOfOtherGraphs) {
  GraphBuilder one;
  GraphBuilder other;
  const Var x = one.input("x", DType::f32, {2});
  EXPECT_THROW(other.output("y", x), ValueError);
  EXPECT_THROW(other.output("y", Var()), ValueError);
  EXPECT_THROW(x + other.input("x", DType::f32, {2}), ValueError);
}

}  // namespace
}  // namespace autograph
