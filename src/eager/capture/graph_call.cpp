#include "eager/capture/graph_call.h"

#include <algorithm>

#include "autodiff/rule_context.h"
#include "eager/modes.h"
#include "eager/tape/tape.h"

namespace autograph {

GraphCall::GraphCall(Graph graph, const CompileOptions& options)
    : graph_(std::move(graph)), options_(options), program_(compile(graph_, options)) {
  find_flows();
}

// Values behind stop_gradient (what was detached, frozen, or computed inside NoGrad) get no gradient of zeros, with
// which an optimiser would go on to decay weights, but none, as they do line by line.
void GraphCall::find_flows() {
  is_reached_.assign(graph_.inputs().size(), 0);
  for (const ValueId output : graph_.outputs()) {
    std::vector<char> is_behind(graph_.value_capacity(), 0);
    std::vector<ValueId> open{output};
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (!id.is_valid() || is_behind[id.index] || !carries_floats(graph_.type(id))) continue;
      is_behind[id.index] = 1;
      const NodeId producer = graph_.value(id).producer();
      if (!producer.is_valid() || !graph_.node(producer).op().no_grad.empty()) continue;
      for (const ValueId input : graph_.node(producer).inputs()) open.push_back(input);
    }
    std::vector<size_t>& behind = inputs_behind_.emplace_back();
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      if (!is_behind[graph_.inputs()[i].index]) continue;
      behind.push_back(i);
      is_reached_[i] = 1;
    }
  }
}

bool GraphCall::is_wanted(size_t input, const Var& given) const { return is_reached_[input] && requires_grad(given); }

bool GraphCall::is_wanted_behind(size_t output, const std::vector<Var>& given) const {
  const std::vector<size_t>& behind = inputs_behind_[output];
  return std::any_of(behind.begin(), behind.end(), [&](size_t input) { return requires_grad(given[input]); });
}

std::vector<Var> GraphCall::run(const std::vector<Var>& inputs, size_t num_recorded) {
  std::vector<Datum> given;
  bool is_recorded = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    given.push_back(static_cast<const Eager&>(inputs[i].eager()).datum());
    is_recorded = is_recorded || is_wanted(i, inputs[i]);
  }
  Outputs named = program_.run(given);
  std::vector<Datum>& outputs = named;
  auto info = std::make_shared<CallInfo>();
  info->name = "captured function";
  for (size_t k = 0; k < outputs.size(); ++k) {
    info->output_types.push_back(outputs[k].is_tensor() ? outputs[k].tensor().type()
                                                        : graph_.type(graph_.outputs()[k]));
  }
  std::shared_ptr<TapeNode> node;
  if (is_recorded && modes().records && num_recorded > 0) {
    node = std::make_shared<TapeNode>();
    node->info = info;
    node->inputs = recorded_inputs(inputs);
    node->outputs = outputs;
    node->origin = current_origin();
    node->function = [self = shared_from_this(), kept = node->inputs](const std::vector<Var>& output_gradients) {
      return self->gradients(kept, output_gradients);
    };
  }
  std::vector<Var> values;
  for (size_t k = 0; k < outputs.size(); ++k) {
    std::shared_ptr<const Type> type(info, &info->output_types[k]);
    const bool flows = node && k < num_recorded && is_wanted_behind(k, inputs);
    values.emplace_back(std::make_shared<Eager>(std::move(type), std::move(outputs[k]), flows ? node : nullptr,
                                                static_cast<uint32_t>(k)));
  }
  return values;
}

std::vector<Var> GraphCall::gradients(const std::vector<Var>& inputs, const std::vector<Var>& output_gradients) {
  std::vector<bool> wanted, given;
  std::string key;
  std::vector<Var> operands = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    wanted.push_back(is_wanted(i, inputs[i]));
    key += wanted.back() ? 'w' : '-';
  }
  for (const Var& gradient : output_gradients) {
    given.push_back(gradient.is_valid());
    key += given.back() ? 'g' : '-';
    if (gradient.is_valid()) operands.push_back(gradient);
  }
  std::shared_ptr<GraphCall>& call = gradients_[key];
  if (!call) call = std::make_shared<GraphCall>(gradient_of_body(graph_, wanted, given), options_);
  const std::vector<Var> results = call->run(operands, call->graph().outputs().size());
  std::vector<Var> gradients(inputs.size());
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (wanted[i]) gradients[i] = results[next++];
  }
  return gradients;
}

}  // namespace autograph
