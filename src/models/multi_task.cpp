// One trunk and many heads, as perception stacks and face models have them: a residual trunk at 256x256 and, on its
// 16x16 features, five heads of their own convolutions: segmentation, depth, boxes, keypoints and attributes. The heads
// read the same tensor and are as deep as each other, but differ in width and end.
#include <string>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {
namespace {

constexpr int64_t kSide = 256;
constexpr int64_t kTrunkWidths[] = {32, 64, 128, 256};

struct Head {
  const char* name;
  int64_t width;
  int64_t out;
  bool is_vector;  // one answer for the image
};

constexpr Head kHeads[] = {{"segmentation", 128, 19, false},
                           {"depth", 64, 1, false},
                           {"boxes", 96, 36, false},
                           {"keypoints", 96, 17, false},
                           {"attributes", 128, 40, true}};

// Half the side, then one residual block.
Var trunk_stage(const Layers& net, Var x, int64_t width) {
  x = net.conv_norm_relu("down", x, {.out = width, .kernel = {3, 3}, .stride = 2});
  const Var y = net.conv_norm_relu("conv1", x, {.out = width, .kernel = {3, 3}});
  return relu(add(x, net.conv_norm("conv2", y, {.out = width, .kernel = {3, 3}}, 0.5F)));
}

Var answer(const Layers& net, Var x, const Head& head) {
  Var y = net.conv_norm_relu("conv1", x, {.out = head.width, .kernel = {3, 3}});
  y = net.conv_norm_relu("conv2", y, {.out = head.width, .kernel = {3, 3}});
  if (head.is_vector) return sigmoid(net.linear("linear", net.pool_to_vector(y), head.out));
  return net.conv("out", y, {.out = head.out, .bias = true, .gain = kLinearGain});
}

}  // namespace

Graph build_multi_task(int64_t batch) {
  Graph graph("multi_task");
  const Layers net(graph, graph.name());
  Var x = net.image({batch, 3, kSide, kSide});
  for (size_t stage = 0; stage < std::size(kTrunkWidths); ++stage) {
    const ProvenanceScope scope("trunk" + std::to_string(stage));
    x = trunk_stage(net, x, kTrunkWidths[stage]);
  }
  for (const Head& head : kHeads) {
    const ProvenanceScope scope(head.name);
    graph.add_output(answer(net, x, head).id(), head.name);
  }
  return graph;
}

}  // namespace autograph
