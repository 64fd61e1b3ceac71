// Trains an ONNX model and tells its losses, for train_peers.py --check.
//
//   bench_training MODEL.onnx X.npy TARGET.npy LOSS OPTIMIZER RATE STEPS [GRADIENTS_DIR]
//
// Prints {"losses": [..], "first_step_ms": ..}: of STEPS steps on the same batch, for models whose only input is "x".
// With GRADIENTS_DIR it also writes the gradients of all weights before the first step, with the statistics that batch
// norms were given, into DIR/NAME.npy.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "autograph/autodiff.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/model_io.h"
#include "autograph/tensor_io.h"
#include "autograph/train.h"

namespace {

using namespace autograph;

void write_gradients(const Graph& model, const std::string& loss, const std::vector<NamedInput>& inputs,
                     const std::string& folder) {
  const std::string prefix = "grad/";
  GradientGraphOptions options;
  options.loss = loss;
  const Graph graph = gradient_graph(model, options);
  const Outputs outputs = compile(graph).run(inputs);
  for (size_t k = 1; k < graph.outputs().size(); ++k) {
    const std::string& name = graph.output_name(k);
    const std::filesystem::path file = folder + "/" + name.substr(prefix.size()) + ".npy";
    std::filesystem::create_directories(file.parent_path());
    write_npy(file, outputs[name]);
  }
}

int train(int argc, char** argv) {
  if (argc < 8) {
    throw UserError("[bench_training] arguments: expected MODEL X TARGET LOSS OPTIMIZER RATE STEPS [DIR]",
                    ExitCode::usage);
  }
  const Graph model = load_onnx(argv[1]).graph;
  const std::vector<NamedInput> inputs{{"x", read_npy(argv[2])}, {"target", read_npy(argv[3])}};
  TrainingOptions options;
  options.loss = argv[4];
  options.optimizer = find_optimizer(argv[5]);
  std::visit([&](auto& kind) { kind.learning_rate = std::stod(argv[6]); }, options.optimizer);
  if (argc > 8) write_gradients(model, options.loss, inputs, argv[8]);
  const auto start = std::chrono::steady_clock::now();
  const Executable step = compile(training_graph(model, options));
  double first_ms = 0;
  std::string losses;
  for (int i = 0; i < std::stoi(argv[7]); ++i) {
    losses += fmt::format("{}{:.9g}", i > 0 ? ", " : "", step.run(inputs)["loss"].to_f64()[0]);
    if (i > 0) continue;
    first_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  fmt::print("{{\"losses\": [{}], \"first_step_ms\": {:.1f}}}\n", losses, first_ms);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return train(argc, argv); } catch (const Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return static_cast<int>(error.exit_code());
}
