// Trains a network on files of data: a table of points, in batches, with checkpoints, and saves what it has learned.
#include <cstdio>
#include <fstream>

#include "autograph/autograph.h"

using namespace autograph;

struct Net : nn::Module {
  nn::Linear& hidden = add<nn::Linear>("hidden", 2, 32);
  nn::Linear& head = add<nn::Linear>("head", 32, 2);
  Var forward(const Var& x) override { return head(relu(hidden(x))); }
};

void write_points(const char* path) {
  Random random;
  std::uniform_real_distribution<float> coordinate(-1, 1);
  std::ofstream file(path);
  file << "x,y,label\n";
  for (int i = 0; i < 2000; ++i) {
    const float x = coordinate(random), y = coordinate(random);
    file << x << ',' << y << ',' << (x * x + y * y < 0.5F ? "inside" : "outside") << '\n';
  }
}

int main() try {
  write_points("points.csv");
  DataLoader train(open_dataset("points.csv", Split::train), {.batch_size = 50, .shuffle = true, .drop_last = true});
  DataLoader test(open_dataset("points.csv", Split::test), {.batch_size = 50});
  Net net;
  TrainingGraphs graphs = training_graphs(net, train, classification(net, "x"), AdamW{.learning_rate = 0.01});
  const int64_t steps = 10 * train.batches_per_epoch();
  Trainer trainer(std::move(graphs), std::move(train), std::move(test),
                  {.epochs = 10, .schedule = nn::one_cycle(0.02, steps), .checkpoints = "points_run", .resume = true});
  const TrainingResult result = trainer.run();
  net.read_from(trainer.states());
  net.save("points.safetensors");
  const double accuracy = result.epochs.back().held_out.at("accuracy");
  std::printf("%lld steps, accuracy %.3f\n", static_cast<long long>(result.steps), accuracy);
  return accuracy > 0.95 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_code());
}
