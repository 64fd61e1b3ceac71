// A layer of one's own: channels are weighed by what the whole image says of them (squeeze and excitation). It is put
// between layers of the library, trained on synthetic images, and saved under the names that PyTorch would use.
#include <cstdio>

#include "autograph/autograph.h"

using namespace autograph;

struct Excitation : nn::Module {
  nn::Linear& down;
  nn::Linear& up;
  nn::GlobalAvgPool squeeze;
  explicit Excitation(int64_t channels)
      : down(add<nn::Linear>("down", channels, channels / 2)), up(add<nn::Linear>("up", channels / 2, channels)) {}
  Var forward(const Var& x) override {
    const Var weights = sigmoid(up(relu(down(squeeze(x)))));
    return x * unsqueeze(weights, {2, 3});
  }
};

// Images with a bright spot: of class 0 where it lies above the middle, else 1.
void draw(Random& random, Tensor& x, Tensor& target) {
  std::uniform_real_distribution<float> noise(0, 0.5F);
  std::uniform_int_distribution<int64_t> place(0, 63);
  for (int64_t i = 0; i < x.num_elements(); ++i) x.mutable_data<float>()[i] = noise(random);
  for (int64_t n = 0; n < 32; ++n) {
    const int64_t at = place(random);
    x.mutable_data<float>()[n * 64 + at] += 1;
    target.mutable_data<int64_t>()[n] = at / 32;
  }
}

int main() try {
  nn::Sequential net;
  net.push<nn::Conv2d>(1, 8, nn::Sizes{3}, nn::ConvSettings{.padding = {1}}).push(relu).push<Excitation>(8);
  net.push<nn::Flatten>().push<nn::Linear>(8 * 64, 2);

  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {32, 1, 8, 8}), target = graph.input("target", DType::i64, {32});
  const Var scores = net(x);
  const Var loss = nn::cross_entropy(scores, target);
  nn::minimize(loss, net, AdamW{.learning_rate = 0.01});
  graph.output("accuracy", nn::accuracy(scores, target));
  const Executable step = compile(graph.build());

  Random random;
  Tensor images = Tensor::empty(DType::f32, {32, 1, 8, 8}), labels = Tensor::empty(DType::i64, {32});
  double accuracy = 0;
  for (int i = 0; i < 200; ++i) {
    draw(random, images, labels);
    accuracy = 0.9 * accuracy + 0.1 * step.run({{"x", images}, {"target", labels}})["accuracy"].to_f64()[0];
  }
  net.read_from(step.states());
  net.save("excitation.safetensors");
  std::printf("accuracy %.2f, saved %s and %zu others\n", accuracy, net.tensors()[0]->path().c_str(),
              net.tensors().size() - 1);
  return accuracy > 0.9 && read_safetensors("excitation.safetensors").tensors[2].first == "2.down.weight" ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_code());
}
