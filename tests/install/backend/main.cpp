// Adds a device of its own to AutoGraph and runs a small model on it.
#include <autograph/autograph.h>

#include <cmath>
#include <iostream>

#include "toy_device.h"

namespace {

using namespace autograph;

// Numbers of both signs, no two rows alike.
Tensor numbers(Dims dims, int seed) {
  Tensor tensor = Tensor::empty(DType::f32, std::move(dims));
  float* x = tensor.mutable_data<float>();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) x[i] = static_cast<float>((i * 7 + seed) % 19 - 9) / 9;
  return tensor;
}

Graph make_model() {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {4, 8});
  const Var hidden = relu(matmul(x, graph.constant(numbers({8, 16}, 1))));
  graph.output("y",
               softmax(add(matmul(hidden, graph.constant(numbers({16, 3}, 2))), graph.constant(numbers({4, 3}, 3)))));
  return graph.build();
}

bool check(bool is_right, const char* what) {
  if (!is_right) std::cerr << "wrong: " << what << '\n';
  return is_right;
}

bool host_access_is_refused(const Tensor& tensor) {
  try {
    static_cast<void>(tensor.data<float>());
  } catch (const DeviceError& error) {
    return std::string(error.what()).find("to_host()") != std::string::npos;
  }
  return false;
}

bool has_own_kernel(const Executable& executable, const std::string& name) {
  for (const KernelChoice& choice : executable.kernel_choices()) {
    if (choice.kernel == name) return true;
  }
  return false;
}

}  // namespace

int main() {
  add_device(std::make_unique<toy::ToyDevice>());
  CompileOptions options;
  options.device = "toy";
  options.keep_on_device = true;
  const Executable on_toy = compile(make_model(), options);
  options.device = "reference";
  const Executable on_host = compile(make_model(), options);
  const Tensor x = numbers({4, 8}, 4);
  const Tensor y = on_toy.run({{"x", x.to(&toy::toy_memory())}})["y"];
  const std::vector<double> actual = y.to_host().to_f64();
  const std::vector<double> expected = on_host.run({{"x", x}})["y"].to_f64();
  bool is_right = check(actual.size() == expected.size(), "the number of elements");
  for (size_t i = 0; is_right && i < actual.size(); ++i) {
    is_right = check(std::abs(actual[i] - expected[i]) < 1e-6, "an element");
  }
  is_right = check(has_own_kernel(on_toy, "toy.relu"), "the kernels taken") && is_right;
  is_right = check(!y.is_on_host() && host_access_is_refused(y), "host access to memory of the device") && is_right;
  std::cout << "toy: " << (is_right ? "right" : "wrong") << '\n';
  return is_right ? 0 : 1;
}
