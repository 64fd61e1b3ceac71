// What loops cost: microseconds of a turn of a scan over four elements, and an LSTM layer spelled out as a scan
// beside its kernel, in turns, both forward and with gradients of all weights, as JSON; one thread. Exit status 1 when
// a result is wrong, when a turn takes 2 us or more, or a scan 1.3 times as long as the kernel.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograph/autodiff.h"
#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "measure.h"

namespace {

using namespace autograph;

constexpr int kTurns = 10'000;
constexpr int kRounds = 15;
constexpr double kTargetUs = 2, kTargetRatio = 1.3;
constexpr int64_t kLength = 64, kBatch = 32, kWidth = 256;

Tensor drawn(uint64_t seed, const Dims& dims) {
  Random random(seed);
  std::normal_distribution<float> normal(0, 0.1F);
  Tensor tensor = Tensor::empty(DType::f32, dims);
  std::generate_n(tensor.mutable_data<float>(), tensor.num_elements(), [&] { return normal(random); });
  return tensor;
}

CompileOptions one_thread() {
  CompileOptions options;
  options.threads = 1;
  options.expert.disabled_passes = {"fuse_scanned_cell"};  // what the loop takes is the question
  return options;
}

Graph sum_of_slices() {
  Graph body("add");
  const Var sum = input(body, DType::f32, {4}, "sum"), slice = input(body, DType::f32, {4}, "slice");
  body.add_output((sum + slice).id());
  Graph graph("scan");
  const Var x = input(graph, DType::f32, {kTurns, 4}, "x"), first = input(graph, DType::f32, {4}, "first");
  graph.add_output(scan({first}, {x}, body)[0].id());
  return graph;
}

// A turn saves what its gradient needs.
Graph products_of_slices() {
  Graph body("multiply");
  const Var product = input(body, DType::f32, {4}, "product"), slice = input(body, DType::f32, {4}, "slice");
  body.add_output((product * slice).id());
  Graph graph("scan");
  const Var x = input(graph, DType::f32, {kTurns, 4}, "x"), first = input(graph, DType::f32, {4}, "first");
  graph.add_output(scan({first}, {x}, body)[0].id());
  return graph;
}

struct Weights {
  Tensor w = drawn(1, {1, 4 * kWidth, kWidth}), r = drawn(2, {1, 4 * kWidth, kWidth}), b = drawn(3, {1, 8 * kWidth});
};

Graph layer(const Weights& weights) {
  Graph graph("layer");
  const Var x = input(graph, DType::f32, {kLength, kBatch, kWidth}, "x");
  const Var w = constant(graph, weights.w, "w"), r = constant(graph, weights.r, "r");
  const auto outputs = lstm(x, w, r, constant(graph, weights.b, "b"), "forward");
  graph.add_output(squeeze(outputs[0], {1}).id());
  return graph;
}

// One position: (h, c, what x gives to the gates, r) -> (h, c, h).
Graph cell() {
  Graph body("cell");
  const auto state = [&](const char* name) { return input(body, DType::f32, {kBatch, kWidth}, name); };
  const Var h = state("h"), c = state("c"), from_x = input(body, DType::f32, {kBatch, 4 * kWidth}, "from_x");
  const Var r = input(body, DType::f32, {kWidth, 4 * kWidth}, "r");
  const std::vector<Var> gates = split_evenly(from_x + matmul(h, r), 4, 1);  // i, o, f, c
  const Var next_c = sigmoid(gates[2]) * c + sigmoid(gates[0]) * tanh(gates[3]);
  const Var next_h = sigmoid(gates[1]) * tanh(next_c);
  for (const Var& output : {next_h, next_c, next_h * 1.0}) body.add_output(output.id());
  return body;
}

Graph layer_as_scan(const Weights& weights) {
  Graph graph("scan");
  const Var x = input(graph, DType::f32, {kLength, kBatch, kWidth}, "x");
  const Var w = constant(graph, weights.w, "w"), r = constant(graph, weights.r, "r");
  const auto columns = [](const Var& rows) { return transpose(squeeze(rows, {0}), {1, 0}); };
  const std::vector<Var> biases = split(squeeze(constant(graph, weights.b, "b"), {0}), {4 * kWidth, 4 * kWidth});
  const Var from_x = matmul(x, columns(w)) + (biases[0] + biases[1]);
  const Var zeros = constant(graph, Tensor::zeros(DType::f32, {kBatch, kWidth}));
  graph.add_output(scan({zeros, zeros}, {from_x}, cell(), {columns(r)})[2].id());
  return graph;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a.data<float>()[i] - b.data<float>()[i])));
  }
  return largest;
}

double us_per_turn(bool& right) {
  const Executable program = compile(sum_of_slices(), one_thread());
  Tensor x = Tensor::zeros(DType::f32, {kTurns, 4});
  std::fill_n(x.mutable_data<float>(), x.num_elements(), 1.0F);
  const std::vector<Datum> inputs{x, Tensor::zeros(DType::f32, {4})};
  float sum = 0;
  const double ms = best_milliseconds(kRounds, [&] { sum = program.run(inputs)[0].tensor().data<float>()[0]; });
  right = right && sum == kTurns;
  return ms * 1e3 / kTurns;
}

// Of a loop whose turns are saved and the loop that goes back through them, for each turn of either.
double us_per_turn_trained(bool& right) {
  const Executable program = compile(gradient_graph(products_of_slices(), {.loss = "sum1"}), one_thread());
  Tensor x = Tensor::zeros(DType::f32, {kTurns, 4});
  std::fill_n(x.mutable_data<float>(), x.num_elements(), 1.0F);
  const std::vector<Datum> inputs{x, Tensor::of<float>({4}, {1, 2, 3, 4})};
  float slope = 0;
  const double ms = best_milliseconds(kRounds, [&] { slope = program.run(inputs)[1].tensor().data<float>()[3]; });
  right = right && slope == 4;  // of a product with the first slice: what the others and the state are
  return ms * 1e3 / (2 * kTurns);
}

// The layer by its kernel and as a scan.
struct LayerTimes {
  double kernel_ms = 1e9, scan_ms = 1e9, ratio = 0, largest_difference = 0;
};

LayerTimes compare(const Graph& layer, const Graph& scan, int runs) {
  const Executable kernel = compile(layer, one_thread()), loop = compile(scan, one_thread());
  const std::vector<Datum> inputs{drawn(4, {kLength, kBatch, kWidth})};
  const Outputs fast = kernel.run(inputs), slow = loop.run(inputs);
  LayerTimes times;
  for (size_t k = 0; k < fast.size(); ++k) {
    times.largest_difference =
        std::max(times.largest_difference, largest_difference(fast[k].tensor(), slow[k].tensor()));
  }
  std::vector<double> ratios;
  for (int round = 0; round < kRounds; ++round) {
    const double kernel_ms = best_milliseconds(runs, [&] { kernel.run(inputs); });
    const double scan_ms = best_milliseconds(runs, [&] { loop.run(inputs); });
    ratios.push_back(scan_ms / kernel_ms);
    times.kernel_ms = std::min(times.kernel_ms, kernel_ms), times.scan_ms = std::min(times.scan_ms, scan_ms);
  }
  std::nth_element(ratios.begin(), ratios.begin() + kRounds / 2, ratios.end());
  times.ratio = ratios[kRounds / 2];
  return times;
}

}  // namespace

int main() {
  bool right = true;
  const double turn_us = us_per_turn(right), trained_us = us_per_turn_trained(right);
  const Weights weights;
  const LayerTimes forward = compare(layer(weights), layer_as_scan(weights), 3);
  const GradientGraphOptions all{.loss = "mean", .wanted = "*"};
  const LayerTimes step = compare(gradient_graph(layer(weights), all), gradient_graph(layer_as_scan(weights), all), 1);
  right = right && std::max(forward.largest_difference, step.largest_difference) < 1e-5;
  const bool on_target =
      std::max(turn_us, trained_us) < kTargetUs && std::max(forward.ratio, step.ratio) < kTargetRatio;
  fmt::print(
      "{{\"schema\": 2, \"bench\": \"loops\", \"us_per_turn\": {:.3f}, \"us_per_turn_trained\": {:.3f}, "
      "\"lstm_kernel_ms\": {:.3f}, \"lstm_scan_ms\": {:.3f}, \"ratio\": {:.3f}, \"trained_kernel_ms\": {:.3f}, "
      "\"trained_scan_ms\": {:.3f}, \"trained_ratio\": {:.3f}, \"right\": {}, \"on_target\": {}}}\n",
      turn_us, trained_us, forward.kernel_ms, forward.scan_ms, forward.ratio, step.kernel_ms, step.scan_ms, step.ratio,
      right, on_target);
  return right && on_target ? 0 : 1;
}
