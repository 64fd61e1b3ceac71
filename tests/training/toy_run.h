// A small problem that is learned in a second, and runs of it.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "autograph/nn.h"
#include "autograph/ops/activation.h"
#include "autograph/random.h"
#include "autograph/trainer.h"
#include "ops/sample.h"
#include "support/test_folder.h"

namespace autograph {

/// Points of two coordinates, of class 0 within a circle, 1 left of it, 2 right of it.
inline DatasetPtr toy_points(int64_t count, uint64_t seed) {
  Random random(seed);
  Tensor x = draw_tensor(random, DType::f32, {count, 2}, -1, 1), label = Tensor::empty(DType::i64, {count});
  for (int64_t n = 0; n < count; ++n) {
    const float* point = x.data<float>() + 2 * n;
    const bool inside = point[0] * point[0] + point[1] * point[1] < 0.4F;
    label.mutable_data<int64_t>()[n] = inside ? 0 : point[0] < 0 ? 1 : 2;
  }
  return tensor_dataset({{"x", x}, {"label", label}});
}

/// Has everything that a run must bring back: batch statistics, dropout, moments.
struct ToyNet : nn::Module {
  nn::Linear& hidden = add<nn::Linear>("hidden", 2, 32);
  nn::BatchNorm& norm = add<nn::BatchNorm>("norm", 32);
  nn::Dropout& dropout = add<nn::Dropout>("dropout", 0.1);
  nn::Linear& head = add<nn::Linear>("head", 32, 3);
  Var forward(const Var& x) override { return head(dropout(relu(norm(hidden(x))))); }
};

/// A run of it; 8 batches of 32 in an epoch.
struct ToyRun {
  ToyNet net;
  std::unique_ptr<Trainer> trainer;
  TrainingResult result;

  explicit ToyRun(TrainerOptions options, const Optimizer& optimizer = AdamW{.learning_rate = 0.02},
                  const UpdateOptions& update = {}) {
    DataLoader training(toy_points(256, 1), {.batch_size = 32, .shuffle = true, .drop_last = true, .seed = 5});
    DataLoader held_out(toy_points(100, 2), {.batch_size = 30});
    options.compile.threads = 1;
    TrainingGraphs graphs = training_graphs(net, training, classification(net, "x"), optimizer, update);
    trainer = std::make_unique<Trainer>(std::move(graphs), std::move(training), std::move(held_out), options);
  }
  ToyRun& run() {
    result = trainer->run();
    return *this;
  }
};

inline std::string whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace autograph
