// A loop of one's own over requests of different sizes: the batch is a symbol, bound by each run.
#include <chrono>
#include <cstdio>
#include <vector>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/linear.h"

using autograph::Dim;
using autograph::DType;
using autograph::Tensor;
using autograph::Var;

namespace {

// relu(relu(x w1) w2) with x [batch, 64]; all weights 1/64, so that ones give ones.
autograph::Graph make_graph() {
  autograph::Graph graph("two_layers");
  Var x = autograph::input(graph, DType::f32, {Dim::symbol("batch"), 64}, "x");
  for (const char* name : {"w1", "w2"}) {
    const Tensor weight = Tensor::of<float>({64, 64}, std::vector<float>(64 * 64, 1.0F / 64));
    x = autograph::relu(autograph::matmul(x, autograph::constant(graph, weight, name)));
  }
  graph.add_output(x.id(), "y");
  return graph;
}

}  // namespace

int main() try {
  const autograph::Executable program = autograph::compile(make_graph());
  bool right = true;
  for (const int64_t batch : {1, 4, 32, 4, 1}) {
    const Tensor x = Tensor::of<float>({batch, 64}, std::vector<float>(static_cast<size_t>(batch * 64), 1.0F));
    const auto begin = std::chrono::steady_clock::now();
    const Tensor y = program.run({x}).front().tensor();
    const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - begin;
    std::printf("batch %2lld: %s, %.1f us\n", static_cast<long long>(batch), autograph::to_string(y.dims()).c_str(),
                elapsed.count());
    right = right && y.dims() == autograph::Dims{batch, 64} && y.data<float>()[batch * 64 - 1] == 1.0F;
  }
  return right ? 0 : 1;
} catch (const autograph::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_code());
}
