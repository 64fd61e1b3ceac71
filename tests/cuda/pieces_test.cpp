// What is captured of plans that hold steps on the host: the pieces between them.
#include <gtest/gtest.h>

#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "cuda/cuda_test_device.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/message_of.h"

namespace autograph {
namespace {

Tensor draw_square(uint64_t seed) {
  Random random(seed);
  return draw_tensor(random, DType::f32, {4, 4}, -1, 1);
}

// Five kernels, one step on the host, six kernels, another step on the host, two kernels.
Graph with_pieces() {
  Graph graph("pieces");
  const Var first = softmaxes(input(graph, DType::f32, {4, 4}, "x"), 5);
  const Var second = softmaxes(first * column_on_host(first), 5);
  graph.add_output(softmaxes(second * column_on_host(second), 1).id(), "y");
  graph.add_output(second.id(), "second");
  return graph;
}

class CudaPieces : public CudaTest {
 protected:
  static size_t captures() { return standin::counts().captures; }
  static size_t replays() { return standin::counts().replays; }
};

TEST_F(CudaPieces, AreCapturedBetweenStepsOnTheHost) {
  const Executable there = compile(with_pieces(), on_cuda());
  const Executable here = compile(with_pieces(), on_reference());
  const size_t graphs = standin::counts().graphs;
  const size_t replayed = replays();
  size_t launched = 0;
  for (uint64_t run = 0; run < 5; ++run) {
    launched = standin::counts().launches;
    const Tensor x = draw_square(run);
    EXPECT_EQ(difference(there.run({x}), here.run({x})), "") << "run " << run;
  }
  EXPECT_EQ(standin::counts().launches - launched, 2U) << "behind the last step on the host: too short for a graph";
  EXPECT_EQ(standin::counts().graphs - graphs, 2U);
  EXPECT_EQ(replays() - replayed, 8U) << "two pieces in all runs but the first";
}

// What cannot be captured is found out once, not for each place.
TEST_F(CudaPieces, AreKnownWhereBuffersMove) {
  const Executable there = compile(with_pieces(), on_cuda());
  std::vector<std::vector<Tensor>> places(2);
  const auto captures_in = [&](std::vector<Tensor>& outputs) {
    for (int k = 0; k < 2; ++k) outputs.push_back(Tensor::empty(DType::f32, {4, 4}, get_device("cuda").memory()));
    const size_t before = captures();
    for (int run = 0; run < 2; ++run) there.run_into({draw_square(1)}, outputs);
    return captures() - before;
  };
  EXPECT_EQ(captures_in(places[0]), 4U) << "one that ends at each step on the host, and the two that are kept";
  EXPECT_EQ(captures_in(places[1]), 2U);
}

// All streams come together before a step on the host, and begin anew behind it, in the middle of a stage, too.
TEST_F(CudaPieces, JoinTheStreamsOfAStage) {
  Graph graph("streams");
  const Var x = input(graph, DType::f32, {4, 4}, "x");
  const Var left = softmaxes(x, 4);
  const Var middle = softmaxes(x * 2, 3);
  const Var right = softmaxes(middle * column_on_host(middle), 6);
  const Var y = concat({left, right, softmax(left + right, 0)}, 0);
  graph.add_output(y.id(), "y");
  Schedule schedule;
  schedule.stages.resize(2);
  schedule.stages[0].streams.resize(2);
  for (const NodeId id : graph.nodes()) {
    const ValueId out = graph.node(id).output(0);
    if (out == y.id() || graph.node(id).op().name == "constant") continue;
    schedule.stages[0].streams[out.index <= left.id().index ? 0 : 1].push_back(id);
  }
  schedule.stages[1].streams.push_back({graph.value(y.id()).producer()});
  CompileOptions options = on_cuda();
  options.expert.schedule = std::make_shared<Schedule>(schedule);
  const Executable there = compile(graph, options);
  const Executable here = compile(graph, on_reference());
  const size_t before = replays();
  for (uint64_t run = 0; run < 4; ++run) {
    EXPECT_EQ(difference(there.run({draw_square(run)}), here.run({draw_square(run)})), "") << "run " << run;
  }
  EXPECT_GE(replays() - before, 6U);
}

// Shapes that depend on elements: the host looks at these, and the rest is captured.
TEST_F(CudaPieces, SurroundShapesThatDependOnElements) {
  Graph graph("dynamic");
  const Var x = input(graph, DType::f32, {4, 4}, "x");
  const Var first = softmaxes(x, 5);
  graph.add_output(gather(reshape(first, {16}), squeeze(non_zero(reshape(x, {16})), {0})).id(), "picked");
  graph.add_output(softmaxes(first, 5).id(), "y");
  const Executable there = compile(graph, on_cuda());
  const Executable here = compile(graph, on_reference());
  const size_t before = replays();
  for (uint64_t run = 0; run < 4; ++run) {
    Tensor in = draw_square(run);
    in.mutable_data<float>()[3 * run] = 0;
    EXPECT_EQ(difference(there.run({in}), here.run({in})), "") << "run " << run;
  }
  EXPECT_GE(replays() - before, 3U);
}

TEST_F(CudaPieces, NameTheStepThatHasAWrongIndex) {
  Graph graph("wrong");
  const Var x = softmaxes(input(graph, DType::f32, {4, 4}, "x"), 5);
  const Var picked = gather(x, input(graph, DType::i64, {4}, "indices"));
  graph.add_output((picked * column_on_host(picked)).id(), "y");
  const Executable there = compile(graph, on_cuda());
  for (int run = 0; run < 3; ++run) {
    there.run({draw_square(1), Tensor::vector({0, 1, -1, 2})});
    const std::string message = message_of<ValueError>([&] {
      there.run({draw_square(1), Tensor::vector({0, 9, 1, 2})});
    });
    EXPECT_EQ(message.find("[gather] indices: expected -4..3 for extent 4, got 9 (in node #5 gather"), 0U) << message;
  }
}

}  // namespace
}  // namespace autograph
