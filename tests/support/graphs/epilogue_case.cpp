#include "support/graphs/epilogue_case.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "autograph/ops/linear.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "graph/run_reference.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "optimize/body_builder.h"
#include "support/spaced_rows.h"

namespace autograph {
namespace {

// ---- Products --------------------------------------------------------------------------------------------------

// A convolution of x with known weights and, mostly, a known bias.
Var convolution(OperandMaker& o, const Dims& x, const Dims& w, const ConvOptions& options) {
  const Var weights = o.tensor(w, -0.5F, 0.5F, true);
  const bool has_bias = draw(o.random(), 0, 3) > 0;
  return conv(o.tensor(x, -1, 1), weights, has_bias ? o.tensor({w[0]}, -0.5F, 0.5F, true) : Var(), options);
}

constexpr int64_t kRows = 7;
constexpr int64_t kInner = 19;

constexpr ProductKind kProducts[] = {
    {"conv3x3",
     [](OperandMaker& o, int64_t c) {
       return convolution(o, {1, c, 6, 7}, {c, c, 3, 3}, {.pads = {1, 1, 1, 1}});
     },
     1},
    {"conv1x1",
     [](OperandMaker& o, int64_t c) {
       return convolution(o, {2, c, 5, 7}, {c, c, 1, 1}, {});
     },
     1},
    {"depthwise3x3",
     [](OperandMaker& o, int64_t c) {
       return convolution(o, {1, c, 6, 7}, {c, 1, 3, 3}, {.pads = {1, 1, 1, 1}, .group = c});
     },
     1},
    {"depthwise5x5",
     [](OperandMaker& o, int64_t c) {
       return convolution(o, {2, c, 8, 5}, {c, 1, 5, 5}, {.strides = {2, 2}, .pads = {2, 2, 2, 2}, .group = c});
     },
     1},
    {"grouped",
     [](OperandMaker& o, int64_t c) {
       const int64_t group = c % 8 == 0 ? c / 4 : c % 3 == 0 ? c / 3 : 1;
       return convolution(o, {1, c, 5, 6}, {c, c / group, 3, 3}, {.pads = {1, 0, 1, 2}, .group = group});
     },
     1},
    {"image",
     [](OperandMaker& o, int64_t c) {
       return convolution(o, {1, 3, 9, 10}, {c, 3, 3, 3}, {.strides = {2, 2}, .pads = {1, 1, 1, 1}});
     },
     1},
    {"conv1d",
     [](OperandMaker& o, int64_t c) {
       return convolution(o, {2, 5, 11}, {c, 5, 3}, {.pads = {2, 2}, .dilations = {2}});
     },
     1},
    {"conv3d",
     [](OperandMaker& o, int64_t c) {
       return convolution(o, {1, 4, 3, 4, 5}, {c, 4, 2, 2, 2}, {});
     },
     1},
    {"conv_of_unknown_weights",
     [](OperandMaker& o, int64_t c) {
       return conv(o.tensor({1, 6, 5, 4}, -1, 1), o.tensor({c, 6, 2, 3}, -0.5F, 0.5F), o.tensor({c}, -1, 1));
     },
     1},
    {"matrix",
     [](OperandMaker& o, int64_t c) {
       return matmul(o.tensor({kRows, kInner}, -1, 1), o.tensor({kInner, c}, -0.5F, 0.5F, true));
     },
     1},
    {"stacked_rows",
     [](OperandMaker& o, int64_t c) {
       return matmul(o.tensor({2, 3, c}, -1, 1), o.tensor({c, c}, -0.5F, 0.5F, true));
     },
     2},
    {"one_row",
     [](OperandMaker& o, int64_t c) {
       return matmul(o.tensor({kInner}, -1, 1), o.tensor({kInner, c}, -0.5F, 0.5F, true));
     },
     0},
    {"times_vector",
     [](OperandMaker& o, int64_t c) {
       return matmul(o.tensor({1, c, kInner}, -1, 1), o.tensor({kInner}, -0.5F, 0.5F, draw_bool(o.random())));
     },
     1},
    {"stacks",
     [](OperandMaker& o, int64_t c) {
       return matmul(o.tensor({2, 5, kInner}, -1, 1), o.tensor({2, kInner, c}, -0.5F, 0.5F));
     },
     2},
    {"broadcast_stacks",
     [](OperandMaker& o, int64_t c) {
       return matmul(o.tensor({2, 1, 4, kInner}, -1, 1), o.tensor({3, kInner, c}, -0.5F, 0.5F, true));
     },
     3},
    {"gemm",
     [](OperandMaker& o, int64_t c) {
       return gemm(o.tensor({kRows, kInner}, -1, 1), o.tensor({c, kInner}, -0.5F, 0.5F, true),
                   o.tensor({c}, -1, 1, true), {.transpose_b = true});
     },
     1},
    {"gemm_of_all",
     [](OperandMaker& o, int64_t c) {
       return gemm(o.tensor({kInner, kRows}, -1, 1), o.tensor({kInner, c}, -0.5F, 0.5F), o.tensor({kRows, 1}, -1, 1),
                   {.alpha = 0.7F, .transpose_a = true});
     },
     1},
};

// One to three spatial dims, wide or narrow, with windows that may be larger than what they are moved over.
Var random_convolution(OperandMaker& o, int64_t) {
  Random& random = o.random();
  const int64_t spatial = draw_one_of<int64_t>(random, {1, 2, 2, 2, 3});
  const int64_t group = draw_one_of<int64_t>(random, {1, 1, 1, 2, 3, 8, 16});
  const bool is_grouped = group > 1;
  const int64_t in = is_grouped ? draw(random, 1, 5) : draw_one_of<int64_t>(random, {1, 2, 3, 8, 16, 17, 40});
  const int64_t out = is_grouped ? draw(random, 1, 5) : draw_one_of<int64_t>(random, {1, 2, 5, 8, 16, 19, 48});
  const bool is_depthwise = group > 3 && draw_bool(random);
  Dims x{draw(random, 1, 2), group * (is_depthwise ? 1 : in)},
      w{group * (is_depthwise ? 1 : out), is_depthwise ? 1 : in};
  ConvOptions options{.group = group};
  std::array<Dims, 2> pads;
  for (int64_t a = 0; a < spatial; ++a) {
    const int64_t taps = draw_one_of<int64_t>(random, {1, 1, 2, 3, 3, 5, 7});
    w.push_back(taps);
    options.strides.push_back(draw_one_of<int64_t>(random, {1, 1, 1, 2, 3}));
    options.dilations.push_back(draw_one_of<int64_t>(random, {1, 1, 1, 2, 3}));
    const int64_t span = (taps - 1) * options.dilations.back() + 1;
    const int64_t wide = spatial == 3 ? 4 : a + 1 == spatial ? (in * out > 64 ? 10 : 40) : 6;
    for (size_t side : {size_t{0}, size_t{1}}) {
      pads[side].push_back(draw(random, 0, span / 2 + 1));
    }
    x.push_back(std::max(span, draw(random, 1, wide) + draw(random, 0, wide)));
  }
  for (const Dims& side : pads) options.pads.insert(options.pads.end(), side.begin(), side.end());
  return convolution(o, x, w, options);
}

Var random_matrix_product(OperandMaker& o, int64_t) {
  Random& random = o.random();
  const int64_t inner = draw_one_of<int64_t>(random, {1, 3, 16, 64, 100, 300});
  const int64_t columns = draw_one_of<int64_t>(random, {1, 2, 7, 16, 48, 65, 130});
  Dims a{draw_one_of<int64_t>(random, {1, 1, 2, 9, 33, 80}), inner};
  Dims b{inner, columns};
  if (draw(random, 0, 3) == 0) {
    const int64_t stack = draw(random, 1, 3);
    a.insert(a.begin(), stack);
    if (draw_bool(random)) b.insert(b.begin(), draw_bool(random) ? stack : 1);
  }
  const bool known = draw(random, 0, 3) > 0;
  return matmul(o.tensor(a, -1, 1), o.tensor(b, -0.5F, 0.5F, known));
}

constexpr ProductKind kRandomProducts[] = {{"random convolution", random_convolution, 1},
                                           {"random product", random_matrix_product, 1}};

// ---- Expected elements -----------------------------------------------------------------------------------------

Tensor magnitudes_of(const Tensor& tensor) {
  Tensor result = tensor.clone();
  float* elements = result.mutable_data<float>();
  for (int64_t i = 0; i < result.num_elements(); ++i) elements[i] = std::fabs(elements[i]);
  return result;
}

// Runs the nodes of a case one after the other.
class ReferenceRun {
 public:
  ReferenceRun(const EpilogueCase& test, const Exactness& exactness) : graph_(test.graph), exactness_(exactness) {
    known_.resize(graph_.value_capacity());
    for (size_t i = 0; i < graph_.inputs().size(); ++i) known_[graph_.inputs()[i].index] = test.inputs[i];
    for (const NodeId id : graph_.topological_order()) {
      const Node& node = graph_.node(id);
      if (!result_.values.is_present()) {
        start(node);
      } else {
        follow(node);
      }
      chain_ = node.output(0);
    }
  }

  ExpectedElements take() {
    for (size_t i = 0; i < result_.bounds.size(); ++i) {
      const float value = result_.values.data<float>()[i];
      if (result_.bounds[i] < 1e-2F * (1 + std::fabs(value))) ++result_.num_compared;
    }
    return std::move(result_);
  }

 private:
  // The inputs of a node, with `chain` for what the nodes before it made.
  std::vector<Tensor> inputs(const Node& node, const Tensor& chain) const {
    std::vector<Tensor> list;
    for (const ValueId v : node.inputs()) {
      if (!v.is_valid()) {
        list.emplace_back();
      } else if (v == chain_) {
        list.push_back(chain);
      } else {
        const Value& value = graph_.value(v);
        list.push_back(value.is_constant() ? value.constant() : known_[v.index]);
      }
    }
    return list;
  }

  Tensor run(const Node& node, const std::vector<Tensor>& inputs) const {
    const std::vector<Type> types{graph_.type(node.output(0))};
    return run_reference(node.op(), node.attributes(), inputs, types)[0];
  }

  void start(const Node& node) {
    std::vector<Tensor> list = inputs(node, {});
    result_.values = run(node, list);
    for (Tensor& tensor : list) {
      if (tensor.is_present()) tensor = magnitudes_of(tensor);
    }
    const Tensor sums = run(node, list);
    for (const float sum : sums.elements<float>()) result_.bounds.push_back(exactness_.product * sum + 1e-7F);
  }

  void follow(const Node& node) {
    const Tensor before = result_.values;
    Tensor low = before.clone(), high = before.clone();
    for (size_t i = 0; i < result_.bounds.size(); ++i) {
      low.mutable_data<float>()[i] -= result_.bounds[i];
      high.mutable_data<float>()[i] += result_.bounds[i];
    }
    result_.values = run(node, inputs(node, before));
    const Tensor at_low = run(node, inputs(node, low)), at_high = run(node, inputs(node, high));
    const bool divides = &node.op() == &reciprocal_def() || (&node.op() == &div_def() && node.inputs()[1] == chain_);
    for (size_t i = 0; i < result_.bounds.size(); ++i) {
      const float v = before.data<float>()[i], y = result_.values.data<float>()[i];
      const float down = at_low.data<float>()[i], up = at_high.data<float>()[i];
      // An op may turn back between the two: |x|.
      const float passed = std::max({std::fabs(down - y), std::fabs(up - y)});
      const float bound = passed + exactness_.op * (1 + std::fabs(v) + 2 * std::fabs(y));
      const bool may_be_pole = divides && std::fabs(v) <= result_.bounds[i];
      const bool is_known = std::isfinite(v) && std::isfinite(y) && std::isfinite(down) && std::isfinite(up) &&
                            std::isfinite(result_.bounds[i]) && !may_be_pole;
      result_.bounds[i] = is_known ? bound : std::numeric_limits<float>::infinity();
    }
  }

  const Graph& graph_;
  Exactness exactness_;
  std::vector<Tensor> known_;  // by value: elements of the inputs
  ValueId chain_;
  ExpectedElements result_;
};

// ---- Layouts ---------------------------------------------------------------------------------------------------

// Where element `flat` of a row-major tensor lies in another layout.
int64_t place_of(int64_t flat, Layout layout, const Dims& dims) {
  if (layout == Layout::row_major) return flat;
  int64_t plane = 1;
  for (size_t a = 2; a < dims.size(); ++a) plane *= dims[a];
  const int64_t pixel = flat % plane, channel = flat / plane % dims[1], instance = flat / plane / dims[1];
  const int64_t block = layout == Layout::channels_last ? dims[1] : channel_block(layout);
  const int64_t blocks = (dims[1] + block - 1) / block;
  return ((instance * blocks + channel / block) * plane + pixel) * block + channel % block;
}

int64_t size_in(Layout layout, const Dims& dims) {
  int64_t size = 1;
  for (const int64_t extent : padded_dims(layout, dims)) size *= extent;
  return size;
}

Tensor in_layout(const Tensor& tensor, Layout layout) {
  Tensor result = Tensor::zeros(DType::f32, {size_in(layout, tensor.dims())});
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    result.mutable_data<float>()[place_of(i, layout, tensor.dims())] = tensor.data<float>()[i];
  }
  return result;
}

// What nobody has written is NaN.
void spoil(Tensor& tensor) { std::memset(tensor.mutable_raw(), 0xFF, tensor.size_bytes()); }

// Elements that fill up the last block of channels must be zero: kernels behind this one multiply them.
std::string padding_complaint(const Tensor& given, Layout layout, const Dims& dims) {
  std::vector<bool> is_used(static_cast<size_t>(given.num_elements()), false);
  int64_t elements = 1;
  for (const int64_t extent : dims) elements *= extent;
  for (int64_t i = 0; i < elements; ++i) is_used[static_cast<size_t>(place_of(i, layout, dims))] = true;
  for (size_t i = 0; i < is_used.size(); ++i) {
    const float value = given.data<float>()[i];
    if (!is_used[i] && value != 0) return fmt::format("padding at {}: expected 0, got {}", i, value);
  }
  return "";
}

}  // namespace

std::span<const ProductKind> product_kinds() { return kProducts; }

std::span<const ProductKind> random_product_kinds() { return kRandomProducts; }

EpilogueCase::EpilogueCase(const ProductKind& product, int64_t channels, uint64_t seed,
                           FunctionRef<Var(Var, OperandMaker&)> append) {
  Random random(seed);
  OperandMaker operands(graph, random);
  const Var made = product.make(operands, channels);
  const bool is_convolution = &graph.node(graph.value(made.id()).producer()).op() == &conv_def();
  const Dims dims = made.shape().static_dims();
  // A product of matrices at random may be a stack.
  operands.set_chain(dims, is_convolution ? 1 : std::max(product.channel_axis, dims.size() - 1));
  graph.add_output(append(made, operands).id(), "y");
  inputs = operands.inputs();
}

EpilogueCase::EpilogueCase(const ProductKind& product, int64_t channels, uint64_t seed, std::span<const size_t> kinds)
    : EpilogueCase(product, channels, seed, [&](Var chain, OperandMaker& operands) {
        for (const size_t kind : kinds) chain = epilogue_kinds()[kind].append(chain, operands);
        return chain;
      }) {}

ExpectedElements expected_elements(const EpilogueCase& test, const Exactness& exactness) {
  return ReferenceRun(test, exactness).take();
}

std::string difference(const Tensor& actual, const ExpectedElements& expected) {
  int64_t worst = -1;
  float excess = 1;
  for (int64_t i = 0; i < actual.num_elements(); ++i) {
    const float bound = expected.bounds[static_cast<size_t>(i)];
    if (!std::isfinite(bound)) continue;
    const float off = std::fabs(actual.data<float>()[i] - expected.values.data<float>()[i]) / bound;
    // Also for NaN.
    if (off <= excess) continue;
    worst = i;
    excess = std::isnan(off) ? std::numeric_limits<float>::infinity() : off;
  }
  if (worst < 0) return "";
  return fmt::format("element {}: expected {}, got {} (bound {})", worst, expected.values.data<float>()[worst],
                     actual.data<float>()[worst], expected.bounds[static_cast<size_t>(worst)]);
}

FusedCase::FusedCase(const EpilogueCase& test) : graph_(test.graph) {
  const std::vector<NodeId> nodes = graph_.topological_order();
  if (nodes.size() > 1) {
    BodyBuilder builder(graph_);
    for (const NodeId id : nodes) builder.add(graph_.node(id));
    builder.emit(graph_);
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) graph_.erase_node(*it);
  }
  for (const ValueId v : node().inputs()) {
    const auto& inputs = graph_.inputs();
    const auto at = std::find(inputs.begin(), inputs.end(), v);
    const bool is_constant = v.is_valid() && graph_.value(v).is_constant();
    constants_.push_back(is_constant ? graph_.value(v).constant() : Tensor());
    inputs_.push_back(at == inputs.end() ? constants_.back() : test.inputs[static_cast<size_t>(at - inputs.begin())]);
    input_types_.push_back(v.is_valid() ? graph_.type(v) : Type());
  }
  output_types_ = {graph_.type(node().output(0))};
}

KernelCall FusedCase::call(int threads) const {
  return {.op = node().op(),
          .attributes = node().attributes(),
          .inputs = input_types_,
          .outputs = output_types_,
          .constants = constants_,
          .threads = threads};
}

Tensor FusedCase::run(const KernelCatalog& catalog, const KernelCandidate& candidate, int threads, bool in_place,
                      std::string& complaint) const {
  const KernelCall of = call(threads);
  const Prepared prepared = catalog.prepare(of, candidate);
  const Dims dims = of.output_dims(0);
  Tensor result = Tensor::empty(DType::f32, dims);
  spoil(result);
  complaint = prepared.refusal;
  if (!prepared.kernel) return result;
  std::vector<Tensor> given;
  std::vector<TensorView> views;
  for (size_t k = 0; k < inputs_.size(); ++k) {
    given.push_back(inputs_[k].is_present() ? in_layout(inputs_[k], candidate.variant.input(k)) : Tensor());
    views.push_back(inputs_[k].is_present() ? TensorView(DType::f32, inputs_[k].dims(), given.back().mutable_raw())
                                            : TensorView());
  }
  const Layout layout = candidate.variant.output(0);
  Tensor out = Tensor::empty(DType::f32, {size_in(layout, dims)});
  spoil(out);
  const std::vector<uint32_t> places = prepared.kernel->in_place_inputs();
  if (in_place && !places.empty()) out = given[places[0]];
  const TensorView output(DType::f32, dims, out.mutable_raw());
  Tensor scratch = Tensor::empty(DType::u8, {static_cast<int64_t>(prepared.kernel->scratch_bytes()) + 1});
  spoil(scratch);
  const auto state = prepared.kernel->new_state();
  const KernelArgs args{views, {&output, 1}, scratch.mutable_raw(), state.get()};
  prepared.kernel->run(args);
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    result.mutable_data<float>()[i] = out.data<float>()[place_of(i, layout, dims)];
  }
  complaint = padding_complaint(out, layout, dims);
  if (complaint.empty() && !in_place) complaint = spaced_rows_complaint(*prepared.kernel, args, out.size_bytes());
  return result;
}

}  // namespace autograph
