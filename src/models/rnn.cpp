// Recurrent models, unrolled: RNNTC-SRU of MetaFlow and NasRNN of TASO (algorithms.md 1.6).
//
// RNNTC-SRU: 20 steps of a simple recurrent unit of width 1024, each with an input of its own:
//   u = x W1, f = sigmoid(x W2), r = sigmoid(x W3), c' = f c + f u, h = r c' + r x
// 11 ops a step, 220 in all. (A true SRU weighs u with 1 - f; MetaFlow's graph has f, and so has this one.) The 60
// products do not depend on the recurrence. An SRU shares W1, W2, W3 between steps; MetaFlow's graph has 60 weights:
// both are offered.
//
// NasRNN: 5 steps of the cell that neural architecture search found, width 512. Each step has eight sums
// t_i = x W_i + h U_i and a tree of 15 binary and 15 unary ops over them: 46 ops, 230 in all. W_i and U_i are shared.
#include <array>
#include <cmath>
#include <string>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {
namespace {

constexpr int kSruSteps = 20;
constexpr int64_t kSruWidth = 1024;
constexpr int kNasSteps = 5;
constexpr int64_t kNasWidth = 512;

using SruWeights = std::array<Var, 3>;

SruWeights sru_weights(const Layers& net) {
  const float deviation = 1.0F / std::sqrt(static_cast<float>(kSruWidth));
  const Dims dims = {kSruWidth, kSruWidth};
  return {net.parameter("w1", dims, deviation), net.parameter("w2", dims, deviation),
          net.parameter("w3", dims, deviation)};
}

struct SruState {
  Var cell;
  Var hidden;
};

SruState sru_step(const SruWeights& weights, Var x, Var cell) {
  const Var u = matmul(x, weights[0]);
  const Var f = sigmoid(matmul(x, weights[1]));
  const Var r = sigmoid(matmul(x, weights[2]));
  cell = add(mul(f, cell), mul(f, u));
  return {cell, add(mul(r, cell), mul(r, x))};
}

Graph sru_net(const std::string& name, int64_t batch, bool shared) {
  Graph graph(name);
  const Layers net(graph, name);
  std::array<Var, kSruSteps> inputs;
  const Dims dims = {batch, 1, kSruWidth};
  for (int step = 0; step < kSruSteps; ++step) inputs[step] = net.image(dims, "x" + std::to_string(step));
  Var cell = net.image(dims, "c");
  SruWeights weights;
  if (shared) weights = sru_weights(net);
  for (int step = 0; step < kSruSteps; ++step) {
    const ProvenanceScope scope("step" + std::to_string(step));
    if (!shared) weights = sru_weights(net);
    const SruState state = sru_step(weights, inputs[step], cell);
    cell = state.cell;
    graph.add_output(state.hidden.id(), "h" + std::to_string(step));
  }
  return graph;
}

struct NasWeights {
  std::array<Var, 8> input;
  std::array<Var, 8> hidden;
};

Var nas_step(const NasWeights& weights, Var x, Var h) {
  std::array<Var, 8> t;
  for (size_t i = 0; i < t.size(); ++i) t[i] = add(matmul(x, weights.input[i]), matmul(h, weights.hidden[i]));
  const Var a = add(relu(t[0]), sigmoid(t[3]));
  const Var b = add(sigmoid(t[1]), tanh(t[2]));
  const Var c = mul(sigmoid(t[4]), tanh(t[5]));
  const Var d = mul(sigmoid(t[6]), relu(t[7]));
  const Var e = add(sigmoid(b), tanh(c));
  const Var f = mul(tanh(a), tanh(d));
  const Var g = mul(tanh(e), tanh(f));
  return tanh(g);
}

}  // namespace

Graph build_rnntc_sru(int64_t batch) { return sru_net("rnntc_sru", batch, true); }

Graph build_rnntc_sru_unshared(int64_t batch) { return sru_net("rnntc_sru_unshared", batch, false); }

Graph build_nasrnn(int64_t batch) {
  Graph graph("nasrnn");
  const Layers net(graph, graph.name());
  const Dims dims = {batch, kNasWidth};
  std::array<Var, kNasSteps> inputs;
  for (int step = 0; step < kNasSteps; ++step) inputs[step] = net.image(dims, "x" + std::to_string(step));
  Var h = net.image(dims, "h");
  NasWeights weights;
  const float deviation = 1.0F / std::sqrt(static_cast<float>(kNasWidth));
  for (size_t i = 0; i < weights.input.size(); ++i) {
    weights.input[i] = net.parameter("w" + std::to_string(i), {kNasWidth, kNasWidth}, deviation);
    weights.hidden[i] = net.parameter("u" + std::to_string(i), {kNasWidth, kNasWidth}, deviation);
  }
  for (int step = 0; step < kNasSteps; ++step) {
    const ProvenanceScope scope("step" + std::to_string(step));
    h = nas_step(weights, inputs[step], h);
  }
  graph.add_output(h.id(), "output");
  return graph;
}

}  // namespace autograph
