// Ops of a program's own.
#include <gtest/gtest.h>

#include "autograph/autograph.h"

namespace autograph {
namespace {

void infer_same(InferContext& context) { context.set_output(0, context.dtype(0), context.shape(0)); }

void triple(const OpCall& call) {
  const TensorView x = call.input(0);
  for (int64_t i = 0; i < x.num_elements(); ++i) call.output(0).mutable_data<float>()[i] = 3 * x.data<float>()[i];
}

OpDef triple_def(std::string_view name) {
  return {.name = name,
          .doc = "y = 3 x.",
          .inputs = {{"x", "T", "Any shape."}},
          .outputs = {{"y", "T", "Shape of x."}},
          .types = {{"T", DTypeSet{DType::f32}}},
          .infer = infer_same,
          .reference = triple,
          .onnx = {{.name = "Triple", .domain = "com.example"}}};
}

Graph between_others(const OpDef& op) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {Dim::symbol("n"), 4});
  graph.output("y", relu(apply(op, {x + 1}) - 6));
  return graph.build();
}

void expect_right(const Graph& graph) {
  const std::vector<double> expected{0, 0, 3, 6};
  for (const std::string device : {"cpu", "reference"}) {
    CompileOptions options;
    options.device = device;
    const Executable program = compile(graph, options);
    EXPECT_EQ(program.run({{"x", Tensor::of<float>({1, 4}, {0, 1, 2, 3})}})["y"].to_f64(), expected) << device;
  }
}

TEST(CustomOp, RunsInGraphsThatAreBuilt) {
  static const OpDef def = triple_def("triple_unregistered");
  expect_right(between_others(def));
  EXPECT_EQ(find_op("triple_unregistered"), nullptr);
}

TEST(CustomOp, IsReadFromFilesAndTexts) {
  static const OpDef def = triple_def("triple");
  const Graph graph = between_others(def);
  const std::string file = serialize_onnx(graph), text = print_text(graph);
  EXPECT_THROW(parse_onnx(file), UnsupportedError);
  register_op(def);
  expect_right(parse_onnx(file).graph);
  expect_right(parse_text(text));
  EXPECT_EQ(find_op("triple"), &def);
  EXPECT_EQ(print_text(parse_text(text)), text);
}

TEST(CustomOp, IsRefusedWithoutWhatItNeeds) {
  const auto refusal = [](const OpDef& op) -> std::string {
    try {
      register_op(op);
    } catch (const ValueError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal(triple_def("relu")).find("a name that no other op has"), std::string::npos);
  EXPECT_NE(refusal(triple_def("My Op")).find("such as my_op"), std::string::npos);
  OpDef op = triple_def("incomplete");
  op.infer = nullptr;
  EXPECT_NE(refusal(op).find("infer"), std::string::npos);
  op = triple_def("incomplete");
  op.reference = nullptr;
  EXPECT_NE(refusal(op).find("scalar, reference or evaluate"), std::string::npos);
  op = triple_def("all_triple");
  op.traits.collective = true;
  EXPECT_NE(refusal(op).find("traits.pure to be false, since it has an effect"), std::string::npos);
}

// Equal nodes would become one, and talk to other ranks once.
TEST(CustomOp, WithAnEffectIsNotPure) {
  static const OpDef def = [] {
    OpDef op = triple_def("triple_of_all");
    op.traits.collective = true;
    return op;
  }();
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {4});
  try {
    apply(def, {x});
    FAIL() << "expected a ValueError";
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "[triple_of_all] traits: expected pure = false of an op with an effect, got true");
  }
}

}  // namespace
}  // namespace autograph
