#include "eager/capture/graph_call.h"

#include <algorithm>

#include "autodiff/rule_context.h"
#include "eager/modes.h"
#include "eager/tape/tape.h"
#include "ops/defs.h"

namespace autograph {
namespace {

std::vector<ValueId> hooked_values(const Graph& graph) {
  std::vector<ValueId> values;
  for (const NodeId id : graph.topological_order()) {
    if (&graph.node(id).op() != &gradient_hook_def()) continue;
    const ValueId value = graph.node(id).input(0);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values;
}

Graph with_outputs(Graph graph, const std::vector<ValueId>& values) {
  for (const ValueId value : values) graph.add_output(value);
  return graph;
}

Var value_of(const std::shared_ptr<const CallInfo>& info, Datum datum, std::shared_ptr<TapeNode> producer,
             size_t slot) {
  std::shared_ptr<const Type> type(info, &info->output_types[slot]);
  return Var(
      std::make_shared<Eager>(std::move(type), std::move(datum), std::move(producer), static_cast<uint32_t>(slot)));
}

}  // namespace

GraphCall::GraphCall(Graph graph, const CompileOptions& options)
    : graph_(std::move(graph)),
      shared_(hooked_values(graph_)),
      recorded_(with_outputs(graph_, shared_)),
      options_(options),
      program_(compile(recorded_, options)) {
  find_flows();
}

// Values behind stop_gradient (what was detached, frozen, or computed inside NoGrad) get no gradient of zeros, with
// which an optimiser would go on to decay weights, but none, as they do line by line.
void GraphCall::find_flows() {
  is_reached_.assign(recorded_.inputs().size(), 0);
  for (const ValueId output : recorded_.outputs()) {
    std::vector<char> is_behind(recorded_.value_capacity(), 0);
    std::vector<ValueId> open{output};
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (!id.is_valid() || is_behind[id.index] || !carries_floats(recorded_.type(id))) continue;
      is_behind[id.index] = 1;
      const NodeId producer = recorded_.value(id).producer();
      if (!producer.is_valid() || !recorded_.node(producer).op().no_grad.empty()) continue;
      for (const ValueId input : recorded_.node(producer).inputs()) open.push_back(input);
    }
    std::vector<size_t>& behind = inputs_behind_.emplace_back();
    for (size_t i = 0; i < recorded_.inputs().size(); ++i) {
      if (!is_behind[recorded_.inputs()[i].index]) continue;
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
                                                        : recorded_.type(recorded_.outputs()[k]));
  }
  const bool flows = is_recorded && modes().records && num_recorded > 0;
  const std::shared_ptr<TapeNode> node = flows ? record(info, inputs, outputs) : nullptr;
  std::vector<Var> values;
  for (size_t k = 0; k < graph_.outputs().size(); ++k) {
    const bool flows_back = node && k < num_recorded && is_wanted_behind(k, inputs);
    values.push_back(value_of(info, std::move(outputs[k]), flows_back ? node : nullptr, k));
  }
  return values;
}

std::shared_ptr<TapeNode> GraphCall::record(const std::shared_ptr<const CallInfo>& info, const std::vector<Var>& inputs,
                                            const std::vector<Datum>& outputs) {
  const auto node = std::make_shared<TapeNode>();
  node->info = info;
  node->inputs = recorded_inputs(inputs);
  node->outputs = outputs;
  node->origin = current_origin();
  // The node holds the function, and lives while it is called.
  node->function = [self = shared_from_this(), here = std::weak_ptr(node)](const std::vector<Var>& output_gradients) {
    return self->gradients(here.lock(), output_gradients);
  };
  return node;
}

std::vector<Var> GraphCall::gradients(const std::shared_ptr<TapeNode>& node, const std::vector<Var>& output_gradients) {
  const std::vector<Var>& inputs = node->inputs;
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
  for (size_t k = graph_.outputs().size(); k < node->outputs.size(); ++k) {
    operands.push_back(value_of(node->info, node->outputs[k], is_wanted_behind(k, inputs) ? node : nullptr, k));
  }
  std::shared_ptr<GraphCall>& call = gradients_[key];
  if (!call) call = std::make_shared<GraphCall>(gradient_of_body(recorded_, wanted, given, shared_.size()), options_);
  const std::vector<Var> results = call->run(operands, call->graph().outputs().size());
  std::vector<Var> gradients(inputs.size());
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (wanted[i]) gradients[i] = results[next++];
  }
  return gradients;
}

}  // namespace autograph
