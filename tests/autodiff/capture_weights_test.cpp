// Weights that stand inside the bodies of loops and branches, as importers leave them there.
#include <gtest/gtest.h>

#include <memory>

#include "autodiff/drawn_weights.h"
#include "autograph/autodiff.h"
#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/model_io.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/seeded_inputs.h"
#include "autograph/state_store.h"
#include "autograph/train.h"
#include "autograph/verify.h"
#include "ops/defs.h"
#include "support/compare.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

using Names = std::vector<std::string>;

// The only output of a node with bodies.
Var output_of(Graph& graph, const OpDef& op, std::vector<ValueId> inputs, Attributes attributes) {
  return {graph,
          graph.node(graph.add_node(op, std::move(inputs), std::move(attributes), {.provenance = {}, .num_outputs = 1}))
              .output(0)};
}

// relu of a weight.
GraphRef branch(const Tensor& weight, const std::string& name) {
  const auto graph = std::make_shared<Graph>();
  graph->add_output(relu(constant(*graph, weight, name)).id());
  return graph;
}

// One turn of s = tanh(s * w + (first ? then : else)), where a matrix is a weight and a number none.
GraphRef turn(const Tensor& w) {
  const auto graph = std::make_shared<Graph>();
  const Var i = input(*graph, DType::i64, {}, "i"), condition = input(*graph, DType::boolean, {}, "condition");
  const Var s = input(*graph, DType::f32, {2, 3}, "s");
  const Var is_first = equal(i, constant(*graph, Tensor::scalar(int64_t{0})));
  const Var bias = output_of(*graph, if_def(), {is_first.id()},
                             {{"then_branch", branch(drawn_weights({3}, 2), "first")},
                              {"else_branch", branch(drawn_weights({3}, 3), "later")}});
  const Var half = constant(*graph, Tensor::scalar(0.5F), "half");
  graph->add_output(condition.id());
  graph->add_output(tanh(matmul(s, constant(*graph, w, "w")) * half + bias).id());
  return graph;
}

// A loop over a body whose matrix is read behind it, too.
Graph make_model() {
  Graph graph("model");
  const Tensor w = drawn_weights({3, 3}, 1);
  const Var x = input(graph, DType::f32, {2, 3}, "x"), turns = input(graph, DType::i64, {}, "turns");
  const Var state = output_of(graph, loop_def(), {turns.id(), {}, x.id()}, {{"body", turn(w)}});
  graph.add_output(matmul(state, constant(graph, w, "w")).id(), "y");
  return graph;
}

std::vector<Datum> inputs() { return {drawn_weights({2, 3}, 7), Tensor::scalar(int64_t{3})}; }

TEST(CaptureWeights, OfLoopsAndBranchesLearn) {
  const TrainableModel model = make_trainable(make_model(), {});
  EXPECT_EQ(model.weights, (Names{"w", "later", "first"}));
  verify(model.graph);
  const Executable program =
      compile(training_graph(make_model(), {.loss = "mean", .optimizer = Sgd{.learning_rate = 0.1}}));
  double last = program.run(inputs())["loss"].to_f64()[0];
  for (int i = 0; i < 3; ++i) {
    const double loss = program.run(inputs())["loss"].to_f64()[0];
    EXPECT_LT(loss, last);
    last = loss;
  }
}

TEST(CaptureWeights, HaveTheGradientsOfDifferences) {
  GradientGraphOptions options;
  options.loss = "mean";
  const Graph gradients = gradient_graph(make_model(), options);
  const Outputs found = compile(gradients).run(inputs());
  for (const std::string name : {"w", "first", "later"}) {
    double sum = 0;  // the slope along ones
    for (const double g : found["grad/" + name].to_f64()) sum += g;
    const auto loss_at = [&](float step) {
      Graph graph = make_trainable(make_model(), {}).graph;
      for (const ValueId id : graph.states()) {
        if (graph.value(id).name() != name) continue;
        std::vector<float> moved;
        for (const double v : graph.value(id).initial().to_f64()) moved.push_back(static_cast<float>(v) + step);
        graph.set_initial(id, Tensor::of<float>(graph.value(id).initial().dims(), moved));
      }
      double loss = 0;
      const std::vector<double> y = compile(graph).run(inputs())["y"].to_f64();
      for (const double v : y) loss += v / static_cast<double>(y.size());
      return loss;
    };
    EXPECT_NEAR(sum, (loss_at(1e-2F) - loss_at(-1e-2F)) / 2e-2, 1e-3) << name;
  }
}

TEST(CaptureWeights, GoBackIntoAFile) {
  Graph evaluation = make_trainable(make_model(), {}).graph;
  const auto expected = compile(make_model()).run(inputs());
  EXPECT_EQ(difference(compile(evaluation).run(inputs())[0], expected[0]), "");
  evaluation.freeze();
  const TestFolder folder;
  const std::string path = folder / "trained.onnx";
  save_onnx(evaluation, path);
  const Graph loaded = load_onnx(path).graph;
  EXPECT_EQ(difference(compile(loaded).run(inputs())[0], expected[0], {1e-6, 1e-6}), "");
  EXPECT_EQ(make_trainable(loaded, {}).weights.size(), 3U);
}

}  // namespace
}  // namespace autograph
