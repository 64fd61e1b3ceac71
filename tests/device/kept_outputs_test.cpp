// Outputs that stay on the device: their memory is used again when nobody holds it.
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <thread>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/devices.h"
#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/random.h"
#include "install/backend/toy_device.h"
#include "ops/sample.h"
#include "support/message_of.h"
#include "tensor/buffer_pool.h"

namespace autograph {
namespace {

using toy::toy_memory;

constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

class KeptToy : public toy::ToyDevice {
 public:
  KeptToy() : ToyDevice("kept toy") {}
  std::string identity() const override { return name(); }
};

// y = relu(x), z = x + x: no arena.
Executable compile_kept(size_t budget_bytes = 0) {
  static const Device& device = add_device(std::make_unique<KeptToy>());
  GraphBuilder graph("kept");
  const Var x = graph.input("x", DType::f32, {4, 8});
  graph.output("y", relu(x));
  graph.output("z", add(x, x));
  CompileOptions options;
  options.device = device.name();
  options.keep_on_device = true;
  options.memory_budget_bytes = budget_bytes;
  return compile(graph.build(), options);
}

Tensor draw_kept_input(uint64_t seed) {
  Random random(seed);
  return draw_tensor(random, DType::f32, {4, 8}, -1, 1);
}

std::vector<double> doubled(const Tensor& x) {
  std::vector<double> values = x.to_f64();
  for (double& value : values) value *= 2;
  return values;
}

TEST(KeptOutputs, TakeTurns) {
  const Executable toy = compile_kept();
  const Tensor x = draw_kept_input(1).to(&toy_memory());
  std::set<std::pair<const void*, const void*>> places;
  const size_t replayed = toy::ToyStream::num_replayed();
  std::vector<Datum> outputs;
  size_t used = 0;
  for (int run = 0; run < 10; ++run) {
    outputs = toy.run({x});
    places.insert({outputs[0].tensor().buffer().data(), outputs[1].tensor().buffer().data()});
    if (run == 1) used = toy_memory().bytes_in_use();
  }
  EXPECT_EQ(places.size(), 2U);
  EXPECT_EQ(toy_memory().bytes_in_use(), used);
  EXPECT_EQ(toy::ToyStream::num_replayed() - replayed, 8U) << "what comes back is captured";
}

TEST(KeptOutputs, StayAsTheyAreWhileSomebodyHoldsThem) {
  const Executable toy = compile_kept();
  std::vector<Tensor> held;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    held.push_back(toy.run({draw_kept_input(seed)})[1].tensor().reshaped({32}));
  }
  for (uint64_t seed = 0; seed < 6; ++seed) {
    EXPECT_EQ(held[seed].to_host().to_f64(), doubled(draw_kept_input(seed))) << seed;
  }
  const size_t all = toy_memory().bytes_in_use();
  const size_t bytes = held[0].size_bytes();
  held.clear();
  EXPECT_EQ(all - toy_memory().bytes_in_use(), (7 - 4) * bytes) << "idle are those of two runs";
}

TEST(KeptOutputs, StayAsTheyAreWithoutTheExecutable) {
  std::vector<Datum> outputs;
  const size_t before = toy_memory().bytes_in_use();
  {
    const Executable toy = compile_kept();
    toy.run({draw_kept_input(1)});
    outputs = toy.run({draw_kept_input(2)});
  }
  EXPECT_EQ(outputs[1].tensor().to_host().to_f64(), doubled(draw_kept_input(2)));
  outputs.clear();
  EXPECT_EQ(toy_memory().bytes_in_use(), before);
}

TEST(KeptOutputs, AreOneRunsAlone) {
  const Executable toy = compile_kept();
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t seed = 0; seed < 25; ++seed) {
        const Tensor x = draw_kept_input(100 * t + seed);
        if (toy.run({x})[1].tensor().to_host().to_f64() != doubled(x)) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

// Both outputs and nothing else: idle memory is given back before a run makes new one.
TEST(KeptOutputs, KeepToTheBudget) {
  const size_t bytes = 4 * 8 * sizeof(float);
  const Executable toy = compile_kept(2 * bytes);
  const Tensor x = draw_kept_input(1).to(&toy_memory());
  std::vector<Datum> outputs = toy.run({x});
  const size_t one_run = toy_memory().bytes_in_use();
  std::vector<Datum> more = toy.run({x});
  EXPECT_EQ(toy_memory().bytes_in_use(), one_run + 2 * bytes);
  outputs.clear();
  more.clear();
  EXPECT_EQ(toy_memory().bytes_in_use(), one_run) << "idle: as much as a run may have";
  outputs = toy.run({x});
  EXPECT_EQ(toy_memory().bytes_in_use(), one_run);
}

TEST(BufferPool, GivesWhatIsIdleAndOfTheSize) {
  BufferPool pool(&toy_memory());
  const std::vector<size_t> sizes{64, 128, 64, 0};
  const auto places = [](const std::vector<Buffer>& buffers) {
    std::vector<const void*> found;
    for (const Buffer& buffer : buffers) found.push_back(buffer.data());
    return found;
  };
  std::vector<Buffer> first = pool.take(sizes, kUnlimited);
  EXPECT_EQ(first[3].data(), nullptr);
  const std::vector<const void*> known = places(first);
  EXPECT_EQ(std::set<const void*>(known.begin(), known.end()).size(), 4U);
  std::swap(first[0], first[2]);
  first.clear();
  EXPECT_EQ(pool.idle_bytes(), 256U);
  std::vector<Buffer> second = pool.take(sizes, kUnlimited);
  EXPECT_EQ(places(second), known) << "each where it was";
  EXPECT_EQ(pool.idle_bytes(), 0U);
  second.erase(second.begin());
  EXPECT_EQ(pool.idle_bytes(), 64U);
  EXPECT_NE(pool.take(std::vector<size_t>{32}, kUnlimited)[0].data(), known[0]) << "another size";
  EXPECT_EQ(pool.take(std::vector<size_t>{32}, 32 + 40)[0].size_bytes(), 32U);
  EXPECT_EQ(pool.idle_bytes(), 32U) << "64 bytes were more than may be idle";
}

// What is needed is more than what may be needed.
TEST(BufferPool, IsFreedWhereThereIsNoRoom) {
  BufferPool pool(&toy_memory());
  constexpr size_t kMiB = size_t{1} << 20;
  const auto held = pool.take(std::vector<size_t>{16 * kMiB}, kUnlimited);
  pool.take(std::vector<size_t>{400 * kMiB}, kUnlimited);
  EXPECT_EQ(pool.idle_bytes(), 400 * kMiB);
  EXPECT_NE(Buffer::allocate(900 * kMiB, &toy_memory()).data(), nullptr);
  EXPECT_EQ(pool.idle_bytes(), 0U);
  EXPECT_NE(message_of<BudgetError>([] { Buffer::allocate(1020 * kMiB, &toy_memory()); }), "") << "what is held stays";
}

}  // namespace
}  // namespace autograph
