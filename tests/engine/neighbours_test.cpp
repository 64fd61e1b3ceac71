// Runs while other programs come and go: the number of threads changes between the steps of a run, the numbers do not.
#include <gtest/gtest.h>

#include "autograph/devices.h"
#include "autograph/random.h"
#include "autograph/verify.h"
#include "backends/cpu/cpu_device.h"
#include "device/host_threads.h"
#include "engine/executable.h"
#include "ops/sample.h"
#include "runtime/run_context.h"
#include "support/compare.h"
#include "support/fake_cores.h"
#include "support/graphs/random_network.h"
#include "support/graphs/random_schedule.h"

namespace autograph {
namespace {

constexpr int kThreads = 3;

// Processors on which others come and go every few steps.
class Visitors : public FakeCores {
 public:
  Visitors() : FakeCores(kThreads) {}
  int64_t now_us() const override {
    const int64_t call = calls_++;
    const bool is_busy = call / 12 % 2 == 0;
    // One neighbour first, then two.
    const double others = is_busy ? 1.0 + static_cast<double>(call / 24 % 2) : 0.0;
    const_cast<Visitors*>(this)->pass(60'000, {.own = 1, .others = others, .preemptions = is_busy ? 5 : 0});
    return FakeCores::now_us();
  }

 private:
  mutable int64_t calls_ = 0;
};

// What runs of a plan give, and how many changes of the limit there were.
class PlanRun {
 public:
  PlanRun(const Graph& source, const Schedule* schedule) {
    Graph graph = schedule ? source : prepare_graph(source, device_, {});
    const KnownValues known = infer_types(graph);
    PlanOptions options{.catalog = device_.catalog(), .threads = kThreads, .host_threads = cpu_threads()};
    options.schedule = schedule;
    const int before = cpu_threads().set(kThreads);
    compiled_ = compile_plan(std::make_shared<const Graph>(std::move(graph)), known, options);
    cpu_threads().set(before);
  }

  std::vector<Datum> run(const Tensor& x, CoreWatch* watch) {
    RunContext context(compiled_);
    context.bind_input(0, x);
    std::vector<Datum> outputs;
    for (size_t k = 0; k < compiled_->plan.outputs.size(); ++k) {
      const SlotIndex slot = compiled_->plan.outputs[k].slot;
      Tensor out = Tensor::empty(DType::f32, compiled_->slot_dims[slot]);
      context.bind_output(k, out.mutable_raw());
      outputs.emplace_back(std::move(out));
    }
    const CountingThreads threads;
    RunOptions options{.catalog = device_.catalog(), .threads = kThreads, .host_threads = threads};
    options.watch = watch;
    const int before = cpu_threads().set(kThreads);
    context.launch(options, nullptr);
    cpu_threads().set(before);
    cpu_threads().limit(CoreWatch::kNoLimit);
    return outputs;
  }

  static inline int changes = 0;

 private:
  // Those of the processor.
  class CountingThreads : public HostThreads {
   public:
    int set(int threads) const override { return cpu_threads().set(threads); }
    bool can_be_limited() const override { return true; }
    int limit(int limit) const override {
      static int last = CoreWatch::kNoLimit;
      changes += limit != last;
      last = limit;
      return cpu_threads().limit(limit);
    }
    bool run_streams(int streams, int threads, FunctionRef<void(int)> work) const override {
      return cpu_threads().run_streams(streams, threads, work);
    }
  };

  const Device& device_ = get_device("cpu");
  std::shared_ptr<const CompiledPlan> compiled_;
};

// Kernels may add up the same numbers in another order where there are fewer threads; those that add up to 1 are as
// large as 80.
constexpr FloatTolerance kTolerance{1e-4, 1e-4};

TEST(Neighbours, ThreadsThatChangeWithinARunChangeNoNumbers) {
  PlanRun::changes = 0;
  for (uint64_t seed = 0; seed < 25; ++seed) {
    const Graph graph = make_random_network(seed);
    Random random(seed);
    const Tensor x = draw_tensor(random, DType::f32, graph.type(graph.inputs()[0]).shape().static_dims());
    PlanRun plan(graph, nullptr);
    const std::vector<Datum> expected = plan.run(x, nullptr);
    const Visitors visitors;
    CoreWatch watch(visitors);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(difference(plan.run(x, &watch), expected, kTolerance), "") << "seed " << seed << ", run " << i;
    }
  }
  EXPECT_GT(PlanRun::changes, 50);
}

TEST(Neighbours, StreamsThatLoseTheirProcessorsRunInTurn) {
  PlanRun::changes = 0;
  for (uint64_t seed = 100; seed < 115; ++seed) {
    const Graph graph = prepare_graph(make_random_network(seed), get_device("cpu"), {});
    Random random(seed);
    const Tensor x = draw_tensor(random, DType::f32, graph.type(graph.inputs()[0]).shape().static_dims());
    const Schedule schedule = make_random_schedule(random, graph, kThreads, 2);
    PlanRun plan(graph, &schedule);
    const std::vector<Datum> expected = plan.run(x, nullptr);
    const Visitors visitors;
    CoreWatch watch(visitors);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(difference(plan.run(x, &watch), expected, kTolerance), "") << "seed " << seed << ", run " << i;
    }
  }
  EXPECT_GT(PlanRun::changes, 20);
}

}  // namespace
}  // namespace autograph
