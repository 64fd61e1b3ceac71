// Whatever kernels and layouts are chosen, the numbers are the same: random image networks compiled with random costs,
// so that every variant, reorder, part in place and fused epilogue comes up, against the reference.
#include <gtest/gtest.h>

#include <cstdlib>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "autograph/verify.h"
#include "engine/backends.h"
#include "engine/executable.h"
#include "ops/sample.h"
#include "runtime/run_context.h"
#include "support/compare.h"

namespace autograph {
namespace {

// Costs out of a hat.
class RandomCost : public KernelCost {
 public:
  explicit RandomCost(uint64_t seed) : random_(seed) {}
  bool is_concurrent() const override { return false; }
  std::vector<double> offers_us(const KernelCatalog&, const KernelCall&, std::span<const Offer> offers) override {
    std::vector<double> costs;
    for (size_t i = 0; i < offers.size(); ++i) costs.push_back(draw_cost());
    return costs;
  }
  double reorder_us(const KernelCatalog&, const ReorderCall&) override { return draw_cost() / 4; }

 private:
  double draw_cost() { return std::uniform_real_distribution<double>(1, 100)(random_); }
  Random random_;
};

// Draws a network of convolutions, pools, residuals, concats and squeeze-excites.
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

std::vector<Datum> run_with(const Graph& source, const Tensor& x, KernelCost& cost, std::string& plan_text) {
  const Device& device = get_device("cpu");
  Graph graph = prepare_graph(source, device, {});
  const KnownValues known = infer_types(graph);
  const auto compiled =
      compile_plan(std::make_shared<const Graph>(std::move(graph)), known, {.catalog = device.catalog, .cost = &cost});
  plan_text = print_plan(compiled->plan, *compiled->graph);
  RunContext context(compiled);
  context.bind_input(0, x);
  std::vector<Datum> outputs;
  for (size_t k = 0; k < compiled->plan.outputs.size(); ++k) {
    const SlotIndex slot = compiled->plan.outputs[k].slot;
    Tensor out = Tensor::empty(DType::f32, compiled->slot_dims[slot]);
    context.bind_output(k, out.mutable_raw());
    outputs.emplace_back(std::move(out));
  }
  const RunOptions options{.catalog = device.catalog, .run_nested = nullptr};
  // Twice: what a run leaves behind in the arena must not matter to the next.
  context.run(options, nullptr);
  context.run(options, nullptr);
  return outputs;
}

// AG_RANDOM_GRAPHS and AG_RANDOM_SEED as for the random graphs.
uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(AnyChoice, OfKernelsAndLayoutsGivesTheSameNumbers) {
  const uint64_t first = from_environment("AG_RANDOM_SEED", 0);
  const uint64_t count = from_environment("AG_RANDOM_GRAPHS", 60);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Graph graph = NetworkDrawer(seed).make();
    Random random(seed);
    const Tensor x = draw_tensor(random, DType::f32, graph.type(graph.inputs()[0]).shape().static_dims());
    CompileOptions reference;
    reference.device = "reference";
    reference.optimize = false;
    const std::vector<Datum> expected = compile(graph, reference).run({x});
    for (uint64_t choice = 0; choice < 4; ++choice) {
      RandomCost cost(seed * 100 + choice);
      std::string plan;
      const std::vector<Datum> actual = run_with(graph, x, cost, plan);
      ASSERT_EQ(difference(actual, expected, {2e-3, 2e-3}), "") << "seed " << seed << ", choice " << choice << "\n"
                                                                << plan;
    }
  }
}

}  // namespace
}  // namespace autograph
