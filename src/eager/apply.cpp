// Computes ops on eager values, and puts them on record.
#include <algorithm>
#include <optional>

#include "autograph/devices.h"
#include "base/check.h"
#include "eager/call_cache.h"
#include "eager/capture/recording.h"
#include "eager/capture/replay.h"
#include "eager/modes.h"
#include "eager/tape/tape.h"
#include "runtime/find_nonfinite.h"

namespace autograph {
namespace {

const Device& current_device() {
  static const Device& cpu = get_device("cpu");
  const Device* chosen = modes().device;
  return chosen ? *chosen : cpu;
}

bool any_requires_grad(std::span<const Var> inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const Var& input) {
    return input.is_valid() && static_cast<const Eager&>(input.eager()).requires_grad();
  });
}

// The first input that has no NaN must not become one. The call that made it is on the stack still.
void check_outputs(const CallResult& result, std::span<const Var> inputs) {
  if (std::all_of(result.outputs.begin(), result.outputs.end(), is_finite)) return;
  for (const Var& input : inputs) {
    if (!input.is_valid() || !input.type().is_tensor()) continue;
    if (find_nonfinite(static_cast<const Eager&>(input.eager()).tensor().view()) >= 0) return;
  }
  std::optional<SourceLines> lines;
  if (!modes().place) lines.emplace();
  const std::shared_ptr<const Origin> origin = current_origin();
  std::string what = fmt::format("[eager] {}", describe_origin(result.info->name, origin.get()));
  for (const Var& input : inputs) {
    if (input.is_valid()) what += fmt::format("{}{}", &input == inputs.data() ? " of " : ", ", to_string(input));
  }
  for (const Datum& output : result.outputs) check_finite(output, what);
}

std::vector<Var> values_of(CallResult result, const std::shared_ptr<TapeNode>& node) {
  std::vector<Var> values;
  values.reserve(result.outputs.size());
  for (size_t k = 0; k < result.outputs.size(); ++k) {
    std::shared_ptr<const Type> type(result.info, &result.info->output_types[k]);
    const bool flows = node && carries_floats(*type);
    values.emplace_back(std::make_shared<Eager>(std::move(type), std::move(result.outputs[k]), flows ? node : nullptr,
                                                static_cast<uint32_t>(k)));
  }
  return values;
}

// Inside a function that is captured: what ops would compute becomes nodes of its graph.
std::vector<Var> apply_in_capture(Recording& capture, const OpDef& op, const std::vector<Var>& inputs,
                                  Attributes attributes, int num_outputs) {
  std::vector<Var> lifted = inputs;
  for (Var& input : lifted) {
    if (input.is_valid()) input = input.eager().in_graph(capture.graph());
  }
  return apply_all(op, lifted, std::move(attributes), num_outputs);
}

}  // namespace

std::vector<Var> Eager::apply(const OpDef& op, const std::vector<Var>& inputs, Attributes attributes, int num_outputs) {
  if (Recording* capture = modes().capture) {
    return apply_in_capture(*capture, op, inputs, std::move(attributes), num_outputs);
  }
  std::span<const Var> given(inputs);
  while (!given.empty() && !given.back().is_valid()) given = given.first(given.size() - 1);
  const std::shared_ptr<PreparedCall> call =
      CallCache::of_thread().find({op, attributes, given, num_outputs, current_device(), modes().threads});
  const bool is_recorded = modes().records && op.no_grad.empty() && any_requires_grad(given);
  // A body takes the place of an op without a rule, as it does in graphs, so that nothing is computed both ways.
  if (call->needs_body() || (is_recorded && !op.vjp && op.decompose)) return replay_body(*call, given);
  CallResult result = call->run(given);
  if (modes().checks_finite) check_outputs(result, given);
  if (!is_recorded) return values_of(std::move(result), nullptr);
  const auto node = std::make_shared<TapeNode>();
  node->info = result.info;
  node->inputs = recorded_inputs(given);
  node->outputs = result.outputs;
  node->origin = current_origin();
  return values_of(std::move(result), node);
}

std::vector<Var> apply_body(const OpDef& op, const std::vector<Var>& inputs, const Attributes& attributes,
                            int num_outputs) {
  std::span<const Var> given(inputs);
  while (!given.empty() && !given.back().is_valid()) given = given.first(given.size() - 1);
  const std::shared_ptr<PreparedCall> call =
      CallCache::of_thread().find({op, attributes, given, num_outputs, current_device(), modes().threads});
  return replay_body(*call, given);
}

EagerStatistics eager_statistics() {
  const CallCache& cache = CallCache::of_thread();
  return {TapeNode::num_live(), static_cast<int64_t>(cache.size()), cache.calls(), cache.new_calls()};
}

}  // namespace autograph
