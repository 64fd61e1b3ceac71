// The chains of eager.cpp by libtorch, whose headers and libraries come in PyTorch's wheel: compiled by
// eager_peers.py and by nothing else.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdio>
#include <functional>

#include "measure.h"

namespace {

using autograph::best_milliseconds;

constexpr int kChain = 200;
constexpr int kRounds = 30;
constexpr int64_t kSide = 64;

using Call = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& w)>;

// Microseconds of an op: forward with its node on the tape, and backward.
void measure_chain(const char* name, const Call& call, const char* separator) {
  at::Tensor w = at::full({kSide, kSide}, 0.01F).set_requires_grad(true);
  at::Tensor last;
  const double op_us = 1e3 / kChain * best_milliseconds(kRounds, [&] {
                         last = at::Tensor();
                         at::Tensor x = w;
                         for (int i = 0; i < kChain; ++i) x = call(x, w);
                         last = x;
                       });
  const at::Tensor flows = at::ones({kSide, kSide});
  const double backward_us = 1e3 / kChain * best_milliseconds(kRounds, [&] {
                               torch::autograd::backward({last}, {flows}, /*retain_graph=*/true);
                               w.mutable_grad() = at::Tensor();
                             });
  std::printf("%s{\"op\": \"%s\", \"op_us\": %.3f, \"backward_us\": %.3f}", separator, name, op_us, backward_us);
}

}  // namespace

int main() {
  at::set_num_threads(1);
  std::printf("{\"schema\": 1, \"bench\": \"eager_torch\", \"chains\": [");
  measure_chain(
      "add", [](const auto& x, const auto& w) { return at::add(x, w); }, "");
  measure_chain(
      "mul", [](const auto& x, const auto& w) { return at::mul(x, w); }, ", ");
  measure_chain(
      "relu", [](const auto& x, const auto&) { return at::relu(x); }, ", ");
  measure_chain(
      "tanh", [](const auto& x, const auto&) { return at::tanh(x); }, ", ");
  measure_chain(
      "matmul", [](const auto& x, const auto& w) { return at::matmul(x, w); }, ", ");
  std::printf("]}\n");
  return 0;
}
