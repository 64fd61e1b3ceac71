// Names in exported models: ONNX Runtime refuses a file in which two nodes share one.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autograph/model_io.h"
#include "autograph/op_def.h"

namespace autograph {
namespace {

// A chain of relus whose nodes have the given origins.
Graph chain(const std::vector<std::string>& origins) {
  Graph graph("chain");
  ValueId x = graph.add_input(Type(DType::f32, {2}), "x");
  for (const std::string& origin : origins) {
    NodeOptions options;
    if (!origin.empty()) options.provenance = Provenance::named(origin);
    x = graph.node(graph.add_node(get_op("relu"), {x}, {}, options)).output(0);
  }
  graph.add_output(x, "y");
  return graph;
}

std::vector<std::string> exported_names(const std::vector<std::string>& origins) {
  const Model loaded = parse_onnx(serialize_onnx(chain(origins)));
  std::vector<std::string> names;
  for (const NodeId id : loaded.graph.topological_order()) {
    names.push_back(loaded.graph.node(id).provenance().to_string());
  }
  return names;
}

TEST(OnnxExportNames, NodesOfOneOriginGetDistinctNames) {
  EXPECT_EQ(exported_names({"block/relu", "block/relu", "head", "block/relu"}),
            (std::vector<std::string>{"block/relu", "block/relu_2", "head", "block/relu_3"}));
}

TEST(OnnxExportNames, ANameThatLooksLikeACopyIsNotTakenTwice) {
  EXPECT_EQ(exported_names({"a", "a_2", "a", "a_2"}), (std::vector<std::string>{"a", "a_2", "a_3", "a_2_2"}));
}

TEST(OnnxExportNames, DocAndMetadataOfTheModelAreKept) {
  SaveOptions options;
  options.doc = "what it is for";
  options.metadata = {{"author", "somebody"}, {"empty", ""}};
  const Model loaded = parse_onnx(serialize_onnx(chain({"a"}), options));
  EXPECT_EQ(loaded.doc, options.doc);
  EXPECT_EQ(loaded.metadata, options.metadata);
}

}  // namespace
}  // namespace autograph
