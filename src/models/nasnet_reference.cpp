// NASNet-A as published (Zoph et al., 2018): Mobile (4@1056, 224x224) and Large (6@4032, 331x331), in inference form
// without the auxiliary head. With batch normalisation's scale and shift they have 5,289,978 and 88,753,150 trainable
// parameters.
//
// A 3x3 stem, two stem cells at a quarter and half of the filters, three stages of N cells with F, 2F and 4F filters,
// a reduction cell between stages, and a linear head. Each cell reads the two tensors before it. "Separable" here is
// relu, depthwise, 1x1, norm, twice; the first of the pair carries the stride. Odd kernels are padded evenly, where
// TensorFlow pads strided windows at the end only: shapes are the same, border pixels differ.
#include <cmath>
#include <string>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {
namespace {

// The network's family parameters.
struct Family {
  const char* name;
  int64_t image;              // height and width of the input
  int64_t stem;               // filters of the 3x3 stem
  int64_t cells;              // cells in a stage
  int64_t filters;            // filters of the first stage
  bool skip_reduction_input;  // the first cell of a stage looks past the reduction cell and the cell before it
};

constexpr Family kMobile = {"nasnet_mobile", 224, 32, 4, 44, false};
constexpr Family kLarge = {"nasnet_large", 331, 96, 6, 168, true};

// Two branches are summed for each of a cell's results.
constexpr float kBranchScale = 0.7F;

struct Separable {
  int64_t kernel;
  int64_t stride = 1;
};

// Writes cells of `filters` filters.
class Cells {
 public:
  Cells(const Layers& net, int64_t filters) : net_(net), filters_(filters) {}

  Var normal(Var previous, Var current) const;
  Var reduction(Var previous, Var current) const;
  Var stem_reduction(Var older, Var newer) const;

 private:
  Var separable(const std::string& name, Var x, const Separable& spec) const;
  Var half_separable(Var x, const Separable& spec, const std::string& name) const;
  Var squeeze(const std::string& name, Var x) const;
  Var factorized_reduction(const std::string& name, Var x) const;
  Var fit(const std::string& name, Var previous, Var current) const;
  Var reduction_body(Var left, Var right) const;

  const Layers& net_;
  int64_t filters_;
};

Var Cells::half_separable(Var x, const Separable& spec, const std::string& name) const {
  const ProvenanceScope scope(name);
  x = relu(x);
  x = net_.conv("depthwise", x,
                {.out = x.dim(1), .kernel = {spec.kernel, spec.kernel}, .stride = spec.stride, .groups = x.dim(1)});
  return net_.conv_norm("pointwise", x, {.out = filters_, .gain = kLinearGain}, kBranchScale);
}

Var Cells::separable(const std::string& name, Var x, const Separable& spec) const {
  const ProvenanceScope scope(name);
  return half_separable(half_separable(x, spec, "first"), {spec.kernel}, "second");
}

Var Cells::squeeze(const std::string& name, Var x) const {
  const ProvenanceScope scope(name);
  return net_.conv_norm("conv", relu(x), {.out = filters_});
}

// Halves an image without losing pixels: one path takes the even positions, the other the odd ones.
Var Cells::factorized_reduction(const std::string& name, Var x) const {
  const ProvenanceScope scope(name);
  x = relu(x);
  const int64_t half = filters_ / 2;
  const Var even = net_.conv("even", x, {.out = half, .stride = 2});
  const Var shifted = slice(x, {1, 1}, {x.dim(2), x.dim(3)}, {2, 3});
  Var odd;
  {
    // One more row and column at the end: an odd extent has as many odd positions as even ones then, the last of them
    // 0.
    const ProvenanceScope odd_scope("odd");
    const Var weight = net_.parameter("weight", {filters_ - half, x.dim(1), 1, 1},
                                      kReluGain / std::sqrt(static_cast<float>(x.dim(1))));
    odd = conv(shifted, weight, {}, {.strides = {2, 2}, .pads = {0, 0, 1, 1}});
  }
  return net_.batch_norm("norm", concat({even, odd}, 1));
}

Var Cells::fit(const std::string& name, Var previous, Var current) const {
  if (previous.dim(2) != current.dim(2)) return factorized_reduction(name, previous);
  return squeeze(name, previous);
}

Var Cells::normal(Var previous, Var current) const {
  const Var left = fit("left", previous, current);
  const Var right = squeeze("right", current);
  const auto average = [&](Var x) { return net_.average_pool(x, {}); };
  const Var c0 = add(separable("c0_right", right, {5}), separable("c0_left", left, {3}));
  const Var c1 = add(separable("c1_a", left, {5}), separable("c1_b", left, {3}));
  const Var c2 = add(average(right), left);
  const Var c3 = add(average(left), average(left));
  const Var c4 = add(separable("c4", right, {3}), right);
  return concat({left, c0, c1, c2, c3, c4}, 1);
}

Var Cells::reduction_body(Var left, Var right) const {
  const PoolSpec half = {.stride = 2};
  const Var c0 = add(separable("c0_right", right, {5, 2}), separable("c0_left", left, {7, 2}));
  const Var c1 = add(net_.max_pool(right, half), separable("c1", left, {7, 2}));
  const Var c2 = add(net_.average_pool(right, half), separable("c2", left, {5, 2}));
  const Var c3 = add(net_.average_pool(c0, {}), c1);
  const Var c4 = add(separable("c4", c0, {3}), net_.max_pool(right, half));
  return concat({c1, c2, c3, c4}, 1);
}

Var Cells::reduction(Var previous, Var current) const {
  const Var left = fit("left", previous, current);
  return reduction_body(left, squeeze("right", current));
}

// The first stem cell: both of its inputs are the stem, which its separable convolutions read unsqueezed.
Var Cells::stem_reduction(Var older, Var newer) const { return reduction_body(older, squeeze("right", newer)); }

// Stages of cells behind the stem: `previous` is the tensor before `current`.
Var stages(const Layers& net, const Family& family, Var previous, Var current) {
  for (int64_t stage = 0; stage < 3; ++stage) {
    const int64_t filters = family.filters << stage;
    const ProvenanceScope stage_scope("stage" + std::to_string(stage + 1));
    Var reduced = current;
    if (stage > 0) {
      const ProvenanceScope scope("reduction");
      reduced = Cells(net, filters).reduction(previous, current);
      if (!family.skip_reduction_input) previous = current;
      current = reduced;
    }
    for (int64_t cell = 0; cell < family.cells; ++cell) {
      const ProvenanceScope scope("cell" + std::to_string(cell + 1));
      const Var next = Cells(net, filters).normal(previous, current);
      previous = current;
      current = next;
    }
  }
  return current;
}

Graph reference_net(const Family& family, int64_t batch) {
  Graph graph(family.name);
  const Layers net(graph, graph.name());
  Var stem = net.image({batch, 3, family.image, family.image});
  Var stem0;
  Var stem1;
  {
    const ProvenanceScope scope("stem");
    stem = net.conv_norm("conv", stem, {.out = family.stem, .kernel = {3, 3}, .stride = 2, .padding = Padding::valid});
  }
  {
    const ProvenanceScope scope("stem_cell0");
    stem0 = Cells(net, family.filters / 4).stem_reduction(stem, stem);
  }
  {
    const ProvenanceScope scope("stem_cell1");
    stem1 = Cells(net, family.filters / 2).reduction(stem, stem0);
  }
  Var x = stages(net, family, stem0, stem1);
  const ProvenanceScope scope("head");
  x = net.pool_to_vector(relu(x));
  graph.add_output(net.linear("fc", x, 1000).id(), "output");
  return graph;
}

}  // namespace

Graph build_nasnet_mobile(int64_t batch) { return reference_net(kMobile, batch); }

Graph build_nasnet_large(int64_t batch) { return reference_net(kLarge, batch); }

}  // namespace autograph
