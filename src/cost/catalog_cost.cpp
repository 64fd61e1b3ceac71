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
// Runs of each that are measured at least (cost/measured_cost), with the one that does not count.
constexpr double kLeastRuns = 4;

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

// What runs as no kernel, or as one that nobody can ask.
std::optional<double> us_without_kernel(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op().evaluate || !has_static_types(graph, node)) return kUnknownUs;
  if (node.op().traits.view || node.op().traits.barrier || is_weight_only(graph, id)) return 0;
  return std::nullopt;
}

double plain_us(const KernelCall& call) {
  const OpCost cost = cost_of(call.op, {call.attributes, call.inputs, call.outputs});
  return kUnknownUs + cost.bytes / kPlainBytesPerUs + cost.flops / kPlainFlopsPerUs;
}

}  // namespace

CatalogCost::Answer& CatalogCost::find(const Graph& graph, const Node& node, int threads) {
  Hasher hasher;
  hasher.add(node.op().name).add(static_cast<int64_t>(threads));
  add_attributes(hasher, node.attributes());
  for (const ValueId v : node.inputs()) {
    add_type(hasher, v.is_valid() ? graph.type(v) : Type());
    hasher.add(static_cast<int64_t>(v.is_valid() && is_weight(graph, v)));
  }
  for (const ValueId v : node.outputs()) add_type(hasher, graph.type(v));
  const auto [it, is_new] = known_.emplace(hasher.finish(), Answer{});
  if (is_new) it->second = ask(graph, node, threads, /*measure=*/false);
  return it->second;
}

double CatalogCost::node_us(const Graph& graph, NodeId id, int threads) {
  if (const auto us = us_without_kernel(graph, id)) return *us;
  const Node& node = graph.node(id);
  Answer& answer = find(graph, node, threads);
  if (!answer.is_measured && may_measure(answer.seconds_to_measure)) {
    answer = ask(graph, node, threads, /*measure=*/true);
  }
  return answer.us;
}

// Of each op those with the largest share last.
CatalogCost::UnmeasuredByOp CatalogCost::unmeasured(const Graph& graph, int threads) {
  std::unordered_map<const Answer*, Unmeasured> calls;
  for (const NodeId id : graph.topological_order()) {
    if (us_without_kernel(graph, id)) continue;
    if (!may_measure(0)) break;
    Answer& answer = find(graph, graph.node(id), threads);
    if (answer.is_measured) continue;
    Unmeasured& call = calls.try_emplace(&answer, Unmeasured{id, &answer}).first->second;
    call.sum_us += answer.estimate_us;
  }
  UnmeasuredByOp by_op;
  for (const auto& [answer, call] : calls) by_op[graph.node(call.node).op().name].push_back(call);
  for (auto& [op, of_op] : by_op) {
    std::sort(of_op.begin(), of_op.end(), [](const Unmeasured& a, const Unmeasured& b) {
      return std::pair(a.sum_us, b.node.index) < std::pair(b.sum_us, a.node.index);
    });
  }
  return by_op;
}

// What was measured of an op tells what its other calls take: one that is estimated badly is not measured for ever.
std::optional<CatalogCost::Unmeasured> CatalogCost::take_largest(UnmeasuredByOp& by_op, int threads) {
  std::vector<Unmeasured>* best = nullptr;
  double best_us = -1;
  for (auto& [op, of_op] : by_op) {
    if (of_op.empty()) continue;
    const double us = corrected(op, threads, of_op.back().sum_us);
    if (us > best_us) best = &of_op;
    best_us = std::max(us, best_us);
  }
  if (!best) return std::nullopt;
  const Unmeasured call = best->back();
  best->pop_back();
  return call;
}

void CatalogCost::measure(const Graph& graph, int threads) {
  if (!may_measure(0)) return;
  UnmeasuredByOp by_op = unmeasured(graph, threads);
  std::vector<Unmeasured> left;
  while (may_measure(0)) {
    const std::optional<Unmeasured> call = take_largest(by_op, threads);
    if (!call) break;
    if (may_measure(call->answer->seconds_to_measure)) {
      *call->answer = ask(graph, graph.node(call->node), threads, /*measure=*/true);
    } else {
      left.push_back(*call);
    }
  }
  for (const auto& [op, of_op] : by_op) left.insert(left.end(), of_op.begin(), of_op.end());
  for (const Unmeasured& call : left) {
    call.answer->us = corrected(graph.node(call.node).op().name, threads, call.answer->estimate_us);
  }
}

double CatalogCost::corrected(std::string_view op, int threads, double estimate_us) {
  const Correction& correction = corrections_[{op, threads}];
  return correction.count > 0 ? estimate_us * std::exp(correction.log_sum / correction.count) : estimate_us;
}

CatalogCost::Answer CatalogCost::ask(const Graph& graph, const Node& node, int threads, bool measure) {
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
  Answer answer{corrected(node.op().name, threads, estimate_us), candidates.empty(), estimate_us,
                kLeastRuns * static_cast<double>(candidates.size()) * estimate_us / 1e6};
  if (measure && !candidates.empty()) {
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
