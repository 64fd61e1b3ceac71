#include "support/graphs/random_network.h"
#include "autograph/random.h"

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "ops/sample.h"

namespace autograph {
namespace {

class NetworkDrawer {
 public:
  explicit NetworkDrawer(uint64_t seed) : random_(seed) {}

  Graph make() {
    Graph graph("network");
    const int64_t channels = draw_one_of<int64_t>(random_, {3, 8, 16, 24});
    values_ = {input(graph, DType::f32, {1, channels, 12, 12}, "x")};
    const int64_t steps = draw(random_, 4, 12);
    for (int64_t i = 0; i < steps; ++i) values_.push_back(add_layer(graph));
    graph.add_output(values_.back().id(), "y");
    if (draw_bool(random_)) graph.add_output(any().id(), "also");
    return graph;
  }

 private:
  Var any() { return values_[static_cast<size_t>(draw(random_, 0, static_cast<int64_t>(values_.size()) - 1))]; }
  Var recent() { return draw(random_, 0, 3) > 0 ? values_.back() : any(); }
  Var weight(Graph& graph, Dims dims) {
    return constant(graph, draw_tensor(random_, DType::f32, std::move(dims), -0.4, 0.4));
  }

  Var add_layer(Graph& graph) {
    switch (draw(random_, 0, 8)) {
      case 0: return max_or_average_pool(recent());
      case 1: return join(recent());
      case 2: return activation(recent());
      case 3: return squeeze_excite(graph, recent());
      case 4: return residual(recent());
      case 5: return depthwise(graph, recent());
      default: return activation(convolution(graph, recent()));
    }
  }

  Var convolution(Graph& graph, Var x) {
    const int64_t size = draw_one_of<int64_t>(random_, {1, 3, 3, 5});
    const int64_t out = draw_one_of<int64_t>(random_, {8, 16, 20, 32});
    const bool biased = draw_bool(random_);
    const int64_t stride = x.dim(2) > 6 && draw(random_, 0, 3) == 0 ? 2 : 1;
    return conv_of(x, weight(graph, {out, x.dim(1), size, size}), biased ? weight(graph, {out}) : Var(), stride, 1);
  }

  Var depthwise(Graph& graph, Var x) {
    const int64_t size = draw_one_of<int64_t>(random_, {3, 5});
    return conv_of(x, weight(graph, {x.dim(1), 1, size, size}), weight(graph, {x.dim(1)}), 1, x.dim(1));
  }

  static Var conv_of(Var x, Var w, Var b, int64_t stride, int64_t group) {
    const int64_t pad = w.dim(2) / 2;
    return apply(get_op("conv"), {x, w, b},
                 {{"strides", std::vector<int64_t>{stride, stride}},
                  {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                  {"group", group}});
  }

  Var activation(Var x) {
    switch (draw(random_, 0, 5)) {
      case 0: return relu(x);
      case 1: return hard_swish(x);
      case 2: return sigmoid(x);
      case 3: return apply(get_op("gelu"), {x});
      default: return x;
    }
  }

  Var max_or_average_pool(Var x) {
    const bool is_max = draw_bool(random_);
    return apply(get_op(is_max ? "max_pool" : "average_pool"), {x},
                 {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  }

  // Concatenates with every earlier value of the same plane, up to three.
  Var join(Var x) {
    std::vector<Var> parts{x};
    for (const Var& v : values_) {
      if (parts.size() < 4 && v.dim(2) == x.dim(2) && draw_bool(random_)) parts.push_back(v);
    }
    return apply(get_op("concat"), parts, {{"axis", int64_t{1}}});
  }

  Var residual(Var x) {
    for (auto v = values_.rbegin(); v != values_.rend(); ++v) {
      if (v->id() != x.id() && v->shape() == x.shape()) return relu(add(x, *v));
    }
    return x;
  }

  Var squeeze_excite(Graph& graph, Var x) {
    const Var pooled = apply(get_op("global_average_pool"), {x});
    const Var squeezed = relu(conv_of(pooled, weight(graph, {8, x.dim(1), 1, 1}), weight(graph, {8}), 1, 1));
    return mul(x, sigmoid(conv_of(squeezed, weight(graph, {x.dim(1), 8, 1, 1}), Var(), 1, 1)));
  }

  Random random_;
  std::vector<Var> values_;
};

}  // namespace

Graph make_random_network(uint64_t seed) { return NetworkDrawer(seed).make(); }

}  // namespace autograph
