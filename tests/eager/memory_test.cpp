// Memory over many steps whose shapes change from step to step.
#include <unistd.h>

#include <gtest/gtest.h>

#include <fstream>

#include "autograph/eager.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "tensor/block_pool.h"

namespace autograph {
namespace {

double resident_mb() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

// One step of a network of one layer on `rows` samples.
void step(const Var& w, int64_t rows) {
  const Var x = eager(Tensor::zeros(DType::f32, {rows, 8}));
  backward(reduce_mean(tanh(matmul(x, w) + w[0]), {}, false));
  assign(w, w - 0.1 * gradient(w));
  clear_gradient(w);
}

// More shapes than calls are kept for, again and again: calls, nodes, blocks and what the process has stay as they are.
TEST(EagerMemory, IsFlatOverStepsOfChangingShapes) {
  const EagerDevice device("cpu", 1);
  const Var w = variable(Tensor::of<float>({8, 8}, std::vector<float>(64, 0.1F)));
  constexpr int64_t kShapes = 211;  // each with about ten calls of its own
  const auto run_steps = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) step(w, 1 + i * 7 % kShapes);
  };
  run_steps(2 * kShapes);
  const int64_t nodes = eager_statistics().live_nodes;
  [[maybe_unused]] const double before = resident_mb();
  run_steps(8 * kShapes);
  EXPECT_EQ(eager_statistics().live_nodes, nodes);
  EXPECT_LE(eager_statistics().prepared_calls, 1024);
  EXPECT_LE(kept_bytes_of_thread(), kMaxKeptBytes);
#ifndef __SANITIZE_ADDRESS__  // which keeps what was freed for a while
  EXPECT_LT(resident_mb() - before, 24);
#endif
}

}  // namespace
}  // namespace autograph
