// A state dict of torchvision's resnet18: loaded, trained, and saved under the same names. In Python:
//
//     model = torchvision.models.resnet18(weights="DEFAULT")
//     safetensors.torch.save_file(model.state_dict(), "resnet18.safetensors")
//     ...
//     model.load_state_dict(safetensors.torch.load_file("trained.safetensors"))
//
//   example_torchvision_resnet [resnet18.safetensors IMAGES.npy LABELS.npy STEPS trained.safetensors SCORES.npy]
//
// Without arguments it makes such a file by itself. bench/state_dict.py compares with PyTorch.
#include <cstdio>
#include <cstdlib>

#include "autograph/autograph.h"

using namespace autograph;

nn::ConvSettings without_bias(int64_t stride, int64_t padding) {
  return {.stride = {stride}, .padding = {padding}, .bias = false};
}

struct BasicBlock : nn::Module {
  nn::Conv2d& conv1;
  nn::BatchNorm& bn1;
  nn::Conv2d& conv2;
  nn::BatchNorm& bn2;
  nn::Sequential* downsample = nullptr;

  BasicBlock(int64_t in, int64_t out, int64_t stride)
      : conv1(add<nn::Conv2d>("conv1", in, out, nn::Sizes{3}, without_bias(stride, 1))),
        bn1(add<nn::BatchNorm>("bn1", out)),
        conv2(add<nn::Conv2d>("conv2", out, out, nn::Sizes{3}, without_bias(1, 1))),
        bn2(add<nn::BatchNorm>("bn2", out)) {
    if (stride == 1 && in == out) return;
    downsample = &add<nn::Sequential>("downsample");
    downsample->push<nn::Conv2d>(in, out, nn::Sizes{1}, without_bias(stride, 0)).push<nn::BatchNorm>(out);
  }

  Var forward(const Var& x) override {
    const Var shortcut = downsample ? (*downsample)(x) : x;
    return relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut);
  }
};

struct ResNet18 : nn::Module {
  nn::Conv2d& conv1 = add<nn::Conv2d>("conv1", 3, 64, nn::Sizes{7}, without_bias(2, 3));
  nn::BatchNorm& bn1 = add<nn::BatchNorm>("bn1", 64);
  nn::MaxPool pool{{3}, {.stride = {2}, .padding = {1}}};
  nn::GlobalAvgPool average;
  nn::Flatten flatten;
  std::vector<nn::Sequential*> layers;
  nn::Linear* fc;

  ResNet18() {
    int64_t in = 64;
    for (int64_t stage = 0; stage < 4; ++stage) {
      const int64_t out = int64_t{64} << stage;
      layers.push_back(&add<nn::Sequential>("layer" + std::to_string(stage + 1)));
      layers.back()->push<BasicBlock>(in, out, stage == 0 ? 1 : 2).push<BasicBlock>(out, out, 1);
      in = out;
    }
    fc = &add<nn::Linear>("fc", 512, 1000);
  }

  Var forward(const Var& x) override {
    Var y = pool(relu(bn1(conv1(x))));
    for (nn::Sequential* layer : layers) y = (*layer)(y);
    return (*fc)(flatten(average(y)));
  }
};

Tensor scores_of(ResNet18& net, const Tensor& images) {
  net.eval();
  GraphBuilder graph;
  graph.output("scores", net(graph.input("x", DType::f32, Shape::of(images.dims()))));
  return compile(graph.build()).run({{"x", images}})["scores"];
}

// The losses of so many steps of SGD; the network then has what it has learned.
std::vector<double> train(ResNet18& net, const Tensor& images, const Tensor& labels, int steps) {
  net.train();
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, Shape::of(images.dims())),
            label = graph.input("label", DType::i64, Shape::of(labels.dims()));
  const Var loss = nn::cross_entropy(net(x), label);
  nn::minimize(loss, net, Sgd{.learning_rate = 0.01, .momentum = 0.9});
  graph.output("loss", loss);
  const Executable step = compile(graph.build());
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) losses.push_back(step.run({{"x", images}, {"label", labels}})["loss"].to_f64()[0]);
  net.read_from(step.states());
  return losses;
}

Tensor drawn_images() {
  Random random;
  std::normal_distribution<float> normal;
  Tensor images = Tensor::empty(DType::f32, {4, 3, 64, 64});
  for (int64_t i = 0; i < images.num_elements(); ++i) images.mutable_data<float>()[i] = normal(random);
  return images;
}

int main(int argc, char** argv) try {
  const bool is_given = argc == 7;
  const std::string from = is_given ? argv[1] : "resnet18.safetensors", to = is_given ? argv[5] : "trained.safetensors";
  const Tensor images = is_given ? read_npy(argv[2]) : drawn_images();
  const Tensor labels = is_given ? read_npy(argv[3]) : Tensor::vector({0, 1, 2, 3});
  if (!is_given) ResNet18().save(from);

  ResNet18 net;
  net.load(from);
  if (is_given) write_npy(argv[6], scores_of(net, images));
  const std::vector<double> losses = train(net, images, labels, is_given ? std::atoi(argv[4]) : 6);
  net.save(to);
  for (const double loss : losses) std::printf("%.9g\n", loss);

  ResNet18 again;
  again.load(to);
  return losses.back() < losses.front() && again.tensors().size() == 122 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_code());
}
