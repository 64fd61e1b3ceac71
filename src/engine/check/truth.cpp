#include "autograph/truth.h"

#include <fmt/core.h>

#include <algorithm>

#include "accuracy/scaled_run.h"
#include "autograph/op_def.h"
#include "autograph/verify.h"
#include "base/stopwatch.h"
#include "engine/check/attestation.h"
#include "engine/check/compare_nodes.h"
#include "runtime/memory/memory_meter.h"

namespace autograph {
namespace {

// What the reference does in a second, roughly.
constexpr double kFlopsPerSecond = 1e9;
// A model in f16 or bf16 is rounded by the reference after each node, but by kernels at the end alone.
constexpr double kF16Epsilon = 1.0 / 512;
constexpr double kBf16Epsilon = 1.0 / 64;

double epsilon_of(const Graph& graph, double least) {
  double epsilon = least;
  for (const NodeId id : graph.nodes()) {
    for (const ValueId v : graph.node(id).outputs()) {
      const DType dtype = graph.type(v).is_tensor() ? graph.type(v).dtype() : DType::undefined;
      if (dtype == DType::f16) epsilon = std::max(epsilon, kF16Epsilon);
      if (dtype == DType::bf16) epsilon = std::max(epsilon, kBf16Epsilon);
    }
    for (const auto& [name, value] : graph.node(id).attributes()) {
      if (const auto* nested = std::get_if<GraphRef>(&value)) epsilon = epsilon_of(**nested, epsilon);
    }
  }
  return epsilon;
}

// The graph of the first run, with the extents that these inputs have, as far as they say.
Graph bound(Graph graph, const std::vector<Datum>& inputs) {
  graph.freeze();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_tensor()) graph.set_type(graph.inputs()[i], inputs[i].tensor().type());
  }
  infer_types(graph);
  return graph;
}

}  // namespace

struct Truth::Known {
  std::vector<ScaledDatum> outputs;
  ErrorModel model;
  std::string how;
  std::string fault;
  bool is_whole = true;
};

Truth::Truth(std::shared_ptr<const Known> known) : known_(std::move(known)) {}

Truth Truth::of(const Graph& graph, const std::vector<Datum>& inputs, const CompileOptions& options,
                const TruthLimits& limits) {
  const Stopwatch watch;
  const auto is_cancelled = [&] {
    const bool is_overdue = limits.overdue_seconds > 0 && watch.ms() > limits.overdue_seconds * 1e3;
    return is_overdue || (limits.is_cancelled && limits.is_cancelled());
  };
  auto known = std::make_shared<Known>();
  known->model = error_model_of(options);
  known->model.epsilon = epsilon_of(graph, known->model.epsilon);
  const Graph typed = bound(graph, inputs);
  const ScaledRunCost cost = cost_of_scaled_run(typed);
  const double seconds = cost.flops / kFlopsPerSecond;
  const double bytes =
      limits.bytes > 0 ? static_cast<double>(limits.bytes) : static_cast<double>(available_memory_bytes()) / 2;
  const bool fits = (limits.seconds <= 0 || seconds <= limits.seconds) && cost.bytes <= bytes;
  const bool has_parts = can_compare_nodes(typed);
  if (fits || !has_parts) {
    std::vector<ScaledDatum> scaled;
    for (const Datum& input : inputs) scaled.push_back({input, {}});
    known->outputs = run_scaled(typed, scaled, known->model, has_parts ? std::function<bool()>(is_cancelled) : nullptr);
    known->how = "all outputs by the reference";
    if (!known->outputs.empty()) return Truth(known);
  }
  NodeComparison compared = compare_nodes(typed, inputs, options, known->model, is_cancelled() ? 0 : limits.seconds);
  known->outputs = std::move(compared.outputs);
  known->fault = std::move(compared.fault);
  known->is_whole = false;
  known->how =
      fmt::format("cut-out parts: {} elements of {} of {} nodes by the reference, which would take {:.0f} s for all",
                  compared.num_elements, compared.num_compared, compared.num_nodes, seconds);
  return Truth(known);
}

std::vector<Difference> Truth::compare(const std::vector<Datum>& outputs, Tolerance tolerance) const {
  if (tolerance.share < 0) tolerance.share = known_->model.epsilon;
  std::vector<Difference> differences;
  for (size_t k = 0; k < known_->outputs.size(); ++k) {
    const Datum& expected = known_->outputs[k].value;
    const Datum actual = k < outputs.size() ? outputs[k] : Datum();
    const bool are_tensors = expected.is_tensor() && actual.is_tensor();
    differences.push_back(are_tensors
                              ? compare_values(actual.tensor(), expected.tensor(), tolerance, known_->outputs[k].scale)
                              : compare_values(actual, expected, tolerance));
  }
  return differences;
}

Difference Truth::compare_all(const std::vector<Datum>& outputs) const {
  Difference worst = worst_of(compare(outputs), "value");
  if (worst.ok && !known_->fault.empty()) {
    worst.ok = false;
    worst.num_bad = 1;
    worst.why = known_->fault;
  }
  return worst;
}

const std::string& Truth::how() const { return known_->how; }

bool Truth::is_whole() const { return known_->is_whole; }

const std::string& Truth::fault() const { return known_->fault; }

}  // namespace autograph
