// The zoo as a table: every entry builds a valid graph, the names answer typos, the batch reaches inputs and outputs.
#include "autograph/zoo.h"

#include <gtest/gtest.h>

#include <set>

#include "autograph/verify.h"

namespace autograph {
namespace {

std::string message_of(const std::string& name, int64_t batch = 1) {
  try {
    build_zoo_model(name, batch);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Zoo, HasTheNamesOfTheContractInOrder) {
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo_models()) {
    if (!entry.is_variant) names.push_back(entry.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"inception_v3",       "resnet50",     "resnext50", "nasnet_a",
                                             "nasnet_mobile",      "nasnet_large", "rnntc_sru", "bert",
                                             "nasnet_cell",        "squeezenet",   "randwire",  "nasrnn",
                                             "bert_base",          "transformer",  "decoder",   "decoder_step",
                                             "mixture_of_experts", "two_towers",   "bilstm",    "bigru",
                                             "inception_resnet",   "multi_task",   "mlp"}));
}

TEST(Zoo, UnknownNamesAreAnsweredWithTheNearest) {
  EXPECT_EQ(message_of("resnet5"), "[zoo] model 'resnet5': unknown (did you mean 'resnet50'?); 'zoo list' prints all " +
                                       std::to_string(zoo_models().size()));
}

TEST(Zoo, BatchMustBePositive) {
  EXPECT_EQ(message_of("mlp", 0), "[zoo] batch: expected 1 or more, got 0 (model mlp)");
}

// One test for each entry, so that a failure names the model.
class ZooModel : public ::testing::TestWithParam<ZooEntry> {};

TEST_P(ZooModel, IsValidDescribedAndFullyTyped) {
  const Graph graph = build_zoo_model(GetParam().name);
  EXPECT_NO_THROW(verify(graph));
  EXPECT_EQ(graph.name(), GetParam().name);
  EXPECT_FALSE(GetParam().description.empty());
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    for (const ValueId output : node.outputs()) {
      EXPECT_TRUE(graph.type(output).is_static()) << describe(graph, id) << " is " << to_string(graph.type(output));
    }
    EXPECT_FALSE(node.provenance().empty()) << describe(graph, id);
  }
}

TEST_P(ZooModel, OutlineHasItsNodesTypesAndSmallConstants) {
  const Graph model = build_zoo_model(GetParam().name);
  const Graph outline = outline_zoo_model(GetParam().name);
  ASSERT_EQ(outline.value_capacity(), model.value_capacity());
  ASSERT_EQ(outline.nodes(), model.nodes());
  for (const NodeId id : model.nodes()) {
    EXPECT_EQ(&outline.node(id).op(), &model.node(id).op()) << describe(model, id);
    EXPECT_EQ(outline.node(id).inputs(), model.node(id).inputs()) << describe(model, id);
    for (const ValueId output : model.node(id).outputs()) EXPECT_EQ(outline.type(output), model.type(output));
  }
  ASSERT_EQ(outline.constants(), model.constants());
  for (const ValueId id : model.constants()) {
    const Tensor& weight = model.value(id).constant();
    const Tensor& outlined = outline.value(id).constant();
    EXPECT_EQ(outlined.type(), weight.type()) << model.value(id).name();
    if (weight.num_elements() <= 4096) {
      EXPECT_TRUE(outlined.bitwise_equal(weight)) << model.value(id).name();
    }
  }
}

TEST_P(ZooModel, NamesOfParametersAreDistinct) {
  const Graph graph = outline_zoo_model(GetParam().name);
  std::set<std::string> seen;
  for (const ValueId id : graph.constants()) {
    const std::string& name = graph.value(id).name();
    if (name.empty()) continue;
    EXPECT_TRUE(seen.insert(name).second) << name << " twice: equal weights by accident";
  }
}

TEST_P(ZooModel, BatchMultipliesTheFirstExtent) {
  const Graph one = outline_zoo_model(GetParam().name, 1);
  const Graph three = outline_zoo_model(GetParam().name, 3);
  EXPECT_EQ(one.num_nodes(), three.num_nodes());
  const auto expect_tripled = [&](ValueId small, ValueId large) {
    EXPECT_EQ(three.type(large).shape()[0].value(), 3 * one.type(small).shape()[0].value());
  };
  for (size_t i = 0; i < one.inputs().size(); ++i) expect_tripled(one.inputs()[i], three.inputs()[i]);
  for (size_t i = 0; i < one.outputs().size(); ++i) expect_tripled(one.outputs()[i], three.outputs()[i]);
}

INSTANTIATE_TEST_SUITE_P(All, ZooModel, ::testing::ValuesIn(zoo_models()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace autograph
