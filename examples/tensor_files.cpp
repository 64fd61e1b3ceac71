// Saves the weights of a model as safetensors and one of them as npy, and reads both back.
#include <cstdio>

#include "autograph/error.h"
#include "autograph/tensor_io.h"
#include "autograph/zoo.h"

using autograph::Tensor;

int main() try {
  const autograph::Graph graph = autograph::build_zoo_model("mlp");
  autograph::SafeTensors weights;
  for (const autograph::ValueId id : graph.constants()) {
    const autograph::Value& value = graph.value(id);
    if (!value.name().empty()) weights.tensors.emplace_back(value.name(), value.constant());
  }
  weights.metadata["model"] = graph.name();
  autograph::write_safetensors("mlp.safetensors", weights);

  const autograph::SafeTensors read = autograph::read_safetensors("mlp.safetensors");
  bool right = read.tensors.size() == weights.tensors.size() && read.metadata.at("model") == "mlp";
  for (size_t i = 0; right && i < read.tensors.size(); ++i) {
    const auto& [name, tensor] = read.tensors[i];
    std::printf("%-16s %s\n", name.c_str(), autograph::to_string(tensor.type()).c_str());
    for (const auto& [written_name, written] : weights.tensors) {
      if (written_name == name) right = tensor.bitwise_equal(written);
    }
  }

  const Tensor& first = weights.tensors.front().second;
  autograph::write_npy("weight.npy", first);
  return right && autograph::read_npy("weight.npy").bitwise_equal(first) ? 0 : 1;
} catch (const autograph::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_code());
}
