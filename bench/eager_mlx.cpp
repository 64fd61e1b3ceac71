// The chains of eager.cpp by MLX on the CPU, whose headers and library come in its wheel (mlx and mlx-cpu): compiled by
// eager_peers.py and by nothing else. MLX computes nothing before eval(): forward is building a chain and evaluating
// its end, and forward with backward is what vjp() builds, evaluated. It computes on a thread of its own while the
// caller builds, so that here it is the clock on the wall that counts.
#include <mlx/mlx.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <vector>

namespace {

namespace mx = mlx::core;

constexpr int kChain = 200;
constexpr int kRounds = 30;
constexpr int kSide = 64;

template <class F>
double best_milliseconds(int rounds, F&& f) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point start = Clock::now();
    f();
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return best;
}

using Call = std::function<mx::array(const mx::array& x, const mx::array& w)>;

// Microseconds of an op.
void measure_chain(const char* name, const Call& call, const char* separator) {
  mx::array w = mx::full({kSide, kSide}, 0.01F);
  mx::array flows = mx::ones({kSide, kSide});
  mx::eval(w, flows);
  const auto chain = [&](const std::vector<mx::array>& inputs) -> std::vector<mx::array> {
    mx::array x = inputs[0];
    for (int i = 0; i < kChain; ++i) x = call(x, inputs[0]);
    return {x};
  };
  const double op_us = 1e3 / kChain * best_milliseconds(kRounds, [&] { mx::eval(chain({w})); });
  const double both_us = 1e3 / kChain * best_milliseconds(kRounds, [&] {
                           auto [values, gradients] = mx::vjp(chain, {w}, {flows});
                           values.insert(values.end(), gradients.begin(), gradients.end());
                           mx::eval(values);
                         });
  std::printf("%s{\"op\": \"%s\", \"op_us\": %.3f, \"backward_us\": %.3f}", separator, name, op_us, both_us - op_us);
}

}  // namespace

int main() {
  mx::set_default_device(mx::Device::cpu);
  std::printf("{\"schema\": 1, \"bench\": \"eager_mlx\", \"chains\": [");
  measure_chain(
      "add", [](const auto& x, const auto& w) { return mx::add(x, w); }, "");
  measure_chain(
      "mul", [](const auto& x, const auto& w) { return mx::multiply(x, w); }, ", ");
  measure_chain(
      "relu", [](const auto& x, const auto&) { return mx::maximum(x, mx::array(0.0F)); }, ", ");
  measure_chain(
      "tanh", [](const auto& x, const auto&) { return mx::tanh(x); }, ", ");
  measure_chain(
      "matmul", [](const auto& x, const auto& w) { return mx::matmul(x, w); }, ", ");
  std::printf("]}\n");
  return 0;
}
