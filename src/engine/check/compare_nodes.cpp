#include "engine/check/compare_nodes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "accuracy/sampled_run.h"
#include "autograph/compare_values.h"
#include "autograph/op_def.h"
#include "base/stopwatch.h"
#include "graph/nested/extract_subgraph.h"
#include "runtime/memory/memory_meter.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

// Nodes that are compared however long it takes, and those whose values are looked at for that: some have no elements
// that the reference computes alone.
constexpr size_t kLeastCompared = 8;
constexpr size_t kLeastChosen = 3 * kLeastCompared;
// Of each node so many selections of so many elements, of this work each.
constexpr int kSelections = 2;
constexpr int64_t kElements = 512;
constexpr double kWork = 1e6;
// Of the time, until which kernels that the graph is run by are attested.
constexpr double kAttestShare = 0.5;
// Of the time, for the nodes before the outputs, which are computed as a whole.
constexpr double kTailShare = 0.25;
constexpr double kFlopsPerSecond = 1e9;
// What plain kernels write in a second, roughly.
constexpr double kBytesPerSecond = 2e9;
// Of the memory that is there, for values that are looked at.
constexpr double kMemoryShare = 0.25;

class NodeComparer {
 public:
  NodeComparer(const Graph& graph, const std::vector<Datum>& inputs, const CompileOptions& options,
               const ErrorModel& model, double seconds)
      : graph_(graph), model_(model), seconds_(seconds), order_(graph.topological_order()) {
    choose_nodes();
    run_plain(inputs, options);
  }

  NodeComparison run() {
    result_.num_nodes = order_.size();
    for (const NodeId id : chosen_) {
      if (result_.num_compared >= kLeastCompared && watch_.ms() > seconds_ * 1e3) break;
      compare_node(graph_.node(id));
    }
    add_outputs();
    return std::move(result_);
  }

 private:
  static double bytes_of(const Type& type) {
    return static_cast<double>(type.shape().num_elements().value_or(0)) *
           static_cast<double>(element_size(type.dtype()));
  }

  // All nodes, or every so many where their values together would take too much memory, or where time will not do for
  // more: memory for values that nobody comes to look at has to be cleared, too.
  void choose_nodes() {
    double bytes = 0;
    for (const NodeId id : order_) {
      for (const ValueId v : graph_.node(id).outputs()) bytes += bytes_of(graph_.type(v));
    }
    const double share = bytes / (kMemoryShare * static_cast<double>(available_memory_bytes()));
    const double seconds_left = std::max(0.0, seconds_ - bytes / kBytesPerSecond);
    const double comparable = kLeastChosen + seconds_left * kFlopsPerSecond / (kSelections * kWork);
    const double crowd = std::floor(static_cast<double>(order_.size()) / comparable);
    const auto stride = static_cast<size_t>(std::max({1.0, std::ceil(share), crowd}));
    // Far ones first, so that time that runs out leaves no end of the graph unseen.
    constexpr size_t kSpread = 7;
    for (size_t first = 0; first < kSpread; ++first) {
      for (size_t n = first * stride; n < order_.size(); n += kSpread * stride) chosen_.push_back(order_[n]);
    }
  }

  // Those that are compared or read by what is.
  std::vector<bool> wanted_values() const {
    std::vector<bool> is_wanted(graph_.value_capacity(), false);
    for (const NodeId id : chosen_) {
      for (const ValueId v : graph_.node(id).outputs()) is_wanted[v.index] = true;
      for (const ValueId v : graph_.node(id).inputs()) {
        if (v.is_valid()) is_wanted[v.index] = true;
      }
    }
    for (const ValueId v : extract_subgraph(graph_, tail_).inputs) is_wanted[v.index] = true;
    return is_wanted;
  }

  void run_plain(const std::vector<Datum>& inputs, const CompileOptions& options) {
    CompileOptions plain;
    plain.device = options.device;
    plain.threads = options.threads;
    plain.cache_folder = options.cache_folder;
    plain.memory_budget_bytes = options.memory_budget_bytes;
    plain.exact = true;
    plain.attest = true;
    plain.expert.use_passes = false;
    plain.expert.may_try = [&](KernelTrial, std::string_view) {
      const bool has_time = watch_.ms() < kAttestShare * seconds_ * 1e3;
      result_.num_unattested += has_time ? 0 : 1;
      return has_time;
    };
    Graph all = graph_;
    std::vector<ValueId> values = graph_.outputs();
    const std::vector<bool> is_wanted = wanted_values();
    for (const NodeId id : order_) {
      for (const ValueId v : graph_.node(id).outputs()) {
        if (!is_wanted[v.index] || graph_.num_output_uses(v) > 0 || graph_.value(v).uses().empty()) continue;
        all.add_output(v, fmt::format("value {}", v.index));
        values.push_back(v);
      }
    }
    Outputs outputs = autograph::compile(std::move(all), plain).run(inputs);
    for (size_t i = 0; i < values.size(); ++i) known_[values[i]] = outputs[i].tensor();
    for (size_t i = 0; i < inputs.size(); ++i) known_[graph_.inputs()[i]] = inputs[i].tensor();
    for (const ValueId v : graph_.constants()) known_[v] = graph_.value(v).constant();
  }

  void compare_node(const Node& node) {
    Graph one("node");
    std::vector<ValueId> operands;
    std::vector<ScaledTensor> inputs;
    for (const ValueId v : node.inputs()) {
      if (v.is_valid() && !known_.contains(v)) return;
      operands.push_back(v.is_valid() ? one.add_input(graph_.type(v)) : ValueId());
      if (v.is_valid()) inputs.push_back({known_.at(v), {}});
    }
    std::vector<Type> types;
    for (const ValueId v : node.outputs()) types.push_back(graph_.type(v));
    const NodeId copy = one.add_node_typed(node.op(), operands, node.attributes(), types);
    SampledRun reference(one, inputs, model_);
    std::mt19937_64 random(node.outputs()[0].index);
    bool any = false;
    for (size_t k = 0; k < types.size(); ++k) {
      const auto actual = known_.find(node.output(k));
      if (actual == known_.end() || types[k].shape().num_elements().value_or(0) == 0) continue;
      for (int n = 0; n < kSelections; ++n) {
        const auto selection = reference.draw(one.node(copy).output(k), kElements, kWork, random);
        if (!selection) break;
        const ScaledTensor expected = reference.compute(one.node(copy).output(k), *selection);
        const Difference difference = compare_values(select(actual->second, *selection), expected.value,
                                                     {.rtol = 0, .share = model_.epsilon}, expected.scale);
        any = true;
        result_.num_elements += expected.value.num_elements();
        if (!difference.ok && result_.fault.empty()) {
          result_.fault = fmt::format(
              "{}: {}", node.provenance().empty() ? std::string(node.op().name) : node.provenance().to_string(),
              difference.why);
        }
      }
    }
    result_.num_compared += any ? 1 : 0;
  }

  // The nodes before the outputs, as many as time allows, are computed by the reference as a whole.
  void add_outputs() {
    std::map<ValueId, ScaledDatum> computed;
    if (!tail_.empty()) {
      const Subgraph part = extract_subgraph(graph_, tail_);
      std::vector<ScaledDatum> inputs;
      for (const ValueId v : part.inputs) {
        const bool is_given = !graph_.value(v).producer().is_valid();
        inputs.push_back({known_.at(v), is_given ? Tensor() : usual_scale(known_.at(v))});
      }
      std::vector<ScaledDatum> outputs = run_scaled(part.graph, inputs, model_);
      for (size_t k = 0; k < outputs.size(); ++k) computed[part.outputs[k]] = std::move(outputs[k]);
    }
    for (const ValueId v : graph_.outputs()) {
      const auto found = computed.find(v);
      result_.outputs.push_back(found != computed.end() ? found->second
                                                        : ScaledDatum{known_.at(v), usual_scale(known_.at(v))});
    }
  }

  const Stopwatch watch_;  // compiling and running the whole graph may take most of the time
  const Graph& graph_;
  const ErrorModel& model_;
  const double seconds_;
  const std::vector<NodeId> order_;
  // Computed by the reference as a whole.
  const std::vector<NodeId> tail_ = last_nodes(graph_, kTailShare* seconds_* kFlopsPerSecond);
  std::vector<NodeId> chosen_;
  std::map<ValueId, Tensor> known_;
  NodeComparison result_;
};

}  // namespace

bool can_compare_nodes(const Graph& graph) {
  const auto has_plain_type = [&](ValueId v) { return !v.is_valid() || is_plain(graph.type(v)); };
  const std::vector<NodeId> nodes = graph.nodes();
  return std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    const Node& node = graph.node(id);
    const OpDef& op = node.op();
    const bool has_reference = (op.reference || op.scalar || op.decompose) && !op.traits.random;
    return has_reference && std::all_of(node.inputs().begin(), node.inputs().end(), has_plain_type) &&
           std::all_of(node.outputs().begin(), node.outputs().end(), has_plain_type);
  });
}

NodeComparison compare_nodes(const Graph& graph, const std::vector<Datum>& inputs, const CompileOptions& options,
                             const ErrorModel& model, double seconds) {
  return NodeComparer(graph, inputs, options, model, seconds).run();
}

}  // namespace autograph
