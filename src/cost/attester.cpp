#include "cost/attester.h"

#include <fmt/core.h>

#include <algorithm>

#include "autograph/op_def.h"
#include "base/hash.h"
#include "cost/call_key.h"
#include "cost/cut_call.h"
#include "ops/defs.h"

namespace autograph {
namespace {

// Constants up to this size may decide what a kernel does: zero points, axes, tables. Larger ones are weights.
constexpr int64_t kFewElements = 64;
// The same for numbers with a fraction: factors, bounds. Where there are more of them they are as good as weights,
// unless all are equal: a network of a thousand layers has a thousand biases, each of its own.
constexpr int64_t kFewFactors = 4;
// How far rounding may go is an estimate, which a right kernel leaves in one of some ten thousand calls. One that is
// wrong is so with other numbers, too.
constexpr int kDraws = 3;

bool is_uniform(const Tensor& tensor) {
  const std::vector<double> elements = tensor.to_f64();
  return std::adjacent_find(elements.begin(), elements.end(), std::not_equal_to<>()) == elements.end();
}

bool may_decide(const Tensor& constant) {
  if (!constant.is_present() || !constant.raw() || constant.num_elements() > kFewElements) return false;
  return !dtypes::kFloat.contains(constant.dtype()) || constant.num_elements() <= kFewFactors || is_uniform(constant);
}

// The call with all that a kernel may do otherwise for.
std::string verdict_key_of(const KernelCall& call) {
  Hasher hasher;
  for (const Tensor& constant : call.constants) {
    hasher.add(may_decide(constant) ? to_string(constant.content_hash()) : std::string());
  }
  return fmt::format("{} {}{}", call_key(call), to_string(hasher.finish()), call.exact ? " exact" : "");
}

// Constants that the candidate reads in another layout come to the kernel through a reorder, as if they were computed.
bool reads_reordered_constants(const KernelCall& call, const KernelCandidate& candidate) {
  for (size_t slot = 0; slot < call.inputs.size(); ++slot) {
    if (call.constant(slot) && candidate.variant.input(slot) != Layout::row_major) return true;
  }
  return false;
}

std::string verdict_key(const std::string& of_call, const KernelCall& call, const KernelCandidate& candidate) {
  Hasher hasher;
  if (!reads_reordered_constants(call, candidate)) {
    hasher.add(of_call).add(candidate_key(candidate));
    return to_string(hasher.finish());
  }
  std::vector<Tensor> constants(call.constants.begin(), call.constants.end());
  for (size_t slot = 0; slot < constants.size(); ++slot) {
    if (candidate.variant.input(slot) != Layout::row_major) constants[slot] = Tensor();
  }
  const KernelCall as_run{call.op,   call.attributes, call.inputs, call.outputs,
                          constants, call.threads,    call.exact,  call.variant};
  hasher.add(verdict_key_of(as_run)).add(candidate_key(candidate));
  return to_string(hasher.finish());
}

bool is_reference(const KernelCandidate& candidate) { return candidate.kernel->name == "reference"; }

// Those of weights that a kernel has packed may have been freed.
bool has_elements(const KernelCall& call) {
  return std::all_of(call.constants.begin(), call.constants.end(), [](const Tensor& constant) {
    return !constant.is_present() || constant.raw() || constant.num_elements() == 0;
  });
}

std::string describe_call(const KernelCall& call) {
  std::string text(call.op.name);
  if (&call.op == &fused_def()) {
    const Graph& body = *call.attributes.get<GraphRef>("body");
    std::string ops;
    for (const NodeId id : body.topological_order())
      ops += (ops.empty() ? "" : ", ") + std::string(body.node(id).op().name);
    text = fmt::format("fused({})", ops);
  }
  std::string types;
  for (const Type& type : call.inputs) types += (types.empty() ? "" : ", ") + to_string(type);
  return fmt::format("{}: {} -> {}, {} thread{}", text, types, to_string(call.outputs[0]), call.threads,
                     call.threads == 1 ? "" : "s");
}

}  // namespace

std::vector<std::string> Attester::known_faults(const KernelCall& call, std::span<const KernelCandidate> candidates) {
  std::vector<std::string> faults(candidates.size());
  if (!verdicts_.has_faults()) return faults;
  const std::string of_call = verdict_key_of(call);
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (is_reference(candidates[i])) continue;
    faults[i] = verdicts_.fault(verdict_key(of_call, call, candidates[i]));
  }
  return faults;
}

bool Attester::has_to_run(const KernelCall& call, const KernelCandidate& candidate) {
  if (!runs_ || is_reference(candidate) || call.op.traits.random) return false;
  return !verdicts_.find(verdict_key(verdict_key_of(call), call, candidate)).has_value();
}

std::string Attester::judge(const KernelCall& call, const KernelCandidate& candidate, const Kernel& kernel) {
  if (is_reference(candidate) || call.op.traits.random) return "";
  // Whether it is trusted is of no interest where it could not be tried.
  if (!runs_) return known_faults(call, {&candidate, 1}).front();
  const std::string key = verdict_key(verdict_key_of(call), call, candidate);
  if (const auto known = verdicts_.find(key)) return *known;
  if (!has_elements(call) || (may_run_ && !may_run_(key))) return "";
  ++num_run_;
  const std::string fault = find_fault(call, candidate, kernel);
  verdicts_.keep(key, fmt::format("{} | {}", candidate.name(), describe_call(call)),
                 fault.empty() ? "" : "wrong numbers on this machine: " + fault);
  return fault.empty() ? "" : *verdicts_.find(key);
}

std::string Attester::find_fault(const KernelCall& call, const KernelCandidate& candidate, const Kernel& kernel) const {
  const std::optional<std::string> fault = try_draws(call, candidate.variant, kernel);
  return fault ? *fault : find_fault_of_smaller(call, candidate);
}

// What the same candidate does with less. A kernel that does not take less is trusted.
std::string Attester::find_fault_of_smaller(const KernelCall& call, const KernelCandidate& candidate) const {
  const std::optional<CutCall> cut = CutCall::of(call, is_small_for_reference);
  if (!cut) return "";
  KernelCall smaller = cut->call();
  if (!candidate.kernel->why_not(smaller).empty()) return "";
  KernelVariant variant = candidate.variant;
  if (candidate.kernel->variants) {
    const std::vector<KernelVariant> variants = candidate.kernel->variants(smaller);
    const auto same = std::find_if(variants.begin(), variants.end(), [&](const KernelVariant& other) {
      return KernelCandidate{candidate.kernel, other}.name() == candidate.name();
    });
    if (same == variants.end()) return "";
    variant = *same;
  }
  smaller.variant = &variant;
  const Prepared prepared = candidate.kernel->prepare(smaller);
  if (!prepared.kernel) return "";
  const std::string fault = try_draws(smaller, variant, *prepared.kernel).value_or("");
  return fault.empty() ? "" : fmt::format("as {}: {}", describe_call(smaller), fault);
}

// Nothing where the reference cannot tell.
std::optional<std::string> Attester::try_draws(const KernelCall& call, const KernelVariant& variant,
                                               const Kernel& kernel) const {
  std::optional<std::string> fault;
  for (int draw = 0; draw < kDraws; ++draw) {
    fault = find_wrong_element(call, variant, kernel, model_, device_, draw);
    if (!fault || fault->empty()) break;
  }
  return fault;
}

}  // namespace autograph
