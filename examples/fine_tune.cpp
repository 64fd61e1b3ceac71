// Fine-tunes an ONNX file: its last layer learns new classes, the rest stays as it is; the result is an ONNX file
// again.
#include <cstdio>

#include "autograph/autograph.h"

using namespace autograph;

// Images of 784 pixels whose class is where they are bright.
DatasetPtr images(int64_t count, uint64_t seed) {
  Random random(seed);
  std::uniform_real_distribution<float> noise(0, 1);
  Tensor x = Tensor::empty(DType::f32, {count, 784}), label = Tensor::empty(DType::i64, {count});
  for (int64_t i = 0; i < x.num_elements(); ++i) x.mutable_data<float>()[i] = noise(random);
  for (int64_t n = 0; n < count; ++n) {
    label.mutable_data<int64_t>()[n] = n % 10;
    for (int64_t i = 0; i < 78; ++i) x.mutable_data<float>()[n * 784 + n % 10 * 78 + i] += 0.5F;
  }
  return tensor_dataset({{"image", x}, {"label", label}});
}

int main() try {
  save_onnx(build_zoo_model("mlp"), "pretrained.onnx");
  const Graph model = load_onnx("pretrained.onnx").graph;

  DataLoader train(images(640, 1), {.batch_size = 32, .shuffle = true, .drop_last = true});
  DataLoader test(images(200, 2), {.batch_size = 50});
  const TrainableOptions last_layer{.weights = "fc3/*"};
  TrainingGraphs graphs =
      training_graphs(model, train, {.trainable = last_layer, .optimizer = AdamW{.learning_rate = 0.003}});
  Trainer trainer(std::move(graphs), std::move(train), std::move(test), {.epochs = 8});
  const double accuracy = trainer.run().epochs.back().held_out.at("accuracy");

  Graph tuned = make_trainable(model, {.weights = last_layer.weights, .batch_statistics = false}).graph;
  trainer.states().copy_to(tuned);
  tuned.freeze();
  save_onnx(tuned, "tuned.onnx");
  std::printf("accuracy %.3f\n", accuracy);
  return accuracy > 0.8 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_code());
}
