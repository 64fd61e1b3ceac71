// What loops cost: microseconds of a turn of a scan that adds four elements, and an LSTM layer spelled out as a scan
// beside its kernel, in turns, as JSON; one thread. Exit status 1 when a result is wrong, when a turn takes
// 2 us or more, or the scan 1.3 times as long as the kernel.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

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

struct Weights {
  Tensor w = drawn(1, {1, 4 * kWidth, kWidth}), r = drawn(2, {1, 4 * kWidth, kWidth}), b = drawn(3, {1, 8 * kWidth});
};

Graph layer(const Weights& weights) {
  Graph graph("layer");
  const Var x = input(graph, DType::f32, {kLength, kBatch, kWidth}, "x");
  const auto outputs =
      lstm(x, constant(graph, weights.w), constant(graph, weights.r), constant(graph, weights.b), "forward");
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
  const auto columns = [&](const Tensor& rows) {
    return transpose(constant(graph, rows.reshaped({4 * kWidth, kWidth})), {1, 0});
  };
  const std::vector<Var> biases = split(constant(graph, weights.b.reshaped({8 * kWidth})), {4 * kWidth, 4 * kWidth});
  const Var from_x = matmul(x, columns(weights.w)) + (biases[0] + biases[1]);
  const Var zeros = constant(graph, Tensor::zeros(DType::f32, {kBatch, kWidth}));
  graph.add_output(scan({zeros, zeros}, {from_x}, cell(), {columns(weights.r)})[2].id());
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

}  // namespace

int main() {
  bool right = true;
  const double turn_us = us_per_turn(right);

  const Weights weights;
  const Executable kernel = compile(layer(weights), one_thread());
  const Executable loop = compile(layer_as_scan(weights), one_thread());
  const std::vector<Datum> inputs{drawn(4, {kLength, kBatch, kWidth})};
  const double off = largest_difference(kernel.run(inputs)[0].tensor(), loop.run(inputs)[0].tensor());
  right = right && off < 1e-5;
  std::vector<double> ratios;
  double kernel_ms = 1e9, loop_ms = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const double fast = best_milliseconds(3, [&] { kernel.run(inputs); });
    const double slow = best_milliseconds(3, [&] { loop.run(inputs); });
    ratios.push_back(slow / fast);
    kernel_ms = std::min(kernel_ms, fast), loop_ms = std::min(loop_ms, slow);
  }
  std::nth_element(ratios.begin(), ratios.begin() + kRounds / 2, ratios.end());
  const double ratio = ratios[kRounds / 2];
  const bool on_target = turn_us < kTargetUs && ratio < kTargetRatio;
  fmt::print(
      "{{\"schema\": 1, \"bench\": \"loops\", \"us_per_turn\": {:.3f}, \"lstm_kernel_ms\": {:.3f}, "
      "\"lstm_scan_ms\": {:.3f}, \"ratio\": {:.3f}, \"largest_difference\": {:.1e}, \"right\": {}, \"on_target\": "
      "{}}}\n",
      turn_us, kernel_ms, loop_ms, ratio, off, right, on_target);
  return right && on_target ? 0 : 1;
}
