// The generator of idiom graphs, and that the comparison sees what it must. The graphs themselves run in
// idiom_graphs.cpp, a program of its own that survives crashes.
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/vision.h"
#include "autograph/text.h"
#include "autograph/verify.h"
#include "ops/real_values.h"
#include "ops/sample.h"
#include "random_graph/check_plan.h"
#include "random_graph/idioms/idioms.h"
#include "support/agreement.h"

namespace autograph {
namespace {

TEST(IdiomGraphs, DrawTheSameForTheSameSeed) {
  for (const uint64_t seed : {1, 7, 40}) {
    EXPECT_EQ(print_text(make_idiom_graph(seed).graph), print_text(make_idiom_graph(seed).graph));
  }
  EXPECT_NE(print_text(make_idiom_graph(1).graph), print_text(make_idiom_graph(2).graph));
}

TEST(IdiomGraphs, OfEachFamilyAreLegal) {
  for (const IdiomFamily& family : idiom_families()) {
    for (uint64_t seed = 0; seed < 15; ++seed) {
      SCOPED_TRACE(std::string(family.name) + " " + std::to_string(seed));
      IdiomGraph g(seed);
      family.add(g);
      const TestGraph test = g.finish();
      ASSERT_NO_THROW(verify(test.graph));
      ASSERT_NO_THROW(run_reference(test.graph, test.inputs)) << print_text(test.graph);
      EXPECT_GT(test.graph.num_nodes(), 0u);
    }
  }
}

TEST(IdiomGraphs, ComeFromAllFamilies) {
  std::set<std::string_view> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<std::string_view> blocks;
    make_idiom_graph(seed, &blocks);
    EXPECT_TRUE(!blocks.empty() && blocks.size() <= 6);
    seen.insert(blocks.begin(), blocks.end());
  }
  EXPECT_EQ(seen.size(), idiom_families().size());
}

// One element of `of`, times `factor`.
std::vector<Datum> spoilt(std::vector<Datum> of, float factor) {
  Tensor copy = of[0].tensor().clone();
  copy.mutable_data<float>()[copy.num_elements() / 2] *= factor;
  of[0] = copy;
  return of;
}

TEST(Agreement, SeesOneWrongElement) {
  int64_t compared = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    IdiomGraph g(seed);
    add_conv_epilogue(g);
    const TestGraph test = g.finish();
    const std::vector<Datum> expected = run_reference(test.graph, test.inputs);
    const Tensor& first = expected[0].tensor();
    if (first.dtype() != DType::f32 || !(std::abs(first.to_f64()[first.num_elements() / 2]) > 0.1)) continue;
    const auto moved = [&] { return run_moved(test); };
    EXPECT_EQ(disagreement(expected, expected, moved), "");
    EXPECT_EQ(disagreement(spoilt(expected, 1.00001F), expected, moved), "");
    EXPECT_NE(disagreement(spoilt(expected, 1.1F), expected, moved), "") << seed;
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

// softmax(x + mask) in half precision.
TestGraph masked_softmax(double mask, const std::vector<double>& values) {
  TestGraph test;
  const Var x = input(test.graph, DType::f16, Shape::of({std::ssize(values)}), "x");
  test.graph.add_output(softmax(add(x, scalar_like(x, mask))).id());
  Tensor scores = Tensor::empty(DType::f16, {std::ssize(values)});
  store_reals(values, scores.view());
  test.inputs = {scores};
  return test;
}

// A mask of -60000 rounds scores off, all of them alike: plans that compute in f32 still tell them apart.
TEST(Agreement, KnowsWhatRoundingMadeEqual) {
  const auto differs = [](double mask) {
    const TestGraph test = masked_softmax(mask, {0.5, 2, -1, 0});
    const TestGraph finer = masked_softmax(0, {0.5, 2, -1, 0});
    const TestGraph other = masked_softmax(0, {0.5, 2, 1, 0});
    const auto moved = [&] { return run_moved(test); };
    const std::vector<Datum> expected = run_reference(test.graph, test.inputs);
    return std::pair(disagreement(run_reference(finer.graph, finer.inputs), expected, moved),
                     disagreement(run_reference(other.graph, other.inputs), expected, moved));
  };
  EXPECT_EQ(differs(-60000).first, "");
  EXPECT_EQ(differs(-1).first, "");
  EXPECT_NE(differs(-1).second, "");
}

TEST(Agreement, LeavesScalesThatSetShapes) {
  TestGraph test;
  const Var x = input(test.graph, DType::f32, Shape::of({1, 2, 5, 3}), "x");
  test.graph.add_output(neg(resize(x, {1, 1, 2, 3})).id());
  Random random(5);
  test.inputs = {draw_tensor(random, DType::f32, {1, 2, 5, 3})};
  const auto runs = run_moved(test);
  EXPECT_EQ(runs.size(), 3u);
  for (const auto& run : runs) EXPECT_EQ(run[0].tensor().dims(), (Dims{1, 2, 10, 9}));
}

}  // namespace
}  // namespace autograph
