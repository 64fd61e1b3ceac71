// Runs timed by the clock of the device: each work of the stand-in takes it a microsecond.
#include <gtest/gtest.h>

#include "autograph/random.h"
#include "cuda/cuda_test_device.h"
#include "engine/strategies/trials/timed_run.h"
#include "engine/strategies/trials/trial.h"
#include "ops/sample.h"
#include "runtime/observe/launch_clock.h"
#include "support/strategy_fixture.h"

namespace autograph {
namespace {

Graph chain_of_softmaxes(int count) {
  Graph graph("chain");
  graph.add_output(softmaxes(input(graph, DType::f32, {4, 4}, "x"), count).id(), "y");
  return graph;
}

Tensor draw_timed(const Memory* memory = nullptr) {
  Random random(1);
  return draw_tensor(random, DType::f32, {4, 4}, -1, 1).to(memory);
}

class CudaClock : public StrategyFixture {
 protected:
  const Device& device_ = get_device("cuda");
};

// What lies on the host is copied outside of what is timed; the graph of the second run is one work, the mark of its
// end another.
TEST_F(CudaClock, IsThatOfTheDevice) {
  const Executable there = compile(chain_of_softmaxes(5), on_cuda());
  for (const Tensor& in : {draw_timed(), draw_timed(device_.memory())}) {
    timed_run_ms(device_, there, {in});
    for (int run = 0; run < 3; ++run) EXPECT_FLOAT_EQ(timed_run_ms(device_, there, {in}), 0.002F);
  }
  CompileOptions options = on_cuda();
  options.check_nan = NanCheck::steps;
  const Executable observed = compile(chain_of_softmaxes(5), options);
  EXPECT_GT(timed_run_ms(device_, observed, {draw_timed()}), 0.01) << "by the host, which waits for each step";
}

TEST_F(CudaClock, IsReadWhileSomebodyAsks) {
  const Executable there = compile(chain_of_softmaxes(3), on_cuda());
  LaunchClock outer;
  {
    LaunchClock inner;
    there.run({draw_timed()});
    EXPECT_FLOAT_EQ(inner.us(), 4) << "three kernels and the mark";
    EXPECT_EQ(LaunchClock::of_this_thread(), &inner);
  }
  EXPECT_EQ(LaunchClock::of_this_thread(), &outer);
  EXPECT_EQ(outer.us(), 0);
}

TEST_F(CudaClock, DecidesTrials) {
  search_.inputs = {draw_timed()};
  open("cuda");
  CompileOptions kept = on_cuda();
  kept.keep_on_device = true;
  const Executable one = compile(chain_of_softmaxes(1), kept);
  const Executable other = compile(chain_of_softmaxes(4), kept);
  const AbTrial trial = Trial(*context_).ab_trial(one, other, 0.05);
  EXPECT_FLOAT_EQ(trial.first_ms, 0.002F) << "one graph each";
  EXPECT_FLOAT_EQ(trial.second_ms, 0.002F);
}

TEST_F(CudaClock, IsTheHostsWhereADeviceHasNone) {
  EXPECT_TRUE(device_.properties().has_clock);
  const Device& host = get_device("cpu");
  EXPECT_FALSE(host.properties().has_clock);
  CompileOptions options;
  options.device = "cpu";
  const Executable here = compile(chain_of_softmaxes(1), options);
  EXPECT_GT(timed_run_ms(host, here, {draw_timed()}), 0);
}

}  // namespace
}  // namespace autograph
