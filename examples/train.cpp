// Trains a classifier from a model as it would be imported, evaluates it, and makes an ordinary model of it again.
#include <cstdio>

#include "autograph/autograph.h"

using namespace autograph;

// Two classes of points: inside a circle, and outside.
struct Points {
  Tensor x = Tensor::empty(DType::f32, {256, 2});
  Tensor target = Tensor::empty(DType::i64, {256});

  explicit Points(Random& random) {
    std::uniform_real_distribution<float> coordinate(-1, 1);
    for (int64_t i = 0; i < 256; ++i) {
      float* point = x.mutable_data<float>() + 2 * i;
      point[0] = coordinate(random);
      point[1] = coordinate(random);
      target.mutable_data<int64_t>()[i] = point[0] * point[0] + point[1] * point[1] < 0.5F ? 1 : 0;
    }
  }
};

Graph make_model(Random& random) {
  std::normal_distribution<float> normal(0, 0.5F);
  const auto weight = [&](Dims dims) {
    Tensor tensor = Tensor::empty(DType::f32, dims);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.mutable_data<float>()[i] = normal(random);
    return tensor;
  };
  GraphBuilder graph("circle");
  const Var x = graph.input("x", DType::f32, {Dim::symbol("n"), 2});
  const Var hidden = relu(gemm(x, graph.constant(weight({2, 32}), "w1"), graph.constant(weight({32}), "b1")));
  graph.output("scores", gemm(hidden, graph.constant(weight({32, 2}), "w2"), graph.constant(weight({2}), "b2")));
  return graph.build();
}

double accuracy(const Executable& program, const Points& points) {
  const Outputs outputs = program.run({{"x", points.x}});
  const float* scores = outputs["scores"].data<float>();
  int right = 0;
  for (int64_t i = 0; i < 256; ++i) {
    right += (scores[2 * i + 1] > scores[2 * i]) == (points.target.data<int64_t>()[i] == 1) ? 1 : 0;
  }
  return right / 256.0;
}

int main() try {
  Random random;
  Graph model = make_model(random);
  const Executable step = compile(training_graph(model, {.optimizer = AdamW{.learning_rate = 0.01}}));
  double loss = 0;
  for (int i = 0; i < 300; ++i) {
    const Points points(random);
    loss = step.run({{"x", points.x}, {"target", points.target}})["loss"].to_f64()[0];
  }

  // Another program on the same weights, and a model with the trained ones.
  CompileOptions options;
  options.states = step.states();
  Graph trained = make_trainable(model, {.batch_statistics = false}).graph;
  const Points unseen(random);
  const double before = accuracy(compile(model), unseen), after = accuracy(compile(trained, options), unseen);
  step.states().copy_to(trained);
  trained.freeze();
  save_onnx(trained, "circle.onnx");
  std::printf("loss %.3f, accuracy %.2f before and %.2f after training\n", loss, before, after);
  return after > 0.95 && accuracy(compile(load_onnx("circle.onnx").graph), unseen) == after ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_code());
}
