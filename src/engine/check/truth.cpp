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
// Of the time, for the nodes whose scales are followed where there is none for all.
constexpr double kTailShare = 0.25;
// Where graphs are so large that to compile and run them takes time, what it is for a node.
constexpr size_t kManyNodes = 2000;
constexpr double kSecondsToCompileNode = 8e-5;
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

double seconds_of(double flops) { return flops / kFlopsPerSecond; }

// What running the graph by kernels takes first; of few nodes nothing that counts.
double seconds_to_compile(const Graph& graph) {
  const size_t num_nodes = graph.num_nodes();
  return num_nodes < kManyNodes ? 0 : kSecondsToCompileNode * static_cast<double>(num_nodes);
}

std::vector<ScaledDatum> without_scales(const std::vector<Datum>& inputs) {
  std::vector<ScaledDatum> scaled;
  for (const Datum& input : inputs) scaled.push_back({input, {}});
  return scaled;
}

std::string describe(const NodeComparison& compared, double seconds) {
  std::string text =
      fmt::format("cut-out parts: {} elements of {} of {} nodes by the reference, which would take {:.0f} s for all",
                  compared.num_elements, compared.num_compared, compared.num_nodes, seconds);
  if (compared.num_unattested > 0) {
    text += fmt::format("; no time to attest {} kernel{} that gave the others", compared.num_unattested,
                        compared.num_unattested == 1 ? "" : "s");
  }
  return text;
}

// When a run of the reference is given up.
class Clock {
 public:
  explicit Clock(const TruthLimits& limits) : limits_(limits) {}
  bool is_cancelled() const { return limits_.is_cancelled && limits_.is_cancelled(); }
  bool is_over() const { return (overdue_seconds_ > 0 && watch_.ms() > overdue_seconds_ * 1e3) || is_cancelled(); }
  // For a run that may be expected to take so long.
  void start_again(double seconds) {
    watch_ = Stopwatch();
    if (limits_.seconds > 0) overdue_seconds_ = limits_.overdue_seconds * std::max(1.0, seconds / limits_.seconds);
  }

 private:
  const TruthLimits& limits_;
  double overdue_seconds_ = limits_.overdue_seconds;
  Stopwatch watch_;
};

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
  auto known = std::make_shared<Known>();
  known->model = error_model_of(options);
  known->model.epsilon = epsilon_of(graph, known->model.epsilon);
  const Graph typed = bound(graph, inputs);
  const ScaledRunCost cost = cost_of_scaled_run(typed);
  const double bytes =
      limits.bytes > 0 ? static_cast<double>(limits.bytes) : static_cast<double>(available_memory_bytes()) / 2;
  const bool fits = (limits.seconds <= 0 || seconds_of(cost.flops) <= limits.seconds) && cost.bytes <= bytes;
  const bool has_parts = can_compare_nodes(typed);
  Clock clock(limits);
  if (fits || !has_parts) {
    known->outputs = run_scaled(typed, without_scales(inputs), known->model,
                                has_parts ? std::function<bool()>([&] { return clock.is_over(); }) : nullptr);
    known->how = "all outputs by the reference";
    if (!known->outputs.empty()) return Truth(known);
  }
  // A reference that was slower than expected once would be so again.
  const double most = std::max(fits ? 0 : limits.seconds, seconds_to_compile(typed));
  if (cost.bytes <= bytes && seconds_of(cost.plain_flops) <= most && !clock.is_cancelled()) {
    clock.start_again(most);
    const std::vector<NodeId> tail = last_nodes(typed, kTailShare * limits.seconds * kFlopsPerSecond);
    known->outputs =
        run_scaled_behind(typed, tail, without_scales(inputs), known->model, [&] { return clock.is_over(); });
    known->how = fmt::format("all outputs by the reference, tolerances by the last {} of {} nodes", tail.size(),
                             typed.num_nodes());
    if (!known->outputs.empty()) return Truth(known);
  }
  NodeComparison compared = compare_nodes(typed, inputs, options, known->model, clock.is_over() ? 0 : limits.seconds);
  known->outputs = std::move(compared.outputs);
  known->fault = std::move(compared.fault);
  known->is_whole = false;
  known->how = describe(compared, seconds_of(cost.flops));
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
