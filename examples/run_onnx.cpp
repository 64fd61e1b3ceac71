// Loads an ONNX file, feeds it ones and prints what comes out.
//
//   run_onnx [MODEL.onnx]      without a file it writes a small model of the zoo first and loads that
#include <algorithm>
#include <cstdio>
#include <string>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/model_io.h"
#include "autograph/zoo.h"

using autograph::Datum;
using autograph::DType;
using autograph::Tensor;

namespace {

// Ones in the type of a graph input; symbolic extents become 1.
Tensor ones(const autograph::Type& type) {
  autograph::Dims dims;
  for (const autograph::Dim& dim : type.shape().dims()) dims.push_back(dim.value_or(1));
  Tensor tensor = Tensor::zeros(type.dtype(), dims);
  const auto count = static_cast<size_t>(tensor.num_elements());
  if (type.dtype() == DType::f32) std::fill_n(tensor.mutable_data<float>(), count, 1.0F);
  if (type.dtype() == DType::i64) std::fill_n(tensor.mutable_data<int64_t>(), count, int64_t{1});
  return tensor;
}

}  // namespace

int main(int argc, char** argv) try {
  std::string path = argc > 1 ? argv[1] : "";
  if (path.empty()) {
    path = "mlp.onnx";
    autograph::save_onnx(autograph::build_zoo_model("mlp"), path);
  }
  autograph::Model model = autograph::load_onnx(path);
  for (const std::string& warning : model.warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
  std::printf("%s: %zu nodes, written by %s\n", path.c_str(), model.graph.num_nodes(), model.producer.c_str());

  std::vector<Datum> inputs;
  for (const autograph::ValueId id : model.graph.inputs()) inputs.emplace_back(ones(model.graph.type(id)));
  const autograph::Executable program = autograph::compile(std::move(model.graph));
  const std::vector<Datum> outputs = program.run(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& tensor = outputs[i].tensor();
    std::printf("%s %s", program.graph().output_name(i).c_str(), autograph::to_string(tensor.type()).c_str());
    const std::vector<double> values = tensor.to_f64();
    for (size_t k = 0; k < std::min<size_t>(values.size(), 10); ++k) std::printf(" %.4f", values[k]);
    std::printf("\n");
  }
  return outputs.empty() ? 1 : 0;
} catch (const autograph::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_code());
}
