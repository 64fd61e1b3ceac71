// Trains on batches that threads make, stops in the middle, and goes on from a checkpoint to the same bits.
#include <cstdio>
#include <filesystem>

#include "autograph/autograph.h"

using namespace autograph;

// Images with a bright half: which one is the class. open_dataset() reads real ones.
DatasetPtr make_samples() {
  Random random;
  Tensor images = Tensor::empty(DType::f32, {256, 1, 8, 8}), labels = Tensor::empty(DType::i64, {256});
  for (int64_t i = 0; i < images.num_elements(); ++i) {
    const int64_t label = i / 64 % 2, row = i / 8 % 8;
    images.mutable_data<float>()[i] = static_cast<float>(random() % 100) / 100 + (row / 4 == label ? 0.3F : 0.0F);
    labels.mutable_data<int64_t>()[i / 64] = label;
  }
  return tensor_dataset({{"image", images}, {"label", labels}}, {"upper", "lower"});
}

Graph make_step() {
  Random random;
  Tensor weights = Tensor::empty(DType::f32, {64, 2});
  for (int64_t i = 0; i < 128; ++i) weights.mutable_data<float>()[i] = static_cast<float>(random() % 100) / 1000;
  GraphBuilder graph("halves");
  const Var image = graph.input("image", DType::f32, {Dim::symbol("n"), 1, 8, 8});
  graph.output("scores", matmul(flatten(image), graph.constant(weights, "w")));
  return training_graph(graph.build(), {.optimizer = AdamW{.learning_rate = 0.01}});
}

// Trains until `steps` are done, from the newest checkpoint in `folder` if there is one.
double train(const std::string& folder, int64_t steps) {
  CompileOptions options;
  options.expert.fixed_threads = true;  // sums in the same order, however busy the machine is
  const Executable program = compile(make_step(), options);
  StateStore states = program.states();
  DataLoader loader(make_samples(), {.batch_size = 32,
                                     .shuffle = true,
                                     .seed = 1,
                                     .transforms = {RandomCrop{.padding = 1}, HorizontalFlip{}},
                                     .threads = 2});
  Checkpoints checkpoints(folder, {.keep = 2, .better = BetterMetric::smaller});
  int64_t step = 0;
  if (const auto found = checkpoints.load_latest()) {
    found->restore(states);
    loader.seek(found->data);
    step = found->step;
  }
  for (const DamagedCheckpoint& damaged : checkpoints.damaged()) std::printf("skipped: %s\n", damaged.problem.c_str());
  double loss = 0;
  while (step < steps) {
    const auto batch = loader.next();
    if (!batch) continue;  // the end of an epoch
    loss = program.run({{"image", (*batch)["image"]}, {"target", (*batch)["label"]}})["loss"].to_f64()[0];
    if (++step % 20 != 0) continue;
    Checkpoint now{.step = step, .data = loader.position(), .metric = loss};
    now.capture(states);
    checkpoints.save(std::move(now));  // written while training goes on
  }
  checkpoints.wait();
  return loss;
}

int main() try {
  const std::filesystem::path runs = std::filesystem::temp_directory_path() / "autograph_resume";
  std::filesystem::remove_all(runs);
  std::filesystem::create_directories(runs);
  const double whole = train(runs / "whole", 200);
  train(runs / "stopped", 130);  // its newest checkpoint is of step 120
  const double resumed = train(runs / "stopped", 200);
  std::filesystem::remove_all(runs);
  std::printf("loss %.6f without a stop, %.6f with one\n", whole, resumed);
  return whole == resumed && whole < 0.3 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_code());
}
