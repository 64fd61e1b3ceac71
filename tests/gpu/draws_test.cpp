// Random ops on an OpenCL device: a seed gives the reference's numbers.
#include <gtest/gtest.h>

#include <limits>

#include "autograph/builder.h"
#include "autograph/error.h"
#include "autograph/ops/random.h"
#include "autograph/random.h"
#include "gpu/opencl_test_device.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/message_of.h"

namespace autograph {
namespace {

constexpr FloatTolerance kNearly{1e-6, 1e-6};  // logarithms and cosines of other libraries

TEST(OpenClDraws, AreTheNumbersOfTheReference) {
  AG_NEEDS_OPENCL();
  Random random(1);
  Graph graph("draws");
  const Var x = input(graph, DType::f64, {5, 7}, "x");
  graph.add_output(random_uniform(graph, {3, 5}, -2, 3, 1.5F).id(), "uniform");
  graph.add_output(random_normal(graph, {33}, 1, 2, 7.0F).id(), "normal");
  graph.add_output(apply(random_uniform_like_def(), {x}, {{"seed", 3.0F}, {"dtype", DType::f16}}).id(), "halves");
  graph.add_output(random_normal_like(x, 0, 1, 9.0F).id(), "wide");
  EXPECT_EQ(difference_on_opencl(graph, {draw_tensor(random, DType::f64, {5, 7})}, kNearly), "");
}

// Probabilities below 0, above 1, and such as are none.
TEST(OpenClDraws, OfOnesAreThoseOfTheReference) {
  AG_NEEDS_OPENCL();
  Random random(2);
  Graph graph("draws");
  const Var x = input(graph, DType::f32, {101}, "x");
  graph.add_output(bernoulli(x, 5.0F).id(), "ones");
  graph.add_output(apply(bernoulli_def(), {x}, {{"seed", 6.0F}, {"dtype", DType::boolean}}).id(), "bits");
  Tensor probabilities = draw_tensor(random, DType::f32, {101}, -0.2, 1.2);
  probabilities.mutable_data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(difference_on_opencl(graph, {probabilities}, {0, 0}), "");
}

Graph classes_graph() {
  GraphBuilder graph;
  graph.output("y", multinomial(graph.input("x", DType::f32, {3, 5}), 50, 4.0F));
  return graph.build();
}

TEST(OpenClDraws, OfClassesAreThoseOfTheReference) {
  AG_NEEDS_OPENCL();
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x{0.5F, -1, 2, 0, 1, -kInf, -3, kNan, -2, -3, kNan, 9, -90, -kInf, 9};
  EXPECT_EQ(difference_on_opencl(classes_graph(), {Tensor::of<float>({3, 5}, x)}, {0, 0}), "");
  const Executable there = compile(classes_graph(), on_opencl());
  x[6] = kInf;
  const std::string message = message_of<ValueError>([&] { there.run({Tensor::of<float>({3, 5}, x)}); });
  EXPECT_EQ(message.find("[multinomial] x: expected a finite largest element in each row, got none in row 1 (in "), 0U)
      << message;
}

// Whether elements are dropped is known while the model runs, or before.
TEST(OpenClDraws, DropWhatTheReferenceDrops) {
  AG_NEEDS_OPENCL();
  Random random(3);
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {9, 7}), halves = graph.input("halves", DType::bf16, {21});
  const Var training = graph.input("training", DType::boolean, {});
  const auto [y, mask] = dropout(x, graph.constant(Tensor::scalar(0.3F)), training, 11);
  graph.output("y", y);
  graph.output("mask", mask);
  graph.output("halves", dropout(halves, {}, graph.constant(Tensor::scalar(true)), -1).first);
  const Graph built = graph.build();
  for (const bool is_training : {true, false}) {
    const std::vector<Datum> inputs{draw_tensor(random, DType::f32, {9, 7}), draw_tensor(random, DType::bf16, {21}),
                                    Tensor::scalar(is_training)};
    EXPECT_EQ(difference_on_opencl(built, inputs, kNearly), "") << is_training;
  }
}

TEST(OpenClDraws, WithoutASeedAreLeftToTheHost) {
  AG_NEEDS_OPENCL();
  Graph graph("draws");
  graph.add_output(random_uniform(graph, {3, 5}).id(), "y");
  EXPECT_NE(difference_on_opencl(graph, {}).find("no seed"), std::string::npos);
  GraphBuilder wrong;
  const Var ratio = wrong.constant(Tensor::scalar(1.5F)), training = wrong.input("training", DType::boolean, {});
  wrong.output("y", dropout(wrong.input("x", DType::f32, {4}), ratio, training, 1).first);
  const Executable there = compile(wrong.build(), on_opencl());
  const std::string message = message_of<ValueError>([&] {
    there.run({Tensor::scalar(true), Tensor::zeros(DType::f32, {4})});
  });
  EXPECT_EQ(message.find("[dropout] ratio: expected 0 <= ratio < 1, got 1.5"), 0U) << message;
}

}  // namespace
}  // namespace autograph
