// A warm training step allocates nothing of ours: forward pass, gradients and updates of four kinds of models. What
// oneDNN allocates in a call of its own (its table of arguments) is counted apart.
#include <gtest/gtest.h>

#include <string>

#include "allocation/counters.h"
#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/attention.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "autograph/train.h"
#include "ops/sample.h"

namespace autograph {
namespace {

constexpr int64_t kBatch = 4, kClasses = 10, kWidth = 32;

// A model whose weights are drawn one after the other.
class Model {
 public:
  explicit Model(const std::string& name) : graph_(name) {}

  Var input(Shape shape) { return autograph::input(graph_, DType::f32, std::move(shape), "x"); }
  Var weight(const Dims& dims) {
    return constant(graph_, draw_tensor(random_, DType::f32, dims, -0.3, 0.3), "w" + std::to_string(count_++));
  }
  Var linear(const Var& x, int64_t inputs, int64_t outputs) {
    return add(matmul(x, weight({inputs, outputs})), weight({outputs}));
  }
  Graph finish(const Var& scores) {
    graph_.add_output(scores.id(), "scores");
    return std::move(graph_);
  }

 private:
  Graph graph_;
  Random random_{1};
  int count_ = 0;
};

Graph mlp() {
  Model model("mlp");
  const Var hidden = relu(model.linear(model.input({kBatch, kWidth}), kWidth, 2 * kWidth));
  return model.finish(model.linear(hidden, 2 * kWidth, kClasses));
}

Graph cnn() {
  Model model("cnn");
  ConvOptions padded;
  padded.pads = {1, 1, 1, 1};
  PoolOptions halves;
  halves.kernel = {2, 2};
  halves.strides = {2, 2};
  Var y = conv(model.input({kBatch, 3, 16, 16}), model.weight({16, 3, 3, 3}), model.weight({16}), padded);
  y = batch_normalization(y, model.weight({16}), model.weight({16}), model.weight({16}), abs(model.weight({16})));
  y = max_pool(relu(y), halves);
  y = relu(conv(y, model.weight({32, 16, 3, 3}), model.weight({32}), padded));
  return model.finish(model.linear(reshape(global_average_pool(y), {kBatch, 32}), 32, kClasses));
}

// One block behind embeddings.
Graph transformer() {
  constexpr int64_t kLength = 16, kHeads = 2;
  Model model("transformer");
  Var x = model.input({kBatch, kLength, kWidth});
  const Var normed = layer_normalization(x, model.weight({kWidth}), model.weight({kWidth}));
  const auto heads = [&] {
    return transpose(reshape(model.linear(normed, kWidth, kWidth), {kBatch, kLength, kHeads, kWidth / kHeads}),
                     {0, 2, 1, 3});
  };
  const Var q = heads(), k = heads(), v = heads();
  const Var joined = reshape(transpose(attention(q, k, v), {0, 2, 1, 3}), {kBatch, kLength, kWidth});
  x = add(x, model.linear(joined, kWidth, kWidth));
  const Var hidden = gelu(model.linear(layer_normalization(x, model.weight({kWidth})), kWidth, 4 * kWidth));
  x = add(x, model.linear(hidden, 4 * kWidth, kWidth));
  return model.finish(model.linear(reshape(x, {kBatch, kLength * kWidth}), kLength * kWidth, kClasses));
}

Graph recurrent(bool is_lstm) {
  const int64_t gates = is_lstm ? 4 : 3;
  Model model("recurrent");
  const Var x = model.input({8, kBatch, kWidth});
  const Var w = model.weight({1, gates * kWidth, kWidth}), r = model.weight({1, gates * kWidth, kWidth});
  const Var b = model.weight({1, 2 * gates * kWidth});
  const Var last = (is_lstm ? lstm(x, w, r, b) : gru(x, w, r, b))[1];
  return model.finish(model.linear(reshape(last, {kBatch, kWidth}), kWidth, kClasses));
}

void expect_no_allocations(const Graph& model) {
  SCOPED_TRACE(model.name());
  CompileOptions options;
  options.threads = 1;
  const Executable step = compile(training_graph(model, {.optimizer = AdamW{}}), options);
  EXPECT_EQ(step.print_plan().find("heap"), std::string::npos) << step.print_plan();
  Random random(2);
  const std::vector<Tensor> inputs{draw_tensor(random, DType::f32, model.type(model.inputs()[0]).shape().static_dims()),
                                   Tensor::of<int64_t>({kBatch}, {1, 2, 3, 4})};
  std::vector<Tensor> loss{Tensor::scalar(0.0F)};
  for (int warm_up = 0; warm_up < 3; ++warm_up) step.run_into(inputs, loss);
  const int64_t all = num_allocations(), of_onednn = num_allocations_of_onednn();
  for (int round = 0; round < 5; ++round) step.run_into(inputs, loss);
  const int64_t theirs = num_allocations_of_onednn() - of_onednn;
  EXPECT_EQ(num_allocations() - all - theirs, 0) << "oneDNN: " << theirs / 5 << " a step";
  testing::Test::RecordProperty("onednn_" + model.name(), static_cast<int>(theirs / 5));
}

TEST(TrainingStep, OfAPerceptronAllocatesNothing) { expect_no_allocations(mlp()); }
TEST(TrainingStep, OfAConvolutionalNetworkAllocatesNothing) { expect_no_allocations(cnn()); }
TEST(TrainingStep, OfATransformerAllocatesNothing) { expect_no_allocations(transformer()); }
TEST(TrainingStep, OfAnLstmAllocatesNothing) { expect_no_allocations(recurrent(true)); }
TEST(TrainingStep, OfAGruAllocatesNothing) { expect_no_allocations(recurrent(false)); }

}  // namespace
}  // namespace autograph
