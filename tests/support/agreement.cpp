#include "support/agreement.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/random.h"
#include "ops/real_values.h"

namespace autograph {

const OpDef& resize_def();

namespace {

// By how much inputs and weights are moved, and elements may differ that nothing moves: relative to the element, and to
// the largest of its tensor.
struct Precision {
  std::vector<double> movements;
  double noise;  // of what nodes make
  double rtol;
  double share;
};

const Precision kSingle{{1 + 3e-6, 1 - 5e-6, 1 + 2e-5}, 2e-7, 1e-4, 2e-6};
const Precision kHalf{{1 + 1e-3, 1 - 1e-3, 1 + 4e-3}, 1e-3, 2e-2, 5e-3};
constexpr double kTimesMovement = 20;
// Below this a float is as good as 0: kernels may flush what is smaller.
constexpr double kNothing = 1e-30;

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

bool computes_in_half(const Graph& graph) {
  const std::vector<NodeId> nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    const auto& outputs = graph.node(id).outputs();
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](ValueId v) { return graph.type(v).is_tensor() && is_half(graph.type(v).dtype()); });
  });
}

Tensor moved(const Tensor& tensor, double factor) {
  const bool is_real = tensor.dtype() == DType::f32 || tensor.dtype() == DType::f64 || is_half(tensor.dtype());
  if (!is_real) return tensor;
  std::vector<double> values = tensor.to_f64();
  for (size_t i = 0; i < values.size(); ++i) values[i] *= i % 2 ? factor : 2 - factor;
  Tensor copy = Tensor::empty(tensor.dtype(), tensor.dims());
  store_reals(values, copy.view());
  return copy;
}

// A constant of floats that says what the shapes are: moved, it would give another graph.
bool sets_shape(const Graph& graph, ValueId constant) {
  const std::vector<Use> uses = graph.value(constant).uses();
  return std::any_of(uses.begin(), uses.end(),
                     [&](const Use& use) { return &graph.node(use.node).op() == &resize_def(); });
}

// Behind every node that makes floats: v becomes v (1 + noise u), a stand-in for another rounding. So what a sum loses
// next to large terms is told even where these go in the end. u is drawn for each element, so that equal values, or
// ones that rounding made equal, move apart.
void add_noise(Graph& graph, const Precision& precision, int run) {
  const auto noise = static_cast<float>(precision.noise);
  int seed = 1000 * run;
  for (const NodeId id : graph.topological_order()) {
    const std::vector<ValueId> outputs = graph.node(id).outputs();
    for (const ValueId v : outputs) {
      const Type& type = graph.type(v);
      const bool is_real = type.is_tensor() && (DTypeSet{DType::f32, DType::f64, DType::f16}.contains(type.dtype()));
      const std::vector<Use> uses = graph.value(v).uses();
      if (!is_real || uses.empty()) continue;
      const Var x(graph, v);
      const Var wide = x.dtype() == DType::f16 ? cast(x, DType::f32) : x;
      const Var off = random_uniform_like(wide, -noise, noise, static_cast<float>(++seed));
      const Var moved = add(wide, mul(wide, off));
      const Var noisy = where(is_inf(x), x, moved.dtype() == x.dtype() ? moved : cast(moved, x.dtype()));
      for (const Use& use : uses) graph.set_input(use.node, use.slot, noisy.id());
    }
  }
}

std::optional<std::vector<Datum>> run_with(const TestGraph& test, const Precision& precision, int run) {
  const double factor = precision.movements[static_cast<size_t>(run)];
  Graph graph = test.graph;
  std::vector<Datum> inputs = test.inputs;
  for (Datum& input : inputs) {
    if (input.is_tensor()) input = moved(input.tensor(), factor);
  }
  for (const ValueId id : graph.constants()) {
    if (!sets_shape(graph, id)) graph.set_constant(id, moved(graph.value(id).constant(), factor));
  }
  try {
    add_noise(graph, precision, run);
    return run_reference(graph, inputs);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// Outputs with sequences laid out flat, and options opened: one entry per tensor; absent ones stay as empty tensors.
void append_tensors(const Datum& datum, std::vector<Tensor>& tensors) {
  if (!datum.is_sequence()) {
    tensors.push_back(datum.is_present() ? datum.tensor() : Tensor());
    return;
  }
  for (const Datum& item : datum.sequence()) append_tensors(item, tensors);
}

std::vector<Tensor> all_tensors(const std::vector<Datum>& datums) {
  std::vector<Tensor> tensors;
  for (const Datum& datum : datums) append_tensors(datum, tensors);
  return tensors;
}

std::string describe(const Tensor& tensor) { return tensor.is_present() ? to_string(tensor.type()) : "nothing"; }

bool same_type(const Tensor& a, const Tensor& b) {
  if (a.is_present() != b.is_present()) return false;
  return !a.is_present() || (a.dtype() == b.dtype() && a.dims() == b.dims());
}

// What elements of one tensor may differ by where nothing moves them.
struct Slack {
  Slack(const Tensor& expected, const std::vector<double>& values) {
    const Precision& precision = is_half(expected.dtype()) ? kHalf : kSingle;
    may_overflow = is_half(expected.dtype());
    rtol = precision.rtol;
    for (const double value : values) {
      if (std::isfinite(value)) atol = std::fmax(atol, std::fabs(value));
    }
    atol = atol * precision.share + kNothing;
  }
  double rtol = 0;
  double atol = 0;
  bool may_overflow = false;  // what overflows in half precision stays finite where it is computed in f32
};

bool is_close(double actual, double expected, const Slack& slack) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return true;
  if (!std::isfinite(expected)) {
    if (slack.may_overflow) return true;
    return std::isinf(expected) && std::fabs(actual) > 1e37 && std::signbit(actual) == std::signbit(expected);
  }
  return std::fabs(actual - expected) <= slack.atol + slack.rtol * std::fabs(expected);
}

// Is the difference within reach of the movements?
bool is_moved(double actual, double expected, const std::vector<double>& others, const Slack& slack) {
  double movement = 0;
  for (const double other : others) {
    if (std::isnan(other) != std::isnan(expected) || std::isinf(other) != std::isinf(expected)) return true;
    movement = std::fmax(movement, std::fabs(other - expected));
  }
  if (!std::isfinite(expected)) return false;
  return std::fabs(actual - expected) <= slack.atol + slack.rtol * std::fabs(expected) + kTimesMovement * movement;
}

// Looks at the results of moved runs where there is a difference.
class Comparison {
 public:
  explicit Comparison(const std::function<std::vector<std::vector<Datum>>()>& moved) : ask_(moved) {}

  std::string tensors(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
    if (actual.size() != expected.size()) {
      return std::to_string(actual.size()) + " tensors instead of " + std::to_string(expected.size());
    }
    for (size_t k = 0; k < expected.size(); ++k) {
      const std::string difference = tensor(k, actual[k], expected[k]);
      if (!difference.empty()) return "tensor " + std::to_string(k) + ": " + difference;
    }
    return "";
  }

 private:
  const std::vector<std::vector<Tensor>>& moved() {
    if (!moved_) {
      moved_.emplace();
      for (const auto& run : ask_()) moved_->push_back(all_tensors(run));
    }
    return *moved_;
  }

  // Does the type of tensor `k` follow an ill-conditioned value?
  bool type_moves(size_t k, const Tensor& expected) {
    const auto& runs = moved();
    return std::any_of(runs.begin(), runs.end(),
                       [&](const auto& run) { return k >= run.size() || !same_type(run[k], expected); });
  }

  std::string tensor(size_t k, const Tensor& actual, const Tensor& expected) {
    if (!same_type(actual, expected)) {
      return type_moves(k, expected) ? "" : describe(actual) + " instead of " + describe(expected);
    }
    if (!expected.is_present() || actual.bitwise_equal(expected)) return "";
    if (dtypes::kComplex.contains(expected.dtype())) return "";
    if (dtypes::kString.contains(expected.dtype())) {
      const auto& runs = moved();
      const bool is_stable = std::all_of(
          runs.begin(), runs.end(), [&](const auto& run) { return k < run.size() && run[k].bitwise_equal(expected); });
      return is_stable ? "texts differ" : "";
    }
    return elements(k, actual, expected);
  }

  std::string elements(size_t k, const Tensor& actual, const Tensor& expected) {
    const std::vector<double> a = actual.to_f64();
    const std::vector<double> e = expected.to_f64();
    const Slack slack(expected, e);
    std::vector<std::vector<double>> others;
    bool is_asked = false;
    for (size_t i = 0; i < e.size(); ++i) {
      if (is_close(a[i], e[i], slack)) continue;
      if (!is_asked) {
        if (type_moves(k, expected)) return "";
        for (const auto& run : moved()) others.push_back(run[k].to_f64());
        is_asked = true;
      }
      std::vector<double> here;
      for (const auto& values : others) here.push_back(values[i]);
      if (is_moved(a[i], e[i], here, slack)) continue;
      return "element " + std::to_string(i) + ": " + std::to_string(a[i]) + " instead of " + std::to_string(e[i]);
    }
    return "";
  }

  const std::function<std::vector<std::vector<Datum>>()>& ask_;
  std::optional<std::vector<std::vector<Tensor>>> moved_;
};

}  // namespace

std::vector<Datum> run_reference(const Graph& graph, const std::vector<Datum>& inputs) {
  CompileOptions options;
  options.device = "reference";
  options.optimize = false;
  options.threads = 1;
  return compile(graph, options).run(inputs);
}

std::vector<std::vector<Datum>> run_moved(const TestGraph& test) {
  const Precision& precision = computes_in_half(test.graph) ? kHalf : kSingle;
  std::vector<std::vector<Datum>> runs;
  for (size_t k = 0; k < precision.movements.size(); ++k) {
    if (auto run = run_with(test, precision, static_cast<int>(k))) runs.push_back(std::move(*run));
  }
  return runs;
}

std::string disagreement(const std::vector<Datum>& actual, const std::vector<Datum>& expected,
                         const std::function<std::vector<std::vector<Datum>>()>& moved) {
  return Comparison(moved).tensors(all_tensors(actual), all_tensors(expected));
}

}  // namespace autograph
