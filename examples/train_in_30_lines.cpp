// Training in 30 lines: a network on tensors in memory.
#include <iostream>

#include "autograph/autograph.h"

using namespace autograph;

struct Net : nn::Module {
  nn::Linear& hidden = add<nn::Linear>("hidden", 2, 32);
  nn::Linear& head = add<nn::Linear>("head", 32, 2);
  Var forward(const Var& x) override { return head(relu(hidden(x))); }
};

int main() {
  Random random;
  Tensor x = Tensor::empty(DType::f32, {1024, 2}), label = Tensor::empty(DType::i64, {1024});
  for (int64_t i = 0; i < 2048; ++i) x.mutable_data<float>()[i] = static_cast<float>(random() % 200) / 100 - 1;
  for (int64_t n = 0; n < 1024; ++n) {
    const float* point = x.data<float>() + 2 * n;
    label.mutable_data<int64_t>()[n] = point[0] * point[1] > 0 ? 1 : 0;
  }
  DataLoader data(tensor_dataset({{"x", x}, {"label", label}}), {.batch_size = 32, .shuffle = true});
  Net net;
  TrainingGraphs graphs = training_graphs(net, data, classification(net, "x"), AdamW{.learning_rate = 0.01});
  Trainer trainer(std::move(graphs), std::move(data), {}, {.epochs = 10});
  const double accuracy = trainer.run().epochs.back().training.at("accuracy");
  std::cout << "accuracy " << accuracy << "\n";
  return accuracy > 0.95 ? 0 : 1;
}
