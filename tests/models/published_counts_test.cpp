// Counts of the zoo's models against published ones: ops and arithmetic from the papers' artifacts, parameters from
// torchvision and Keras. A model with a wrong stride, width or missing branch fails here.
#include <gtest/gtest.h>

#include "autograph/zoo.h"
#include "models/zoo_facts.h"

namespace autograph {
namespace {

using tests::facts_of;
using tests::ZooFacts;

Dims output_dims(const Graph& graph) { return graph.type(graph.outputs().front()).shape().static_dims(); }

TEST(PublishedCounts, NasnetA) {
  const Graph graph = build_zoo_model("nasnet_a");
  const ZooFacts facts = facts_of(graph);
  EXPECT_EQ(facts.schedulable, 383);
  EXPECT_EQ(facts.ops.at("conv"), 217);
  EXPECT_EQ(facts.ops.at("add"), 90);
  EXPECT_EQ(facts.ops.at("max_pool") + facts.ops.at("average_pool"), 58);
  EXPECT_EQ(facts.ops.at("concat"), 18);
  EXPECT_NEAR(facts.gflop, 30.1, 0.05);
  EXPECT_EQ(output_dims(graph), (Dims{1, 5120, 7, 7}));
}

TEST(PublishedCounts, NasnetCell) {
  const Graph graph = build_zoo_model("nasnet_cell");
  const ZooFacts facts = facts_of(graph);
  EXPECT_EQ(facts.schedulable, 21);
  EXPECT_EQ(facts.ops.at("conv"), 12);
  EXPECT_EQ(facts.ops.at("average_pool"), 3);
  EXPECT_EQ(facts.ops.at("add"), 5);
  EXPECT_EQ(output_dims(graph), (Dims{1, 1280, 28, 28}));
}

TEST(PublishedCounts, ResnetOfTaso) {
  const Graph graph = build_zoo_model("resnet50_taso");
  const ZooFacts facts = facts_of(graph);
  EXPECT_EQ(facts.schedulable, 84);
  EXPECT_EQ(facts.ops.at("conv"), 52);
  EXPECT_EQ(facts.ops.at("add"), 16);
  EXPECT_NEAR(facts.gflop, 7.94, 0.005);
  EXPECT_EQ(output_dims(graph), (Dims{1, 2048, 7, 7}));
}

TEST(PublishedCounts, ResnextOfTaso) {
  const Graph graph = build_zoo_model("resnext50_taso");
  const ZooFacts facts = facts_of(graph);
  EXPECT_EQ(facts.schedulable, 86);
  EXPECT_EQ(facts.ops.at("conv"), 53);
  EXPECT_NEAR(facts.gflop, 8.46, 0.005);
  EXPECT_EQ(output_dims(graph), (Dims{1, 2048, 7, 7}));
}

TEST(PublishedCounts, InceptionOfTaso) {
  const Graph graph = build_zoo_model("inception_v3");
  const ZooFacts facts = facts_of(graph);
  EXPECT_EQ(facts.schedulable, 119);
  EXPECT_EQ(facts.ops.at("conv"), 94);
  EXPECT_EQ(facts.ops.at("concat"), 11);
  EXPECT_NEAR(facts.gflop / 2, 5.79, 0.1);  // published in multiply-adds
  EXPECT_EQ(output_dims(graph), (Dims{1, 2048, 1, 1}));
}

TEST(PublishedCounts, RecurrentModels) {
  const ZooFacts shared = facts_of(build_zoo_model("rnntc_sru"));
  EXPECT_EQ(shared.schedulable, 220);
  EXPECT_EQ(shared.ops.at("matmul"), 60);
  EXPECT_EQ(shared.parameters, 3 * 1024 * 1024);
  const ZooFacts unshared = facts_of(build_zoo_model("rnntc_sru_unshared"));
  EXPECT_EQ(unshared.schedulable, 220);
  EXPECT_EQ(unshared.parameters, 60 * 1024 * 1024);
  const ZooFacts nasrnn = facts_of(build_zoo_model("nasrnn"));
  EXPECT_EQ(nasrnn.schedulable, 230);
  EXPECT_EQ(nasrnn.ops.at("matmul"), 80);
}

TEST(PublishedCounts, BertOfTaso) {
  const ZooFacts shipped = facts_of(build_zoo_model("bert_taso_as_shipped"));
  EXPECT_EQ(shipped.schedulable, 113);
  EXPECT_NEAR(shipped.gflop, 70.9, 0.05);
  const ZooFacts mended = facts_of(build_zoo_model("bert"));
  EXPECT_EQ(mended.schedulable, 113 + 8);
  EXPECT_EQ(mended.ops.at("softmax"), 8);
  EXPECT_NEAR(mended.gflop, 70.9, 0.05);
}

TEST(PublishedCounts, ParametersOfTorchvision) {
  EXPECT_EQ(facts_of(build_zoo_model("resnet50")).parameters, 25557032);
  EXPECT_EQ(facts_of(build_zoo_model("resnext50")).parameters, 25028904);
  EXPECT_EQ(facts_of(build_zoo_model("squeezenet")).parameters, 1235496);
}

TEST(PublishedCounts, ArithmeticOfTorchvision) {
  EXPECT_NEAR(facts_of(build_zoo_model("resnet50")).gflop / 2, 4.09, 0.01);
  EXPECT_NEAR(facts_of(build_zoo_model("resnext50")).gflop / 2, 4.23, 0.01);
  EXPECT_NEAR(facts_of(build_zoo_model("squeezenet")).gflop / 2, 0.349, 0.001);
}

TEST(PublishedCounts, NasnetOfKeras) {
  const ZooFacts mobile = facts_of(build_zoo_model("nasnet_mobile"));
  EXPECT_EQ(mobile.parameters, 5289978);
  EXPECT_NEAR(mobile.gflop / 2, 0.564, 0.02);
  const ZooFacts large = facts_of(build_zoo_model("nasnet_large"));
  EXPECT_EQ(large.parameters, 88753150);
  EXPECT_NEAR(large.gflop / 2, 23.8, 0.5);
}

TEST(PublishedCounts, BertBase) {
  // 12 layers of 7,087,872; word, position (128) and type embeddings; one norm.
  EXPECT_EQ(facts_of(build_zoo_model("bert_base")).parameters - 12,  // 12 scale factors of the logits
            12 * 7087872 + (30522 + 128 + 1) * 768 + 2 * 768);
}

TEST(PublishedCounts, InceptionResnetOfTimm) {
  const ZooFacts facts = facts_of(build_zoo_model("inception_resnet"));
  EXPECT_EQ(facts.parameters - 40, 55843464);  // 40 scales of residuals
  EXPECT_NEAR(facts.gflop / 2, 13.2, 0.2);
}

// By the sums of their layers.
TEST(PublishedCounts, RecurrentStacks) {
  const auto weights = [](int64_t gates, int64_t in) { return 2 * gates * 256 * (in + 256 + 2); };
  const int64_t labels = 512 * 32 + 32;
  EXPECT_EQ(facts_of(build_zoo_model("bilstm")).parameters, weights(4, 128) + 2 * weights(4, 512) + labels);
  EXPECT_EQ(facts_of(build_zoo_model("bigru")).parameters, weights(3, 128) + 2 * weights(3, 512) + labels);
}

TEST(PublishedCounts, RandwireHasThreeStagesOf32SeparableNodes) {
  const ZooFacts facts = facts_of(build_zoo_model("randwire"));
  EXPECT_EQ(facts.ops.at("conv"), 2 + 3 * 32 * 2 + 1);
  EXPECT_EQ(facts.ops.at("batch_normalization"), 2 + 3 * 32 + 1);
}

}  // namespace
}  // namespace autograph
