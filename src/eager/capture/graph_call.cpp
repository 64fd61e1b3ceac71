#include "eager/capture/graph_call.h"

#include "autodiff/rule_context.h"
#include "eager/modes.h"
#include "eager/tape/tape.h"

namespace autograph {
namespace {

bool is_wanted(const Var& input) { return requires_grad(input) && carries_floats(input.type()); }

}  // namespace

GraphCall::GraphCall(Graph graph, const CompileOptions& options)
    : graph_(std::move(graph)), options_(options), program_(compile(graph_, options)) {}

std::vector<Var> GraphCall::run(const std::vector<Var>& inputs, size_t num_recorded) {
  std::vector<Datum> given;
  bool is_recorded = false;
  for (const Var& input : inputs) {
    given.push_back(static_cast<const Eager&>(input.eager()).datum());
    is_recorded = is_recorded || is_wanted(input);
  }
  std::vector<Datum> outputs = program_.run(given);
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
    const bool flows = node && k < num_recorded && carries_floats(*type);
    values.emplace_back(std::make_shared<Eager>(std::move(type), std::move(outputs[k]), flows ? node : nullptr,
                                                static_cast<uint32_t>(k)));
  }
  return values;
}

std::vector<Var> GraphCall::gradients(const std::vector<Var>& inputs, const std::vector<Var>& output_gradients) {
  std::vector<bool> wanted, given;
  std::string key;
  std::vector<Var> operands = inputs;
  for (const Var& input : inputs) {
    wanted.push_back(is_wanted(input));
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
