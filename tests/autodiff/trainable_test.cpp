// Models whose weights learn: which constants become states, batch norms with running statistics, and the way back to
// an ordinary model.
#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/drawn_weights.h"
#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/model_io.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/vision.h"
#include "autograph/ops/window.h"
#include "autograph/seeded_inputs.h"
#include "autograph/state_store.h"
#include "autograph/train.h"
#include "autograph/zoo.h"
#include "ops/defs.h"
#include "support/compare.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

using Names = std::vector<std::string>;

// A convolution, a batch norm, a mask, a resize by scales, a scalar, and a product.
Graph make_model() {
  Graph graph("model");
  const Var x = input(graph, DType::f32, {2, 3, 4, 4}, "x");
  Var y = conv(x, constant(graph, drawn_weights({5, 3, 1, 1}, 1), "conv.weight"));
  y = batch_normalization(y, constant(graph, drawn_weights({5}, 2), "bn.weight"),
                          constant(graph, drawn_weights({5}, 3), "bn.bias"),
                          constant(graph, drawn_weights({5}, 4), "bn.mean"),
                          constant(graph, Tensor::of<float>({5}, {1, 2, 0.5F, 1, 3}), "bn.var"));
  y = relu(y) * constant(graph, Tensor::scalar(0.5F), "half");
  y = apply(resize_def(), {y, {}, constant(graph, Tensor::of<float>({4}, {1, 1, 2, 2}), "scales")}, {});
  y = relu(y + constant(graph, Tensor::of<float>({1, 1, 1, 8}, {0, 0, 0, 0, 0, 0, 0, -INFINITY}), "mask"));
  y = reduce_mean(y * constant(graph, drawn_weights({5, 8, 1}, 5)), {2, 3}, false);
  y = matmul(y, constant(graph, drawn_weights({5, 4}, 6), "fc.weight"));
  graph.add_output(y.id(), "y");
  return graph;
}

Names state_names(const Graph& graph) {
  Names names;
  for (const ValueId id : graph.states()) names.push_back(graph.value(id).name());
  return names;
}

TEST(Trainable, WeightsAreWhatLearns) {
  const TrainableModel model = make_trainable(make_model());
  EXPECT_EQ(model.weights, (Names{"conv.weight", "bn.weight", "bn.bias", "mul/b", "fc.weight"}));
  EXPECT_EQ(state_names(model.graph),
            (Names{"conv.weight", "bn.weight", "bn.bias", "mul/b", "fc.weight", "bn.mean", "bn.var"}));
  // The extents behind the resize are still known.
  EXPECT_TRUE(model.graph.type(model.graph.outputs()[0]).is_static());
}

// PyTorch users write masks as 0 and -10,000; a mask that learned would show other tokens little by little.
TEST(Trainable, FiniteMasksDoNotLearn) {
  Graph graph("scores");
  const Var x = input(graph, DType::f32, {2, 2}, "x");
  const Var scores = x + constant(graph, Tensor::of<float>({2, 2}, {0, -1e4F, 0, 0}), "mask");
  const Var biased = scores + constant(graph, Tensor::of<float>({2}, {0, -3}), "bias");
  graph.add_output((biased * constant(graph, Tensor::of<float>({2}, {-2000, 1}), "large")).id(), "y");
  EXPECT_EQ(make_trainable(graph).weights, (Names{"bias", "large"}));
}

TEST(Trainable, WeightsByName) {
  EXPECT_EQ(make_trainable(make_model(), {.weights = "*.weight"}).weights,
            (Names{"conv.weight", "bn.weight", "fc.weight"}));
  EXPECT_EQ(make_trainable(make_model(), {.weights = "fc.*,bn.bias"}).weights, (Names{"bn.bias", "fc.weight"}));
  EXPECT_EQ(message_of<ValueError>([] { make_trainable(make_model(), {.weights = "fc.wieght"}); }),
            "[train] weights: no float weight of the model is called 'fc.wieght' (did you mean 'fc.weight'?)");
  EXPECT_NE(message_of<ValueError>([] {
              make_trainable(make_model(), {.weights = "layer*"});
            }).find("(there are conv.weight, "),
            std::string::npos);
}

TEST(Trainable, EvaluatesAsTheModelDoes) {
  const Graph model = make_model();
  const Graph trainable = make_trainable(model, {.batch_statistics = false}).graph;
  EXPECT_TRUE(trainable.updates().empty());
  const std::vector<Datum> inputs = seeded_inputs(model, {});
  EXPECT_EQ(difference(compile(trainable).run(inputs)[0], compile(model).run(inputs)[0], {1e-5, 1e-5}), "");
}

// torch.nn.BatchNorm2d: the batch is normalised with its own variance, the running one is that of a sample.
TEST(Trainable, BatchNormsFollowTheirBatches) {
  Graph graph;
  const Var x = input(graph, DType::f32, {4, 1, 1, 1}, "x");
  const Var one = constant(graph, Tensor::of<float>({1}, {1})), zero = constant(graph, Tensor::of<float>({1}, {0}));
  const Var y = batch_normalization(x, one, zero, constant(graph, Tensor::of<float>({1}, {10}), "mean"),
                                    constant(graph, Tensor::of<float>({1}, {20}), "var"), 0.0F);
  graph.add_output(y.id(), "y");
  const Executable program = compile(make_trainable(graph).graph);
  // Mean 3, sum of squares about it 20: 5 as a population, 20 / 3 as a sample.
  const auto out = program.run({Tensor::of<float>({4, 1, 1, 1}, {0, 2, 4, 6})});
  EXPECT_NEAR(out[0].tensor().to_f64()[0], -3 / std::sqrt(5), 1e-5);
  EXPECT_NEAR(program.states().get("mean").to_f64()[0], 0.9 * 10 + 0.1 * 3, 1e-5);
  EXPECT_NEAR(program.states().get("var").to_f64()[0], 0.9 * 20 + 0.1 * 20 / 3, 1e-5);
}

TEST(Trainable, TwoBatchNormsWithTheSameStatisticsFollowBoth) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 1}, "x");
  const Var mean = constant(graph, Tensor::of<float>({1}, {0}), "mean");
  const Var variance = constant(graph, Tensor::of<float>({1}, {1}), "var");
  const auto normalise = [&](const Var& value) {
    return batch_normalization(value, constant(graph, Tensor::of<float>({1}, {1})),
                               constant(graph, Tensor::of<float>({1}, {0})), mean, variance);
  };
  graph.add_output(normalise(x).id(), "a");
  graph.add_output(normalise(x + 10).id(), "b");
  const Executable program = compile(make_trainable(graph).graph);
  program.run({Tensor::of<float>({2, 1}, {1, 3})});
  EXPECT_NEAR(program.states().get("mean").to_f64()[0], 0.9 * (0.1 * 2) + 0.1 * 12, 1e-5);
}

// What was learned is an ordinary model again, with the same names of weights.
TEST(Trainable, TrainedWeightsGoBackIntoAFile) {
  const Graph model = make_model();
  const Executable program = compile(training_graph(model, {.loss = "mean", .optimizer = Sgd{.learning_rate = 0.5}}));
  const std::vector<Datum> inputs = seeded_inputs(model, {});
  for (int i = 0; i < 3; ++i) program.run(inputs);

  CompileOptions options;
  options.states = program.states();
  Graph evaluation = make_trainable(model, {.batch_statistics = false}).graph;
  const auto expected = compile(evaluation, options).run(inputs);
  program.states().copy_to(evaluation);
  evaluation.freeze();
  const TestFolder folder;
  const std::string path = folder / "trained.onnx";
  save_onnx(evaluation, path);
  const Graph loaded = load_onnx(path).graph;
  EXPECT_EQ(difference(compile(loaded).run(inputs)[0], expected[0], {1e-5, 1e-5}), "");
  Names names;
  for (const ValueId id : loaded.constants()) names.push_back(loaded.value(id).name());
  EXPECT_TRUE(std::count(names.begin(), names.end(), "fc.weight")) << ::testing::PrintToString(names);
  EXPECT_NE(difference(expected[0], compile(model).run(inputs)[0]), "");
}

// Nearly all floats of a model are weights.
TEST(Trainable, ModelsOfTheZoo) {
  for (const std::string name : {"mlp", "squeezenet", "bilstm", "transformer"}) {
    SCOPED_TRACE(name);
    const Graph model = build_zoo_model(name);
    const TrainableModel trainable = make_trainable(model);
    size_t floats = 0;
    for (const ValueId id : trainable.graph.constants()) {
      const Tensor& constant = trainable.graph.value(id).constant();
      floats += constant.dtype() == DType::f32 && constant.rank() > 1 ? 1U : 0U;
    }
    EXPECT_GT(trainable.weights.size(), 2 * floats);
  }
}

}  // namespace
}  // namespace autograph
