// bench_trees: the Tree-LSTM of `autograph train tree` line by line on the tape, or captured: the loss of each step and
// samples a second of processor time, as a line of JSON. No dropout, so that losses can be compared; see tree_peers.py,
// which runs it.
//
//     bench_trees TREES.npz eager|captured [--from WEIGHTS.safetensors] [--steps 45] [--threads 1]
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "autograph/autograph.h"

namespace {

using namespace autograph;

struct Options {
  std::string trees;
  bool is_captured = false;
  std::string weights = {};
  int64_t steps = 45;
  int threads = 1;
};

Options parse(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool is_complete =
      words.size() >= 2 && words.size() % 2 == 0 && (words[1] == "eager" || words[1] == "captured");
  if (!is_complete)
    throw ValueError("usage: bench_trees TREES.npz eager|captured [--from F] [--steps N] [--threads N]");
  Options options{.trees = words[0], .is_captured = words[1] == "captured"};
  for (size_t i = 2; i < words.size(); i += 2) {
    if (words[i] == "--from")
      options.weights = words[i + 1];
    else if (words[i] == "--steps")
      options.steps = std::stoll(words[i + 1]);
    else if (words[i] == "--threads")
      options.threads = std::stoi(words[i + 1]);
    else
      throw ValueError("unknown: " + words[i]);
  }
  return options;
}

// Parameters as variables, by their paths.
NamedVars variables_of(nn::Module& module) {
  const Var beside = eager(Tensor::scalar(0.0F));
  NamedVars variables;
  for (nn::Parameter* parameter : module.parameters()) {
    variables.emplace_back(parameter->path(), parameter->beside(beside));
  }
  return variables;
}

Batch next_batch(DataLoader& loader) {
  std::optional<Batch> batch = loader.next();
  return batch ? std::move(*batch) : *loader.next();  // nothing at the end of an epoch
}

// The loss of each step, and samples a second without the first two steps, one of which is captured.
void train(const Options& options) {
  TrainingTask task = make_task("tree", options.trees, {.dropout = 0.0});
  if (!options.weights.empty()) task.module->load(options.weights);
  DataLoader loader(task.training, {.batch_size = task.batch, .shuffle = true, .drop_last = true});
  EagerOptimizer optimizer(variables_of(*task.module), task.optimizer, task.update);
  const nn::Schedule schedule =
      nn::find_schedule(task.schedule, std::get<AdamW>(task.optimizer).learning_rate, options.steps);
  const EagerFunction step = [&](const std::vector<Var>& fields) -> std::vector<Var> {
    optimizer.clear_gradients();
    const Var loss = task.loss({{"tree", fields[0]}, {"label", fields[1]}}).loss;
    backward(loss);
    optimizer.step();
    return {loss};
  };
  const EagerDevice device("cpu", options.threads);
  Captured captured = capture(step, {.compile = {.threads = options.threads}});
  std::vector<double> losses;
  std::clock_t begin = 0;
  constexpr int64_t kWarmUp = 2;
  for (int64_t n = 0; n < options.steps; ++n) {
    if (n == kWarmUp) begin = std::clock();
    assign(optimizer.learning_rate(), eager(Tensor::scalar(schedule(n))));
    const Batch batch = next_batch(loader);
    const std::vector<Var> fields{eager(batch["tree"]), eager(batch["label"])};
    losses.push_back(item((options.is_captured ? captured(fields) : step(fields))[0]));
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  fmt::print(
      "{{\"schema\": 1, \"bench\": \"trees\", \"captures\": {}, \"samples_per_cpu_second\": {:.1f}, \"losses\": "
      "[{:.9g}]}}\n",
      captured.num_captures(), (options.steps - kWarmUp) * task.batch / seconds, fmt::join(losses, ", "));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}
