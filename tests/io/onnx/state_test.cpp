// States in ONNX files: initializers that are inputs, too, marked by the metadata.
#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/error.h"
#include "autograph/model_io.h"
#include "autograph/ops/elementwise.h"
#include "autograph/text.h"
#include "io/proto_bytes.h"

namespace autograph {
namespace {

Graph make_graph() {
  Graph graph("steps");
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var total = state(graph, Tensor::of<float>({2}, {1, 2}), "total");
  const Var scale = state(graph, Tensor::scalar(3.0F), "scale");
  const Var sum = add(total, mul(x, scale));
  update(total, sum);
  graph.add_output(sum.id(), "y");
  return graph;
}

TEST(OnnxState, ComesBackAsItWas) {
  SaveOptions options;
  options.metadata = {{"author", "somebody"}};
  const Model model = parse_onnx(serialize_onnx(make_graph(), options));
  EXPECT_EQ(model.metadata, options.metadata);
  EXPECT_TRUE(model.optional_inputs.empty());
  const Graph& graph = model.graph;
  ASSERT_EQ(graph.states().size(), 2U);
  EXPECT_EQ(graph.value(graph.states()[0]).name(), "total");
  EXPECT_EQ(graph.value(graph.states()[0]).initial().to_f64(), (std::vector<double>{1, 2}));
  ASSERT_EQ(graph.updates().size(), 1U);
  EXPECT_EQ(graph.updates()[0].state, graph.states()[0]);
  EXPECT_EQ(graph.inputs().size(), 1U);
  ASSERT_EQ(graph.outputs().size(), 1U);
  EXPECT_EQ(graph.output_name(0), "y");
}

// What a program sees that does not know our marks.
TEST(OnnxState, OthersSeeInputsWithAValue) {
  std::string bytes = serialize_onnx(make_graph());
  const std::string mark = "autograph.state.";
  for (size_t at = bytes.find(mark); at != std::string::npos; at = bytes.find(mark)) {
    bytes.replace(at, mark.size(), "other.program.__");
  }
  const Model model = parse_onnx(bytes);
  ASSERT_EQ(model.optional_inputs.size(), 2U);
  EXPECT_EQ(model.optional_inputs[0].first, "total");
  EXPECT_EQ(model.optional_inputs[1].first, "scale");
  EXPECT_TRUE(model.graph.states().empty());
  ASSERT_EQ(model.graph.outputs().size(), 2U);
  EXPECT_EQ(model.graph.output_name(0), "y");
  EXPECT_EQ(model.graph.output_name(1), "total_new");
}

TEST(OnnxState, MarksOfNothingAreRefused) {
  const auto error_with = [](const std::string& state, const std::string& output) -> std::string {
    constexpr int kMetadata = 14;  // of a ModelProto
    const std::string entry = tests::field(1, "autograph.state." + state) + tests::field(2, std::string(output));
    try {
      parse_onnx(serialize_onnx(make_graph()) + tests::field(kMetadata, entry));
    } catch (const FormatError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_with("other", ""), "[onnx] state 'other': no initializer has that name");
  EXPECT_EQ(error_with("scale", "z"), "[onnx] states: 1 of their 2 new values are outputs");
  EXPECT_EQ(error_with("scale", "total_new"), "[onnx] states: output 'total_new' is the new value of two");
}

}  // namespace
}  // namespace autograph
