// Lazy Adam against torch.optim.SparseAdam: rows that were read, and those that were not.
#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/eager.h"
#include "autograph/error.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "autograph/state_store.h"
#include "autograph/train.h"
#include "support/message_of.h"

namespace autograph {
namespace {

const Adam kLazy{.learning_rate = 0.1, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3, .lazy = true};

void expect_near(const Tensor& actual, const std::vector<double>& wanted) {
  const std::vector<double> values = actual.to_f64();
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t k = 0; k < wanted.size(); ++k) EXPECT_NEAR(values[k], wanted[k], 1e-12) << "element " << k;
}

// The sum of factors * rows^2 of a table [4, 2] at the input "indices".
struct Model {
  Model() {
    const Var rows = gather(table, graph.input("indices", DType::i64, {3}));
    loss = reduce_sum(rows * rows * graph.constant(Tensor::of<double>({3, 2}, {1, 2, 0.5, 1, 3, 0.25})), {}, false);
  }

  Executable trained(const Optimizer& optimizer, const std::vector<Var>& weights, const UpdateOptions& options = {}) {
    minimize(loss, weights, optimizer, options);
    graph.output("loss", loss);
    Executable program = compile(graph.build());
    for (const auto& indices : {std::vector<int64_t>{0, 2, -4}, {2, 2, 2}, {0, 3, 2}}) {
      program.run({Tensor::of<int64_t>({3}, indices)});
    }
    return program;
  }

  GraphBuilder graph;
  Var table = graph.state("table", Tensor::of<double>({4, 2}, {0.5, -1, 0.25, 2, -0.75, 1.5, 3, -0.125}));
  Var loss;
};

// Numbers of PyTorch 2.15, of the indices {0, 2, 0}, {2, 2, 2}, {0, 3, 2}.
TEST(LazyAdam, IsPyTorchsSparseAdam) {
  Model model;
  const Executable program = model.trained(kLazy, {model.table});
  const StateStore& states = program.states();
  expect_near(states.get("table"), {0.3305460830046619, -0.8131318623608441, 0.25, 2.0, -0.4784467140186054,
                                    1.2344939169535152, 2.932603510853914, -0.05837521301852065});
  expect_near(states.get("optimizer/exp_avg/table"), {0.8000315977963501, -1.4400561787910835, 0, 0, -1.712589982324796,
                                                      1.9708869218097456, 0.5999999999999999, -0.04999999999999999});
  expect_near(states.get("optimizer/exp_avg_sq/table"),
              {1.5040252807331318, 3.1187022515380427, 0, 0, 4.285518134967765, 8.225777981222148, 0.8999999999999998,
               0.006249999999999999});
}

TEST(LazyAdam, SeesRowsBehindLossScaleAndNorm) {
  Model plain, scaled;
  const Tensor expected = plain.trained(kLazy, {plain.table}).states().get("table");
  const UpdateOptions options{.clip_norm = 1e6, .loss_scale = LossScale{8, false}};
  expect_near(scaled.trained(kLazy, {scaled.table}, options).states().get("table"), expected.to_f64());
}

// Where every row is read once, it is Adam, up to the place of epsilon.
TEST(LazyAdam, SeesRowsBehindClippedValues) {
  std::vector<std::vector<double>> tables;
  for (const bool lazy : {true, false}) {
    GraphBuilder graph;
    const Var table = graph.state("table", Tensor::of<double>({3, 2}, {0.5, -1, 0.25, 2, -0.75, 1.5}));
    const Var rows = gather(table, graph.constant(Tensor::of<int64_t>({3}, {2, 0, 1})));
    minimize(reduce_sum(rows * rows, {}, false), {table}, Adam{.learning_rate = 0.1, .lazy = lazy}, {.clip_value = 1});
    const Executable program = compile(graph.build());
    for (int step = 0; step < 4; ++step) program.run({});
    tables.push_back(program.states().get("table").to_f64());
  }
  for (size_t k = 0; k < tables[0].size(); ++k) EXPECT_NEAR(tables[0][k], tables[1][k], 1e-6) << k;
}

TEST(LazyAdam, IsAdamForOtherWeights) {
  Adam eager_for_all = kLazy;
  eager_for_all.lazy = false;
  std::vector<std::vector<double>> results;
  for (const Adam& adam : {kLazy, eager_for_all}) {
    Model model;
    const Var factor = model.graph.state("factor", Tensor::scalar(1.5));
    model.loss = model.loss * factor;
    const StateStore states = model.trained(adam, {factor}).states();
    results.push_back(states.get("factor").to_f64());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0][0], 1.5);
}

// What makes it worth asking for: nothing in the step is as large as the table.
TEST(LazyAdam, MakesNoDenseGradient) {
  GraphBuilder graph;
  const Var table = graph.state("table", Tensor::zeros(DType::f32, {50000, 64}));
  const Var loss = reduce_mean(gather(table, graph.input("indices", DType::i64, {128})) - 1, {}, false);
  minimize(loss, {table}, Adam{.lazy = true});
  graph.output("loss", loss);
  const Executable program = compile(graph.build());
  EXPECT_LT(program.memory().arena_bytes, size_t{50000} * 64 * sizeof(float) / 20) << program.print_plan();
}

TEST(LazyAdam, SaysWhatIsWrong) {
  const auto message = [](const Optimizer& optimizer, const UpdateOptions& options) {
    Model model;
    return message_of<ValueError>([&] { minimize(model.loss, {model.table}, optimizer, options); });
  };
  EXPECT_EQ(message(Adam{.weight_decay = 0.1, .lazy = true}, {}),
            "[train] lazy: expected neither weight decay nor amsgrad, which change rows that were not read, got weight "
            "decay 0.1 and amsgrad false");
  EXPECT_EQ(message(kLazy, {.accumulate = 2}),
            "[train] lazy: expected no accumulation, which makes gradients of all rows, got accumulate 2");
  EXPECT_EQ(message(kLazy, {.groups = {{.weights = "table", .weight_decay = 0.5}}}),
            "[train] lazy: expected no weight decay, got 0.5 for the group 'table'");
  EXPECT_TRUE(std::get<Adam>(find_optimizer("sparse_adam")).lazy);
}

TEST(LazyAdam, NeedsAGraph) {
  const Var w = variable(Tensor::of<float>({2, 1}, {1, 2}));
  EagerOptimizer optimizer({w}, kLazy);
  backward(reduce_sum(gather(w, eager(Tensor::of<int64_t>({1}, {0}))), {}, false));
  const std::string message = message_of<UnsupportedError>([&] { optimizer.step(); });
  EXPECT_NE(message.find("[train] lazy: expected a graph"), std::string::npos) << message;
}

}  // namespace
}  // namespace autograph
