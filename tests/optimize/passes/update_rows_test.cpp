// Rows in place of whole tables: the same bits with half the plan, and what must stay whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autograph/autodiff.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/state_store.h"
#include "autograph/train.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr int64_t kRows = 40, kWidth = 5;

// Indices with repeats, of both signs: 3 and -37 are one row.
Tensor some_indices() { return Tensor::of<int64_t>({2, 4}, {3, 7, 3, -1, -37, 39, 7, 0}); }

// A loss of rows of a table, by which it learns.
class Lookup {
 public:
  explicit Lookup(DType dtype = DType::f32) : table_(graph_.state("table", drawn(dtype, {kRows, kWidth}))) {}

  // Rows of the table, each to its own power.
  Var term(const Tensor& indices) {
    const Var rows = gather(table_, graph_.constant(indices));
    return reduce_sum(rows * rows * graph_.constant(drawn(table_.dtype(), rows.shape().static_dims())), {}, false);
  }
  Var table() const { return table_; }

  Graph trained(const Var& loss, const Optimizer& optimizer = Sgd{.learning_rate = 0.1},
                const UpdateOptions& options = {}) {
    minimize(loss, {table_}, optimizer, options);
    graph_.output("loss", loss);
    return graph_.build();
  }
  GraphBuilder& builder() { return graph_; }

 private:
  Tensor drawn(DType dtype, const Dims& dims) { return draw_tensor(random_, dtype, dims, -1, 1); }

  Random random_{5};
  GraphBuilder graph_;
  Var table_;
};

// Values of nodes that are as large as the table.
int64_t num_tables(const Graph& graph) {
  int64_t count = 0;
  for (const NodeId id : graph.nodes()) {
    for (const ValueId v : graph.node(id).outputs()) count += graph.type(v).shape() == Shape{kRows, kWidth} ? 1 : 0;
  }
  return count;
}

Graph after_rows(const Graph& before, bool expect_change) {
  Graph after = before;
  PassContext context = willing_device();
  EXPECT_EQ(update_rows(after, context), expect_change) << ops_of(before);
  after.erase_dead();
  verify(after);
  return after;
}

Tensor trained_table(const Graph& graph, CompileOptions options = {}) {
  const Executable program = compile(graph, options);
  for (int step = 0; step < 3; ++step) program.run({});
  return program.states().get("table");
}

// The table after some steps has the same bits with rows and without, up to the order of sums, and rows are all that is
// computed.
void expect_rows(const Graph& before, double tolerance = 0) {
  const Graph after = after_rows(before, true);
  EXPECT_EQ(num_tables(after), 1) << ops_of(after);
  CompileOptions plain;
  plain.device = "reference";
  plain.expert.use_passes = false;
  const Tensor expected = trained_table(before, plain), actual = trained_table(after, plain);
  const std::vector<double> now = actual.to_f64(), wanted = expected.to_f64();
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(now[i], wanted[i], tolerance * std::abs(wanted[i])) << i;
  EXPECT_EQ(num_tables(compile(before).graph()), 1) << "the pipeline makes the same of it";
  EXPECT_EQ(difference({Datum(trained_table(before))}, {Datum(expected)}), "");
}

TEST(UpdateRows, OfGradientDescent) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Lookup lookup(dtype);
    expect_rows(lookup.trained(lookup.term(some_indices())));
  }
}

TEST(UpdateRows, OfTwoLookupsAndFactors) {
  Lookup lookup;
  const Tensor others = Tensor::of<int64_t>({1}, {7});
  const Var loss = lookup.term(some_indices()) + lookup.term(others);
  expect_rows(lookup.trained(loss, Sgd{.learning_rate = 0.1}, {.loss_scale = LossScale{8, false}}));
}

TEST(UpdateRows, OfThreeLookups) {
  Lookup lookup;
  const Tensor others = Tensor::of<int32_t>({}, {7});
  expect_rows(lookup.trained(lookup.term(others) + lookup.term(others) + lookup.term(some_indices())));
}

// Rows of padding are read, but get no gradient (nn::Embedding).
TEST(UpdateRows, WithPadding) {
  Lookup lookup;
  const Var indices = lookup.builder().constant(some_indices());
  const Var rows = gather(lookup.table(), indices);
  const Var is_padding = unsqueeze(equal(indices, scalar_like(indices, 7)), {-1});
  const Var read = where(is_padding, stop_gradient(rows), rows);
  const Graph step = lookup.trained(reduce_sum(read * read, {}, false));
  expect_rows(step);
  const Tensor before = step.value(lookup.table().id()).initial(), after = trained_table(step);
  const auto row = [](const Tensor& table) {
    const std::vector<double> all = table.to_f64();
    return std::vector<double>(all.begin() + 7 * kWidth, all.begin() + 8 * kWidth);
  };
  EXPECT_EQ(row(after), row(before));
}

// The length of a gradient is that of its rows, those of one index added up.
TEST(UpdateRows, BehindClippingByNorm) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Lookup lookup(dtype);
    const Graph step = lookup.trained(lookup.term(some_indices()), Sgd{.learning_rate = 0.1}, {.clip_norm = 0.5});
    expect_rows(step, dtype == DType::f32 ? 1e-6 : 1e-14);
  }
}

TEST(UpdateRows, TheNormIsThatOfTheWholeGradient) {
  Lookup lookup;
  const Tensor indices = Tensor::of<int64_t>({6}, {3, 3, 7, -37, 0, 7});
  const Var loss = lookup.term(indices) + lookup.term(Tensor::of<int64_t>({2}, {7, 1}));
  GraphBuilder& graph = lookup.builder();
  graph.output("gradient", grad(loss, {lookup.table()})[0]);
  const UpdateStep step = minimize(loss, {lookup.table()}, Sgd{}, {.clip_norm = 0.5});
  graph.output("norm", step.gradient_norm);
  const Outputs outputs = compile(graph.build()).run({});
  double squares = 0;
  for (const double x : outputs["gradient"].to_f64()) squares += x * x;
  EXPECT_NEAR(outputs["norm"].to_f64()[0], std::sqrt(squares), 1e-5);
}

TEST(UpdateRows, BehindClippingByValue) {
  Lookup lookup;
  expect_rows(lookup.trained(lookup.term(some_indices()), Sgd{.learning_rate = 0.1}, {.clip_value = 0.3}));
}

// What is looked for overflows is rows, and so is what a step that overflowed leaves as it was.
TEST(UpdateRows, BehindADynamicLossScale) {
  for (const bool overflows : {false, true}) {
    Lookup lookup;
    const double initial = overflows ? 1e38 : 1024;
    const UpdateOptions options{.clip_norm = 0.5, .loss_scale = LossScale{initial}};
    const Var loss = lookup.term(some_indices()) * 1e3;
    expect_rows(lookup.trained(loss, Sgd{.learning_rate = 0.1}, options), 1e-6);
  }
}

TEST(UpdateRows, OfLazyAdamBehindALossScale) {
  Lookup lookup;
  const Graph before = lookup.trained(lookup.term(some_indices()), Adam{.learning_rate = 0.1, .lazy = true},
                                      {.clip_norm = 0.5, .loss_scale = LossScale{}});
  const Graph after = after_rows(before, true);
  EXPECT_EQ(num_tables(after), 3) << "the table and two moments: " << ops_of(after);
  EXPECT_EQ(difference({Datum(trained_table(after))}, {Datum(trained_table(before))}), "");
}

TEST(UpdateRows, NotWhereZerosBecomeNumbers) {
  Lookup lookup;
  const Var loss = lookup.term(some_indices());
  GraphBuilder& graph = lookup.builder();
  const Var gradient = grad(loss, {lookup.table()})[0];
  graph.update(lookup.table(), lookup.table() - 0.1 * (gradient + 1));
  graph.output("loss", loss + reduce_sum(exp(gradient), {}, false));
  after_rows(graph.build(), false);
}

TEST(UpdateRows, WrittenByHand) {
  Lookup lookup;
  const Var loss = lookup.term(some_indices());
  GraphBuilder& graph = lookup.builder();
  graph.update(lookup.table(), -0.1 * grad(loss, {lookup.table()})[0] / 4 + lookup.table());
  graph.output("loss", loss);
  expect_rows(graph.build());
}

// 200,000 rows of which 128 are read: neither a gradient nor a new table has a place in the plan.
TEST(UpdateRows, NeedNoMemoryForTheTable) {
  for (const UpdateOptions& options :
       {UpdateOptions{}, {.clip_norm = 10, .clip_value = 1, .loss_scale = LossScale{}}}) {
    GraphBuilder graph;
    const Var table = graph.state("table", Tensor::zeros(DType::f32, {200000, 64}));
    const Var indices = graph.input("indices", DType::i64, {128});
    const Var loss = reduce_mean(gather(table, indices) - 1, {}, false);
    minimize(loss, {table}, Sgd{.learning_rate = 0.5}, options);
    graph.output("loss", loss);
    const Executable program = compile(graph.build());
    const size_t table_bytes = size_t{200000} * 64 * sizeof(float);
    EXPECT_LT(program.memory().arena_bytes, table_bytes / 100) << program.print_plan();
    Tensor same = Tensor::zeros(DType::i64, {128});
    std::fill_n(same.mutable_data<int64_t>(), 128, 199999);
    program.run({same});
    const Tensor now = program.states().get("table");
    EXPECT_FLOAT_EQ(now.data<float>()[now.num_elements() - 1], -0.5F / 64);
    EXPECT_EQ(now.data<float>()[0], 0);
  }
}

TEST(UpdateRows, NotWhereEveryRowChanges) {
  const auto stays = [](const Optimizer& optimizer, const UpdateOptions& options = {}) {
    Lookup lookup;
    after_rows(lookup.trained(lookup.term(some_indices()), optimizer, options), false);
  };
  stays(Sgd{.momentum = 0.9});
  stays(Sgd{.weight_decay = 0.1});
  stays(Adam{});
  stays(Sgd{}, {.accumulate = 2});
}

TEST(UpdateRows, NotWhereTheTableIsReadOtherwise) {
  Lookup lookup;
  const Var whole = reduce_sum(lookup.table() * lookup.table(), {}, false);
  after_rows(lookup.trained(lookup.term(some_indices()) + whole), false);
}

TEST(UpdateRows, NotWhereMostRowsAreRead) {
  Lookup lookup;
  after_rows(lookup.trained(lookup.term(Tensor::zeros(DType::i64, {kRows / 4 + 1}))), false);
}

TEST(UpdateRows, NotWhereAnotherStateIsWritten) {
  Lookup lookup;
  const Var loss = lookup.term(some_indices());
  GraphBuilder& graph = lookup.builder();
  const Var other = graph.state("other", Tensor::zeros(DType::f32, {kRows, kWidth}));
  graph.update(other, lookup.table() - grad(loss, {lookup.table()})[0]);
  graph.output("loss", loss);
  after_rows(graph.build(), false);
}

}  // namespace
}  // namespace autograph
