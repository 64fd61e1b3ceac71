// What the importer makes of good models, and what it says about bad ones.
#include <gtest/gtest.h>

#include <cstring>

#include "autograph/model_io.h"
#include "autograph/op_def.h"
#include "io/proto_bytes.h"

namespace autograph::tests {
namespace {

std::string raw_floats(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return field(9, bytes);
}

// The message of the error that `bytes` raise, which must be of type E.
template <class E>
std::string error_of(const std::string& bytes, const LoadOptions& options = {}) {
  try {
    parse_onnx(bytes, "", options);
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another type: ") + error.what();
  }
  return "no error";
}

TEST(OnnxImport, KeepsNamesAndTypes) {
  const Model loaded = parse_onnx(model(graph({node("Relu", {"x"}, {"y"}, field(3, std::string("/head/Relu")))})));
  ASSERT_EQ(loaded.graph.num_nodes(), 1u);
  const Node& relu = loaded.graph.node(loaded.graph.nodes().front());
  EXPECT_EQ(relu.op().name, "relu");
  EXPECT_EQ(relu.provenance().to_string(), "/head/Relu");
  EXPECT_EQ(loaded.graph.value(loaded.graph.inputs()[0]).name(), "x");
  EXPECT_EQ(to_string(loaded.graph.type(loaded.graph.outputs()[0])), "f32[2]");
  EXPECT_EQ(loaded.opsets.at(""), 17);
}

// As PyTorch's dynamo exporter writes it: the innermost line last, behind it those of layers.
TEST(OnnxImport, MessagesTellTheLineThatMadeANode) {
  const std::string trace =
      "File \"/lib/model.py\", line 1350, in forward\n    x = self.block(x)\n"
      "  File \"/lib/layers/attention.py\", line 124, in forward\n    x = self.act(x)\n"
      "  File \"/lib/torch/nn/modules/activation.py\", line 144, in forward\n    return F.relu(input)";
  const std::string metadata = field(9, field(1, std::string("namespace")) + field(2, std::string("blocks.0"))) +
                               field(9, field(1, std::string("pkg.torch.onnx.stack_trace")) + field(2, trace));
  const Model loaded =
      parse_onnx(model(graph({node("Relu", {"x"}, {"y"}, field(3, std::string("node_relu")) + metadata)})));
  const NodeId relu = loaded.graph.nodes().front();
  EXPECT_EQ(loaded.graph.node(relu).provenance().to_string(), "node_relu");
  EXPECT_EQ(describe(loaded.graph, relu), "node #0 relu \"node_relu\" at attention.py:124");
}

TEST(OnnxImport, NodesWithoutNameGetTheirOpAndPosition) {
  const Model loaded = parse_onnx(model(graph({node("Relu", {"x"}, {"h"}), node("Relu", {"h"}, {"y"})})));
  EXPECT_EQ(loaded.graph.node(loaded.graph.nodes()[1]).provenance().to_string(), "Relu_1");
}

TEST(OnnxImport, AcceptsNodesInAnyAcyclicOrder) {
  const Model loaded = parse_onnx(model(graph({node("Relu", {"h"}, {"y"}), node("Relu", {"x"}, {"h"})})));
  EXPECT_EQ(loaded.graph.num_nodes(), 2u);
}

TEST(OnnxImport, InitializerThatIsAlsoAnInputIsAConstant) {
  const std::string initializer = field(5, tensor("w", {2}, raw_floats({1, 2})));
  const std::string bytes =
      model(graph({node("Add", {"x", "w"}, {"y"})}, initializer + field(11, value_info("w", {2}))));
  const Model loaded = parse_onnx(bytes);
  EXPECT_EQ(loaded.graph.inputs().size(), 1u);
  ASSERT_EQ(loaded.graph.constants().size(), 1u);
  EXPECT_EQ(loaded.graph.value(loaded.graph.constants()[0]).constant().elements<float>()[1], 2.0f);
}

TEST(OnnxImport, InitializerThatIsAlsoAnInputCanBeGiven) {
  const std::string initializer = field(5, tensor("w", {2}, raw_floats({1, 2})));
  const std::string bytes =
      model(graph({node("Add", {"x", "w"}, {"y"})}, initializer + field(11, value_info("w", {-1}))));
  const Model plain = parse_onnx(bytes, "", {.given_inputs = {"x"}});
  ASSERT_EQ(plain.graph.inputs().size(), 1u);
  ASSERT_EQ(plain.optional_inputs.size(), 1u);
  EXPECT_EQ(plain.optional_inputs[0].first, "w");
  EXPECT_EQ(to_string(plain.optional_inputs[0].second), "f32[?]");
  const Model given = parse_onnx(bytes, "", {.given_inputs = {"w"}});
  ASSERT_EQ(given.graph.inputs().size(), 2u);
  EXPECT_EQ(given.graph.value(given.graph.inputs()[1]).name(), "w");
  EXPECT_EQ(to_string(given.graph.type(given.graph.inputs()[1])), "f32[?]");
  EXPECT_TRUE(given.graph.constants().empty());
  EXPECT_TRUE(given.optional_inputs.empty());
  EXPECT_TRUE(plain.input_defaults.empty());
  ASSERT_EQ(given.input_defaults.count("w"), 1u);
  EXPECT_EQ(given.input_defaults.at("w").elements<float>()[1], 2.0f);
  // Written with its value, it is optional again.
  const Model again = parse_onnx(serialize_onnx(given.graph, {.input_defaults = given.input_defaults}));
  ASSERT_EQ(again.optional_inputs.size(), 1u);
  EXPECT_EQ(again.optional_inputs[0].first, "w");
  EXPECT_THROW(serialize_onnx(plain.graph, {.input_defaults = given.input_defaults}), ValueError);
  EXPECT_EQ(error_of<ValueError>(bytes, {.given_inputs = {"ww"}}),
            "[onnx] input: the model has none named 'ww' (did you mean 'w'?)");
}

// A ValueInfoProto of f32 whose dims are names.
std::string named_value(const std::string& name, const std::vector<std::string>& dims) {
  std::string shape;
  for (const std::string& dim : dims) shape += field(1, field(2, dim));
  return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)));
}

TEST(OnnxImport, NamesThatSayNothingAreNoNames) {
  const std::string inputs = field(11, named_value("a", {"?", "?"})) + field(11, named_value("b", {"-1", "n"}));
  const Model loaded = parse_onnx(model(graph({node("Relu", {"x"}, {"y"})}, inputs)));
  EXPECT_EQ(to_string(loaded.graph.type(loaded.graph.inputs()[1])), "f32[?,?]");
  EXPECT_FALSE(loaded.graph.type(loaded.graph.inputs()[1]).shape()[0].same_as(Dim::symbol("?")));
  EXPECT_EQ(loaded.graph.type(loaded.graph.inputs()[2]).shape()[0].name(), "");
  EXPECT_EQ(loaded.graph.type(loaded.graph.inputs()[2]).shape()[1].name(), "n");
}

// An attribute that holds a graph.
std::string graph_attribute(const std::string& name, const std::string& graph) {
  return field(5, field(1, name) + field(6, graph) + field(20, 5));
}

// Without inputs: x comes from outside.
std::string branch_graph(const std::string& node_bytes) {
  return field(2, std::string("branch")) + field(1, node_bytes) + field(12, value_info("b", {}));
}

std::string integers_attribute(const std::string& name, int64_t value) {
  return field(5, field(1, name) + field(8, value) + field(20, 7));
}

TEST(OnnxImport, BranchForOtherShapesIsNoMistakeOfTheFile) {
  // x has extent 2: it can be flattened, but not squeezed. An If inside an If, as exporters nest them.
  const std::string squeeze = branch_graph(node("Squeeze", {"x"}, {"b"}, integers_attribute("axes", 0)));
  const std::string keep = branch_graph(node("Relu", {"x"}, {"b"}));
  const std::string inner = branch_graph(
      node("If", {"c"}, {"b"}, graph_attribute("then_branch", squeeze) + graph_attribute("else_branch", squeeze)));
  const std::string condition =
      field(11, field(1, std::string("c")) + field(2, field(1, field(1, 9) + field(2, std::string()))));
  const auto with = [&](const std::string& then_branch) {
    const std::string branches = graph_attribute("then_branch", then_branch) + graph_attribute("else_branch", keep);
    return model(graph({node("If", {"c"}, {"y"}, branches)}, condition), 11);
  };
  EXPECT_EQ(to_string(parse_onnx(with(squeeze)).graph.type(parse_onnx(with(squeeze)).graph.outputs()[0])), "f32[2]");
  EXPECT_EQ(parse_onnx(with(inner)).graph.num_nodes(), 1u);
  // What is wrong for every shape stays an error.
  EXPECT_NE(error_of<FormatError>(with(branch_graph(node("Relu", {"z"}, {"b"})))).find("never defined"),
            std::string::npos);
  const std::string both = graph_attribute("then_branch", squeeze) + graph_attribute("else_branch", squeeze);
  EXPECT_NE(error_of<FormatError>(model(graph({node("If", {"c"}, {"y"}, both)}, condition), 11)).find("[squeeze]"),
            std::string::npos);
}

TEST(OnnxImport, MessagesShowNamesEscaped) {
  EXPECT_EQ(error_of<FormatError>(model(graph({node("Relu", {"z\n\033\xff"}, {"y"})}))),
            "[onnx] value 'z\\n\\x1b\\xff': used by Relu node \"Relu_0\" but never defined");
}

TEST(OnnxImport, NewerOpsetIsAWarningWhileAllOpsAreKnown) {
  const Model loaded = parse_onnx(model(graph({node("Relu", {"x"}, {"y"})}), 99));
  ASSERT_EQ(loaded.warnings.size(), 1u);
  EXPECT_EQ(loaded.warnings[0], "opset 99 is newer than 28, the newest that this build knows; all its ops are known");
}

TEST(OnnxImport, ListsAllMissingOpsAtOnce) {
  const std::string bytes =
      model(graph({node("Foo", {"x"}, {"a"}), node("Bar", {"a"}, {"b"}), node("Foo", {"b"}, {"y"})}));
  EXPECT_EQ(error_of<UnsupportedError>(bytes),
            "[onnx] 2 ops are missing: Bar (opset 17): 1 node, no such op; Foo (opset 17): 2 nodes, no such op");
}

TEST(OnnxImport, RefusesOpsThatChangedWithOpsetSeven) {
  EXPECT_EQ(error_of<UnsupportedError>(model(graph({node("Add", {"x", "x"}, {"y"})}), 6)),
            "[onnx] 1 op is missing: Add (opset 6): 1 node, its form of before opset 7 is not supported");
  EXPECT_EQ(error_of<UnsupportedError>(model(graph({node("Relu", {"x"}, {"y"})}), 5)),
            "[onnx] 1 op is missing: Relu (opset 5): 1 node, its form of before opset 7 is not supported");
}

TEST(OnnxImport, ReadsOpsOfOldOpsetsThatDidNotChangeSince) {
  EXPECT_EQ(parse_onnx(model(graph({node("Relu", {"x"}, {"y"})}), 6)).graph.nodes().size(), 1U);
  EXPECT_EQ(parse_onnx(model(graph({node("Identity", {"x"}, {"y"})}), 1)).graph.nodes().size(), 1U);
}

TEST(OnnxImport, ErrorsOfOpsBecomeFormatErrorsThatNameTheNode) {
  const std::string axis = field(5, field(1, std::string("axis")) + field(3, 5) + field(20, 2));
  EXPECT_EQ(error_of<FormatError>(model(graph({node("Softmax", {"x"}, {"y"}, axis)}))),
            "[softmax] axis: expected -1..0 for rank 1, got 5 (node \"Softmax_0\")");
}

TEST(OnnxImport, RefusesUnknownAttributes) {
  const std::string attribute = field(5, field(1, std::string("alpha")) + field(3, 5) + field(20, 2));
  EXPECT_EQ(error_of<FormatError>(model(graph({node("Relu", {"x"}, {"y"}, attribute)}))),
            "[relu] attribute 'alpha': unknown (node \"Relu_0\")");
}

TEST(OnnxImport, RefusesAttributesOfTheWrongKind) {
  const std::string axis = field(5, field(1, std::string("axis")) + field(4, std::string("last")) + field(20, 3));
  const std::string bytes = model(graph({node("Softmax", {"x"}, {"y"}, axis)}));
  EXPECT_NE(error_of<FormatError>(bytes).find("attribute 'axis'"), std::string::npos) << error_of<FormatError>(bytes);
  const std::string bytes12 = model(graph({node("Softmax", {"x"}, {"y"}, axis)}), 12);
  EXPECT_NE(error_of<FormatError>(bytes12).find("'axis'"), std::string::npos) << error_of<FormatError>(bytes12);
}

TEST(OnnxImport, RefusesAttributesWithoutTheirValue) {
  const std::string axis = field(5, field(1, std::string("axis")) + field(20, 2));
  EXPECT_EQ(error_of<FormatError>(model(graph({node("Softmax", {"x"}, {"y"}, axis)}))),
            "[onnx] Softmax node \"Softmax_0\": attribute 'axis' lacks the value of its kind 2");
}

TEST(OnnxImport, RefusesUndefinedAndRepeatedNames) {
  EXPECT_EQ(error_of<FormatError>(model(graph({node("Relu", {"z"}, {"y"})}))),
            "[onnx] value 'z': used by Relu node \"Relu_0\" but never defined");
  EXPECT_EQ(error_of<FormatError>(model(graph({node("Relu", {"x"}, {"y"}), node("Relu", {"x"}, {"y"})}))),
            "[onnx] value 'y': defined twice");
  EXPECT_EQ(error_of<FormatError>(model(graph({node("Relu", {"x"}, {"h"})}))),
            "[onnx] value 'y': used by the graph's outputs but never defined");
}

TEST(OnnxImport, RefusesCycles) {
  EXPECT_EQ(error_of<FormatError>(model(graph({node("Relu", {"y"}, {"h"}), node("Relu", {"h"}, {"y"})}))),
            "[onnx] nodes: a cycle goes through or leads to '' (Relu)");
}

TEST(OnnxImport, RefusesTensorsThatContradictThemselves) {
  const auto with = [](const std::string& t) { return model(graph({node("Add", {"x", "w"}, {"y"})}, field(5, t))); };
  EXPECT_EQ(error_of<FormatError>(with(tensor("w", {3}, raw_floats({1, 2})))),
            "[onnx] tensor 'w': raw_data: expected 12 bytes for f32[3], got 8");
  EXPECT_EQ(error_of<FormatError>(with(tensor("w", {-3}, raw_floats({1, 2})))),
            "[onnx] tensor 'w': dims: expected 0 or more, got -3");
  EXPECT_EQ(error_of<FormatError>(with(tensor("w", {int64_t{1} << 40, int64_t{1} << 40}, ""))),
            "[onnx] tensor 'w': dims [1099511627776,1099511627776] overflow 64 bits");
  EXPECT_EQ(error_of<FormatError>(with(tensor("w", {2}, ""))),
            "[onnx] tensor 'w': float_data: expected 2 elements, got 0");
}

TEST(OnnxImport, KeepsToItsBudgets) {
  const std::string bytes =
      model(graph({node("Add", {"x", "w"}, {"y"})}, field(5, tensor("w", {2}, raw_floats({1, 2})))));
  EXPECT_EQ(error_of<BudgetError>(bytes, {.max_tensor_bytes = 4}),
            "[onnx] tensor 'w': 2 elements of f32 exceed the budget of 4 bytes for a tensor");
  EXPECT_EQ(error_of<BudgetError>(bytes, {.max_total_bytes = 4}),
            "[onnx] tensor 'w': with its 8 bytes all tensors exceed the budget of 4 bytes");
  EXPECT_EQ(error_of<BudgetError>(bytes, {.max_nodes = 0}), "[onnx] nodes: more than the budget of 0");
  const std::string huge =
      model(graph({node("Add", {"x", "w"}, {"y"})}, field(5, tensor("w", {int64_t{1} << 40}, ""))));
  EXPECT_NE(error_of<BudgetError>(huge).find("exceed the budget"), std::string::npos);
}

TEST(OnnxImport, EveryTruncationIsAFormatErrorOrAModel) {
  const std::string bytes =
      model(graph({node("Add", {"x", "w"}, {"y"})}, field(5, tensor("w", {2}, raw_floats({1, 2})))));
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(error_of<FormatError>(bytes.substr(0, length)), "no error") << length;
  }
  EXPECT_EQ(error_of<FormatError>(field(1, 8)), "[onnx] model: it has no graph");
}

TEST(OnnxImport, SaysWhatElseAFileIs) {
  const std::string header = "{\"w\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}";
  const std::string safetensors = static_cast<char>(header.size()) + std::string(7, '\0') + header;
  const std::pair<std::string, std::string> files[] = {
      {"", "an empty file"},
      {std::string("PK\3\4\0\0\x08\x08", 8) + std::string(80, '\xfb'), "a zip archive, as PyTorch"},
      {safetensors, "a safetensors file"},
      {std::string("\x1c\0\0\0TFL3", 8) + std::string(80, '\xff'), "a model of TensorFlow Lite"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 97\n", "a pointer of Git LFS"},
      {"\n <!DOCTYPE html>\n<html>", "a page of HTML"},
      {"404: Not Found", "a text that begins with '404: Not Found'"},
      // A GraphDef with one node, which protobuf takes for a model with a field that it does not know.
      {field(1, field(1, "x") + field(2, "Placeholder")), "another protobuf message"}};
  for (const auto& [content, format] : files) {
    EXPECT_TRUE(error_of<FormatError>(content).starts_with("[onnx] model: expected an ONNX file, got " + format))
        << error_of<FormatError>(content);
  }
}

TEST(OnnxImport, RefusesGraphsNestedTooDeep) {
  std::string inner = graph({node("Relu", {"x"}, {"y"})});
  for (int depth = 0; depth < 40; ++depth) {
    inner = graph(
        {node("If", {"x"}, {"y"}, field(5, field(1, std::string("then_branch")) + field(6, inner) + field(20, 5)))});
  }
  EXPECT_NE(error_of<FormatError>(model(inner)), "no error");
}

// A function of domain "f" whose body is one node.
std::string function(const std::string& name, const std::string& op, const std::string& domain) {
  return field(1, name) + field(4, std::string("a")) + field(5, std::string("b")) +
         field(7, node(op, {"a"}, {"b"}, field(7, domain))) + field(9, field(1, std::string("")) + field(2, 17)) +
         field(10, std::string("f"));
}

TEST(OnnxImport, InlinesFunctionsAndNamesTheirNodesAfterTheCall) {
  const std::string call = node("Twice", {"x"}, {"y"}, field(7, std::string("f")) + field(3, std::string("call")));
  const std::string imports = field(8, field(1, std::string("f")) + field(2, 1));
  const std::string bytes = model(graph({call})) + imports + field(25, function("Twice", "Relu", ""));
  const Model loaded = parse_onnx(bytes);
  ASSERT_EQ(loaded.graph.num_nodes(), 1u);
  EXPECT_EQ(loaded.graph.node(loaded.graph.nodes()[0]).provenance().to_string(), "call/Relu_0");
}

TEST(OnnxImport, RefusesFunctionsThatCallThemselves) {
  const std::string call = node("A", {"x"}, {"y"}, field(7, std::string("f")));
  const std::string bytes =
      model(graph({call})) + field(25, function("A", "B", "f")) + field(25, function("B", "A", "f"));
  EXPECT_EQ(error_of<FormatError>(bytes), "[onnx] function 'f::A': calls itself");
}

}  // namespace
}  // namespace autograph::tests
