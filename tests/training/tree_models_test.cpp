// Tree-LSTMs: the scan over positions gives what a walk over each tree gives, by run and by graph, forward and
// backward.
#include "training/tree_models.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "autograph/capture.h"
#include "autograph/eager.h"
#include "autograph/error.h"
#include "autograph/nn/losses.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "autograph/tasks.h"
#include "autograph/tensor_io.h"
#include "support/compare.h"
#include "support/message_of.h"
#include "training/toy_run.h"

namespace autograph {
namespace {

constexpr int64_t kNodes = 9, kTypes = 5, kClasses = 3, kHidden = 4;

// Trees [count, 3, kNodes] drawn from a seed: each node takes what has no parent yet as child, sibling, both or
// neither.
Tensor draw_trees(int64_t count, uint64_t seed) {
  Random random(seed);
  Tensor trees = Tensor::zeros(DType::i64, {count, 3, kNodes});
  for (int64_t n = 0; n < count; ++n) {
    int64_t* tree = trees.mutable_data<int64_t>() + n * 3 * kNodes;
    std::vector<int64_t> free;
    for (int64_t k = static_cast<int64_t>(random() % 4); k < kNodes; ++k) {
      tree[k] = 1 + static_cast<int64_t>(random() % (kTypes - 1));
      for (const int64_t row : {kNodes, 2 * kNodes}) {
        if (free.empty() || (random() % 3 == 0 && k + 1 < kNodes)) continue;
        tree[row + k] = free.back();
        free.pop_back();
      }
      free.push_back(k + 1);
    }
  }
  return trees;
}

Tensor draw_labels(int64_t count, uint64_t seed) {
  Random random(seed);
  Tensor labels = Tensor::empty(DType::i64, {count});
  for (int64_t n = 0; n < count; ++n) labels.mutable_data<int64_t>()[n] = static_cast<int64_t>(random() % kClasses);
  return labels;
}

// Beside it parameters are variables.
const Var& anchor() {
  static const Var value = eager(Tensor::scalar(0.0F));
  return value;
}

std::unique_ptr<nn::Module> small_model(uint64_t seed) {
  auto model =
      tree_lstm({.types = kTypes, .nodes = kNodes, .classes = kClasses, .width = 3, .hidden = kHidden, .dropout = 0});
  model->set_seed(seed);
  return model;
}

// The formulas of the paper, node by node, in ordinary C++.
class Walk {
 public:
  Walk(nn::Module& model, const int64_t* tree, const Var& like) : model_(model), tree_(tree), like_(like) {}

  Var scores() const { return linear(states(kNodes)[0], "head"); }

 private:
  Var of(const std::string& name) const { return model_.tensor(name).beside(like_); }
  Var linear(const Var& x, const std::string& name) const {
    return matmul(x, transpose(of(name + ".weight"), {1, 0})) + of(name + ".bias");
  }

  // h and c of the node at a position from 1; of none they are 0.
  std::array<Var, 2> states(int64_t position) const {
    if (position == 0) {
      const Var zeros = eager(Tensor::zeros(DType::f32, {1, kHidden}));
      return {zeros, zeros};
    }
    const auto child = states(tree_[kNodes + position - 1]), sibling = states(tree_[2 * kNodes + position - 1]);
    const int64_t type = tree_[position - 1];
    const Var x = slice(of("types.weight"), {type}, {type + 1}, {0});
    const Var gates =
        linear(x, "of_type") + matmul(concat({child[0], sibling[0]}, 1), transpose(of("of_children_weight"), {1, 0}));
    const std::vector<Var> g = split(gates, std::vector<int64_t>(5, kHidden), 1);
    const Var c = sigmoid(g[0]) * tanh(g[4]) + sigmoid(g[1]) * child[1] + sigmoid(g[2]) * sibling[1];
    return {sigmoid(g[3]) * tanh(c), c};
  }

  nn::Module& model_;
  const int64_t* tree_;
  const Var& like_;
};

TEST(TreeLstm, GivesWhatAWalkOverEachTreeGives) {
  const auto model = small_model(1);
  const Tensor trees = draw_trees(12, 2);
  const Var all = (*model)(eager(trees));
  for (int64_t n = 0; n < 12; ++n) {
    const Var alone = Walk(*model, trees.data<int64_t>() + n * 3 * kNodes, all).scores();
    EXPECT_EQ(difference(elements(slice(all, {n}, {n + 1}, {0})), elements(alone), {1e-6, 1e-5}), "") << "tree " << n;
  }
}

TEST(TreeLstm, GradientsAreThoseOfTheWalk) {
  const auto model = small_model(3);
  const Tensor trees = draw_trees(3, 4), labels = draw_labels(3, 5);
  const auto gradients_of = [&](const std::function<Var()>& scores) {
    std::vector<Tensor> gradients;
    for (nn::Parameter* parameter : model->parameters()) clear_gradient(parameter->beside(anchor()));
    backward(nn::cross_entropy(scores(), eager(labels)));
    for (nn::Parameter* parameter : model->parameters())
      gradients.push_back(elements(gradient(parameter->beside(anchor()))));
    return gradients;
  };
  const auto by_scan = gradients_of([&] { return (*model)(eager(trees)); });
  const auto by_walk = gradients_of([&] {
    std::vector<Var> scores;
    const Var like = eager(trees);
    for (int64_t n = 0; n < 3; ++n)
      scores.push_back(Walk(*model, trees.data<int64_t>() + n * 3 * kNodes, like).scores());
    return concat(scores, 0);
  });
  ASSERT_EQ(by_scan.size(), by_walk.size());
  for (size_t k = 0; k < by_scan.size(); ++k) EXPECT_EQ(difference(by_scan[k], by_walk[k], {1e-6, 1e-4}), "") << k;
}

// Twenty updates of equal models, step by step and captured.
TEST(TreeLstm, LearnsTheSameEagerlyAndCaptured) {
  std::array<std::vector<double>, 2> losses;
  for (const bool is_captured : {false, true}) {
    const auto model = small_model(6);
    std::vector<Var> variables;
    for (nn::Parameter* parameter : model->parameters()) variables.push_back(parameter->beside(anchor()));
    EagerOptimizer optimizer(variables, AdamW{.learning_rate = 0.02});
    const EagerFunction step = [&](const std::vector<Var>& batch) -> std::vector<Var> {
      optimizer.clear_gradients();
      const Var loss = nn::cross_entropy((*model)(batch[0]), batch[1]);
      backward(loss);
      optimizer.step();
      return {loss};
    };
    Captured captured = capture(step);
    for (uint64_t n = 0; n < 20; ++n) {
      const std::vector<Var> batch{eager(draw_trees(4, n % 3)), eager(draw_labels(4, n % 3))};
      losses[is_captured].push_back(item((is_captured ? captured(batch) : step(batch))[0]));
    }
    EXPECT_LE(captured.num_captures(), 1);
  }
  EXPECT_LT(losses[0].back(), losses[0].front() / 2);
  for (size_t n = 0; n < losses[0].size(); ++n) EXPECT_NEAR(losses[0][n], losses[1][n], 1e-4) << "step " << n;
}

// Labels that say how deep the chain of first children below the root is.
NamedTensors chains(int64_t count) {
  Tensor trees = draw_trees(count, 7), labels = Tensor::empty(DType::i64, {count});
  for (int64_t n = 0; n < count; ++n) {
    const int64_t* children = trees.data<int64_t>() + n * 3 * kNodes + kNodes;
    int64_t depth = 0;
    for (int64_t at = children[kNodes - 1]; at > 0; at = children[at - 1]) ++depth;
    labels.mutable_data<int64_t>()[n] = std::min<int64_t>(depth, kClasses - 1);
  }
  return {{"tree", trees}, {"label", labels}};
}

TEST(TreeLstm, TaskLearnsFromAFile) {
  const TestFolder folder;
  write_npz(folder / "trees.npz", chains(600));
  TrainingTask task = make_task("tree", folder / "trees.npz");
  EXPECT_EQ(task.held_out->size(), 120);
  DataLoader training(task.training, {.batch_size = task.batch, .shuffle = true, .drop_last = true});
  TrainingGraphs graphs = training_graphs(*task.module, training, task.loss, task.optimizer, task.update);
  Trainer trainer(std::move(graphs), std::move(training), DataLoader(task.held_out, {.batch_size = 100}),
                  {.epochs = 6});
  EXPECT_GT(trainer.run().epochs.back().held_out.at("accuracy"), 0.9);
  const Executable program = compile(inference_graph(task, trainer.states()));
  EXPECT_EQ(program.run({draw_trees(2, 1)})[0].tensor().dims(), (Dims{2, kClasses}));
}

TEST(TreeLstm, TaskRefusesTreesThatLookAhead) {
  const TestFolder folder;
  NamedTensors data = chains(12);
  data[0].second.mutable_data<int64_t>()[kNodes + 4] = 5;  // its own child
  write_npz(folder / "trees.npz", data);
  EXPECT_NE(message_of<UserError>([&] { make_task("tree", folder / "trees.npz"); }).find("expected 0 to 4, got 5"),
            std::string::npos);
  write_npz(folder / "trees.npz", {{"tree", Tensor::zeros(DType::f32, {2, 3, 4})}, {"label", draw_labels(2, 1)}});
  EXPECT_NE(message_of<UserError>([&] { make_task("tree", folder / "trees.npz"); }).find("python_trees.py"),
            std::string::npos);
}

}  // namespace
}  // namespace autograph
