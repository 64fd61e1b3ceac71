// Training steps on an OpenCL device: forward, backward and update by kernels of the device alone, beside the
// reference.
#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/attention.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/loss.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "autograph/train.h"
#include "gpu/opencl_test_device.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/message_of.h"

namespace autograph {
namespace {

// Weights of a model, each with a seed of its own.
class Weights {
 public:
  explicit Weights(Graph& graph) : graph_(graph) {}
  Var operator()(Dims dims, double low = -0.4, double high = 0.4) {
    Random random(++count_);
    return constant(graph_, draw_tensor(random, DType::f32, std::move(dims), low, high), "w" + std::to_string(count_));
  }

 private:
  Graph& graph_;
  uint64_t count_ = 0;
};

Graph make_mlp() {
  Graph graph("mlp");
  Weights w(graph);
  const Var x = input(graph, DType::f32, {16, 2, 8, 8}, "x");
  Var y = relu(gemm(flatten(x), w({128, 48}), w({48})));
  y = layer_normalization(y, w({48}, 0.5, 1.5), w({48}));
  graph.add_output(gemm(gelu(y), w({48, 3}), w({3})).id(), "scores");
  return graph;
}

// With strides, a batch norm, a depthwise convolution, a residual and both kinds of pools.
Graph make_cnn() {
  Graph graph("cnn");
  Weights w(graph);
  const Var x = input(graph, DType::f32, {16, 2, 8, 8}, "x");
  Var y = conv(x, w({8, 2, 3, 3}), w({8}), {.pads = {1, 1, 1, 1}});
  y = relu(batch_normalization(y, w({8}, 0.5, 1.5), w({8}), w({8}), w({8}, 0.5, 1.5)));
  y = max_pool(y, {.kernel = {3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}});
  y = y + relu(conv(y, w({8, 1, 3, 3}), w({8}), {.pads = {1, 1, 1, 1}, .group = 8}));
  y = average_pool(conv(y, w({12, 8, 1, 1}), {}, {.strides = {2, 2}}), {.kernel = {2, 2}});
  graph.add_output(gemm(flatten(y), w({12, 3}), w({3})).id(), "scores");
  return graph;
}

// Layers of each kind and direction, one over what the other gives, over 16 positions.
Graph make_recurrent() {
  constexpr int64_t kHidden = 12;
  Graph graph("layers");
  Weights w(graph);
  const Var x = input(graph, DType::f32, {16, 2, 8, 8}, "x");
  const auto layer = [&](const OpDef& op, int64_t gates, const Var& in, const std::string& direction) {
    const int64_t directions = direction == "bidirectional" ? 2 : 1, rows = gates * kHidden;
    const std::vector<Var> inputs{in, w({directions, rows, in.dim(2)}), w({directions, rows, kHidden}),
                                  w({directions, 2 * rows})};
    const Var y = apply_all(op, inputs, {{"direction", direction}}, 1)[0];
    return reshape(transpose(y, {0, 2, 1, 3}), {16, 16, directions * kHidden});
  };
  Var y = layer(lstm_def(), 4, transpose(reshape(x, {16, 16, 8}), {1, 0, 2}), "bidirectional");
  y = layer(rnn_def(), 1, layer(gru_def(), 3, y, "forward"), "reverse");
  const Var features = reshape(transpose(y, {1, 0, 2}), {16, 16 * kHidden});
  graph.add_output(gemm(features, w({16 * kHidden, 3}), w({3})).id(), "scores");
  return graph;
}

std::vector<Datum> draw_batch(Random& random) {
  return {draw_tensor(random, DType::f32, {16, 2, 8, 8}, -1, 1), draw_tensor(random, DType::i64, {16}, 0, 2)};
}

// What ran on the host, "" for nothing.
std::string host_steps(const Executable& program) {
  std::string list;
  for (const KernelChoice& choice : program.kernel_choices()) {
    if (choice.kernel == "reference") list += choice.op + " " + testing::PrintToString(choice.refusals) + "\n";
  }
  return list;
}

void expect_same_training(const Graph& model, const Optimizer& optimizer, int steps) {
  const Graph step = training_graph(model, {.optimizer = optimizer, .update = {.clip_norm = 1.0}});
  const Executable there = compile(step, on_opencl());
  const Executable here = compile(step, on_reference());
  EXPECT_EQ(host_steps(there), "");
  Random random(7);
  for (int i = 0; i < steps; ++i) {
    const std::vector<Datum> batch = draw_batch(random);
    const double expected = here.run(batch)["loss"].to_f64()[0];
    EXPECT_NEAR(there.run(batch)["loss"].to_f64()[0], expected, 1e-3 * expected) << "step " << i;
  }
  for (const std::string& name : here.states().names()) {
    EXPECT_EQ(difference(there.states().get(name), here.states().get(name), {2e-3, 2e-4}), "") << name;
  }
}

TEST(OpenClTraining, OfAnMlpIsThatOfTheReference) {
  AG_NEEDS_OPENCL();
  expect_same_training(make_mlp(), Sgd{.learning_rate = 0.1, .momentum = 0.9}, 5);
}

TEST(OpenClTraining, OfAConvolutionalNetworkIsThatOfTheReference) {
  AG_NEEDS_OPENCL();
  expect_same_training(make_cnn(), Sgd{.learning_rate = 0.05, .momentum = 0.9}, 4);
}

TEST(OpenClTraining, OfRecurrentLayersIsThatOfTheReference) {
  AG_NEEDS_OPENCL();
  expect_same_training(make_recurrent(), Sgd{.learning_rate = 0.1, .momentum = 0.9}, 3);
}

TEST(OpenClTraining, WithAdamWIsThatOfTheReference) {
  AG_NEEDS_OPENCL();
  expect_same_training(make_mlp(), AdamW{.learning_rate = 0.01}, 3);
}

// The moments wait on the host, and the numbers are the same.
TEST(OpenClTraining, WithColdStatesIsThatWithRoomForAll) {
  AG_NEEDS_OPENCL();
  const Graph step = training_graph(make_mlp(), {.optimizer = AdamW{.learning_rate = 0.01}});
  const Executable warm = compile(step, on_opencl());
  CompileOptions options = on_opencl();
  options.memory_budget_bytes = warm.memory().arena_bytes + warm.states().size_bytes() - 1024;
  const Executable cold = compile(step, options);
  EXPECT_NE(cold.print_plan().find("copy [to host]"), std::string::npos);
  Random random(7);
  for (int i = 0; i < 3; ++i) {
    const std::vector<Datum> batch = draw_batch(random);
    EXPECT_TRUE(cold.run(batch)["loss"].bitwise_equal(warm.run(batch)["loss"])) << "step " << i;
  }
  for (const std::string& name : warm.states().names()) {
    EXPECT_TRUE(cold.states().get(name).bitwise_equal(warm.states().get(name))) << name;
  }
}

// Positions enough to be cut into parts.
TEST(OpenClTraining, GradientsOfWeightsAddUpManyPositions) {
  AG_NEEDS_OPENCL();
  for (const int64_t group : {1, 2}) {
    Random random(static_cast<uint64_t>(group));
    GraphBuilder graph;
    std::vector<Datum> inputs{draw_tensor(random, DType::f32, {3, 4, 21, 22}),
                              draw_tensor(random, DType::f32, {3, 6, 21, 22})};
    const Var x = graph.input("x", DType::f32, {3, 4, 21, 22});
    const Var gy = graph.input("gy", DType::f32, {3, 6, 21, 22});
    graph.output("w", conv_grad_weight(x, gy, {3, 3}, {.pads = {1, 1, 1, 1}, .group = group}));
    EXPECT_EQ(difference_on_opencl(graph.build(), inputs, {1e-4, 1e-3}), "") << group;
  }
}

TEST(OpenClTraining, FindsLabelsThatAreNoClass) {
  AG_NEEDS_OPENCL();
  GraphBuilder graph;
  const Var scores = graph.input("scores", DType::f32, {2, 3});
  const Var labels = graph.input("labels", DType::i64, {2});
  graph.output("loss", softmax_cross_entropy_loss(scores, labels));
  const Executable there = compile(graph.build(), on_opencl());
  const Tensor values = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const std::string message = message_of<ValueError>([&] { there.run({values, Tensor::vector({0, 3})}); });
  EXPECT_EQ(message.find("[loss] labels: expected 0..2, got 3"), 0U) << message;
}

}  // namespace
}  // namespace autograph
