#include "autograph/text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"

namespace autograph {
namespace {

TEST(Text, PrintsInputsConstantsNodesAndOutputs) {
  Graph graph("g");
  const Var x = input(graph, DType::f32, {Dim::symbol("batch"), 3}, "x");
  {
    const ProvenanceScope scope("head");
    graph.add_output(softmax(relu(x)).id(), "y");
  }
  graph.add_output(constant(graph, Tensor::of<float>({2}, {1.0F, 0.1F}), "w").id());
  EXPECT_EQ(print_text(graph), R"(graph "g" {
  input %0 "x": f32[batch,3]
  const %1 "w": f32[2] = {1.0, 0.1}
  %2: f32[batch,3] = relu(%0) @"head/relu"
  %3: f32[batch,3] = softmax(%2) {axis=-1} @"head/softmax"
  output %3 "y"
  output %1
}
)");
}

TEST(Text, ParsesBackToAnEqualGraph) {
  Graph graph("quoted \"name\"\n");
  const Var x = input(graph, DType::f32, {Dim::symbol("batch size"), Dim::unknown()}, "x");
  graph.add_output(softmax(x).id(), "y");
  graph.add_output(constant(graph, Tensor::of<float>({2}, {std::nanf("7"), -INFINITY})).id());
  graph.add_output(constant(graph, Tensor::of<std::string>({2}, {"a\"\\\x01", ""})).id());
  graph.add_output(constant(graph, Tensor::of<Half>({1}, {Half(1.5F)})).id());
  graph.add_output(constant(graph, Tensor::zeros(DType::f64, {0, 3})).id());
  const std::string text = print_text(graph);
  const Graph parsed = parse_text(text);
  EXPECT_EQ(print_text(parsed), text);
  EXPECT_EQ(structural_hash(parsed), structural_hash(graph));
  EXPECT_EQ(parsed.name(), graph.name());
}

TEST(Text, KeepsLargeTensorsInAPool) {
  Graph graph("pooled");
  const Tensor large = Tensor::zeros(DType::f32, {100});
  graph.add_output(constant(graph, large).id());
  graph.add_output(constant(graph, large, "again").id());
  graph.add_output(constant(graph, large.reshaped({10, 10})).id());
  graph.add_output(constant(graph, Tensor::zeros(DType::f32, {3})).id());
  std::vector<Tensor> pool;
  const std::string text = print_text(graph, pool);
  EXPECT_EQ(text, R"(graph "pooled" {
  const %0: f32[100] = pool 0
  const %1 "again": f32[100] = pool 0
  const %2: f32[10,10] = pool 1
  const %3: f32[3] = {0.0, 0.0, 0.0}
  output %0
  output %1
  output %2
  output %3
}
)");
  ASSERT_EQ(pool.size(), 2U);
  EXPECT_EQ(pool[1].raw(), large.raw());
  EXPECT_EQ(structural_hash(parse_text(text, pool)), structural_hash(graph));
  EXPECT_THROW(parse_text(text), FormatError);
  std::swap(pool[0], pool[1]);
  EXPECT_THROW(parse_text(text, pool), FormatError);
}

TEST(Text, ErrorsNameLineAndColumn) {
  const auto message = [](std::string_view text) -> std::string {
    try {
      parse_text(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message("graph \"g\" {\n  output %3\n}"),
            "[text] line 3, column 1: expected a value defined above, before this, got '}'");
  EXPECT_EQ(message("graph \"g\" { input %0: q32[1] }"), "[text] line 1, column 23: expected a dtype, got 'q32'");
  EXPECT_EQ(message("graph \"g\" { input %0: f32[1] %1: f32[1] = rellu(%0) }"),
            "[ops] op 'rellu': unknown (did you mean 'relu'?)");
  EXPECT_EQ(message("graph \"g\" { input %0: f32[1] %1: f32[2] = relu(%0) }"),
            "[verify] graph: 1 problem\n  node #0 relu: output 0 is declared f32[2], infer says f32[1]");
  EXPECT_EQ(message("graph \"g\" { const %0: f32[99999999999,99999999999] = hex\"00\" }"),
            "[text] size: 99999999999 * 99999999999 overflows 64 bits");
}

TEST(Text, RefusesTextPrintedWithoutItsWeights) {
  Graph graph;
  graph.add_output(constant(graph, Tensor::zeros(DType::f32, {100})).id());
  EXPECT_THROW(parse_text(print_text(graph, {.max_constant_elements = 10})), FormatError);
}

}  // namespace
}  // namespace autograph
