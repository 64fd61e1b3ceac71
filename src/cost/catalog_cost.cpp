#include "cost/catalog_cost.h"

#include <algorithm>
#include <cmath>

#include "autograph/op_def.h"
#include "base/hash.h"
#include "base/stopwatch.h"
#include "graph/attribute_hash.h"
#include "optimize/match.h"

namespace autograph {
namespace {

// A node whose shapes are known only while running, or that runs a nested graph: something, since it is no view.
constexpr double kUnknownUs = 1;
// Kernels that say nothing about their time, and ops that only the reference serves.
constexpr double kPlainBytesPerUs = 4e3;
constexpr double kPlainFlopsPerUs = 2e3;

// Candidates measured for a call.
constexpr size_t kMaxMeasured = 2;

void add_type(Hasher& hasher, const Type& type) {
  if (!type.is_tensor()) {
    hasher.add(int64_t{-1});
    return;
  }
  hasher.add(static_cast<int64_t>(type.dtype())).add(type.shape().rank());
  for (const Dim& dim : type.shape().dims()) hasher.add(dim.value());
}

bool has_static_types(const Graph& graph, const Node& node) {
  const auto is_static = [&](ValueId v) { return !v.is_valid() || graph.type(v).is_static(); };
  return std::all_of(node.inputs().begin(), node.inputs().end(), is_static) &&
         std::all_of(node.outputs().begin(), node.outputs().end(), is_static);
}

size_t bytes_of_constants(const Graph& graph) {
  size_t bytes = 0;
  for (const ValueId v : graph.constants()) bytes += graph.value(v).constant().size_bytes();
  return bytes;
}

double plain_us(const KernelCall& call) {
  const OpCost cost = cost_of(call.op, {call.attributes, call.inputs, call.outputs});
  return kUnknownUs + cost.bytes / kPlainBytesPerUs + cost.flops / kPlainFlopsPerUs;
}

}  // namespace

double CatalogCost::node_us(const Graph& graph, NodeId id, int threads) {
  const Node& node = graph.node(id);
  if (node.op().evaluate || !has_static_types(graph, node)) return kUnknownUs;
  if (node.op().traits.view || node.op().traits.barrier || is_weight_only(graph, id)) return 0;
  Hasher hasher;
  hasher.add(node.op().name).add(static_cast<int64_t>(threads));
  add_attributes(hasher, node.attributes());
  for (const ValueId v : node.inputs()) {
    add_type(hasher, v.is_valid() ? graph.type(v) : Type());
    hasher.add(static_cast<int64_t>(v.is_valid() && is_weight(graph, v)));
  }
  for (const ValueId v : node.outputs()) add_type(hasher, graph.type(v));
  const auto [it, is_new] = known_.emplace(hasher.finish(), Answer{});
  const bool may_measure = !options_.may_measure || options_.may_measure();
  if (is_new || (may_measure && !it->second.is_measured)) it->second = ask(graph, node, threads);
  return it->second.us;
}

double CatalogCost::corrected(std::string_view op, int threads, double estimate_us) {
  const Correction& correction = corrections_[{op, threads}];
  return correction.count > 0 ? estimate_us * std::exp(correction.log_sum / correction.count) : estimate_us;
}

CatalogCost::Answer CatalogCost::ask(const Graph& graph, const Node& node, int threads) {
  std::vector<Type> inputs;
  std::vector<Type> outputs;
  std::vector<Tensor> constants(node.inputs().size());
  for (size_t k = 0; k < node.inputs().size(); ++k) {
    const ValueId v = node.inputs()[k];
    inputs.push_back(v.is_valid() ? graph.type(v) : Type());
    if (!v.is_valid() || !is_weight(graph, v)) continue;
    const Value& value = graph.value(v);
    // What is computed from constants has a value only when the graph is compiled: any elements take the same time.
    constants[k] = value.is_constant() && value.constant().raw()
                       ? value.constant()
                       : Tensor::zeros(value.type().dtype(), value.type().shape().static_dims());
  }
  for (const ValueId v : node.outputs()) outputs.push_back(graph.type(v));
  if (!constant_bytes_) constant_bytes_ = bytes_of_constants(graph);
  const KernelCall call{.op = node.op(),
                        .attributes = node.attributes(),
                        .inputs = inputs,
                        .outputs = outputs,
                        .constants = constants,
                        .threads = threads,
                        .exact = options_.exact,
                        .plan_constant_bytes = *constant_bytes_};
  const int before = options_.host_threads.set(threads);
  std::vector<KernelCandidate> candidates;
  KernelCandidates all = options_.catalog.candidates(call);
  if (options_.judge) options_.judge->drop_wrong(call, all);
  for (KernelCandidate& candidate : all.candidates) {
    if (candidate.variant.cost_us < kLastResortUs) candidates.push_back(std::move(candidate));
  }
  // What is estimated to be slow is not worth measuring.
  std::stable_sort(candidates.begin(), candidates.end(), [](const KernelCandidate& a, const KernelCandidate& b) {
    return a.variant.cost_us < b.variant.cost_us;
  });
  if (candidates.size() > kMaxMeasured) candidates.resize(kMaxMeasured);
  double estimate_us = candidates.empty() ? 0 : candidates.front().variant.cost_us;
  if (estimate_us <= 0) estimate_us = plain_us(call);
  Answer answer{corrected(node.op().name, threads, estimate_us), candidates.empty()};
  if (!candidates.empty() && (!options_.may_measure || options_.may_measure())) {
    const Stopwatch watch;
    const std::vector<double> costs = options_.cost.candidates_us(options_.catalog, call, candidates);
    seconds_measured_ += watch.ms() / 1e3;
    const double measured_us = *std::min_element(costs.begin(), costs.end());
    answer.is_measured = true;
    if (measured_us > 0 && measured_us < kLastResortUs) {
      answer.us = measured_us;
      Correction& correction = corrections_[{node.op().name, threads}];
      correction.log_sum += std::log(measured_us / estimate_us);
      ++correction.count;
    }
  }
  options_.host_threads.set(before);
  return answer;
}

}  // namespace autograph
