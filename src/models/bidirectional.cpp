// Stacks of recurrent layers that read both ways, over 64 steps of 128 features: what speech and tagging models are
// made of. bilstm: three layers of long short-term memory, 256 wide in each direction; bigru: the same of gated units.
// Both end in 32 scores for each step. Inputs and outputs lead with the batch, the layers' own order is [step, batch,
// ...].
#include <cmath>
#include <string>

#include "autograph/ops/recurrent.h"
#include "autograph/ops/shape.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {
namespace {

constexpr int kLayers = 3;
constexpr int64_t kSteps = 64;
constexpr int64_t kFeatures = 128;
constexpr int64_t kWidth = 256;
constexpr int64_t kLabels = 32;

using Layer = std::vector<Var> (*)(Var x, Var w, Var r, Var b, const std::string& direction);

// y [step, direction, batch, width] to [step, batch, 2 * width].
Var side_by_side(Var y) { return reshape(transpose(y, {0, 2, 1, 3}), {kSteps, y.dim(2), 2 * kWidth}); }

Graph stack(const std::string& name, int64_t batch, Layer layer, int64_t gates) {
  Graph graph(name);
  const Layers net(graph, name);
  const Var frames = net.image({batch, kSteps, kFeatures}, "frames");
  const ProvenanceScope scope(name);
  Var x = transpose(frames, {1, 0, 2});
  for (int number = 0; number < kLayers; ++number) {
    const ProvenanceScope layer_scope("layer" + std::to_string(number));
    const float deviation = 1.0F / std::sqrt(static_cast<float>(kWidth));
    const Var w = net.parameter("w", {2, gates * kWidth, x.dim(2)}, deviation);
    const Var r = net.parameter("r", {2, gates * kWidth, kWidth}, deviation);
    const Var b = net.parameter("b", {2, 2 * gates * kWidth}, 0.1F);
    x = side_by_side(layer(x, w, r, b, "bidirectional")[0]);
  }
  graph.add_output(net.linear("labels", transpose(x, {1, 0, 2}), kLabels).id(), "scores");
  return graph;
}

}  // namespace

Graph build_bilstm(int64_t batch) { return stack("bilstm", batch, lstm, 4); }

Graph build_bigru(int64_t batch) { return stack("bigru", batch, gru, 3); }

}  // namespace autograph
