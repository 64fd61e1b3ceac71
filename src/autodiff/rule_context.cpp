#include "autodiff/rule_context.h"

#include <fmt/core.h>

#include "base/check.h"
#include "graph/nested/inline_graph.h"
#include "graph/schema.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sequence/sequence_vjp.h"

namespace autograph {
namespace {

bool has_hooks(const Graph& graph) {
  const std::vector<NodeId> nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](NodeId id) { return &graph.node(id).op() == &gradient_hook_def(); });
}

}  // namespace

void RuleVisit::set_none(size_t slot) {
  if (slot < is_set_.size()) is_set_[slot] = 1;
}

Graph RuleVisit::vjp_of(const Graph& body, const std::vector<bool>& wanted, const std::vector<bool>& given) {
  return gradient_of_body(body, wanted, given);
}

void RuleVisit::check_all_set() const {
  for (size_t slot = 0; slot < is_set_.size(); ++slot) {
    if (wants(slot) && !is_set_[slot]) {
      unsupported(fmt::format("its rule has no gradient with respect to input '{}'", input_name(slot)));
    }
  }
}

std::string RuleVisit::input_name(size_t slot) const {
  const Param* param = find_param(op().inputs, slot);
  return param ? std::string(param->name) : std::to_string(slot);
}

RuleContext::RuleContext(Reverse& pass, NodeId node)
    : RuleVisit(pass.graph_.node(node).inputs().size()),
      pass_(pass),
      node_(node),
      op_(&pass.graph_.node(node).op()),
      attributes_(pass.graph_.node(node).attributes()),
      inputs_(pass.graph_.node(node).inputs()),
      outputs_(pass.graph_.node(node).outputs()) {
  for (const ValueId output : outputs_) gradients_.push_back(pass_.total(output));
}

Var RuleContext::gy(size_t slot) {
  if (!has_gy(slot)) return zeros_of(out(slot));
  return Var(graph(), gradients_[slot]);
}

std::optional<std::vector<int64_t>> RuleContext::known_integers(size_t slot) const {
  if (!has_input(slot)) return std::nullopt;
  const Value& value = pass_.graph_.value(inputs_[slot]);
  if (value.is_constant()) return value.constant().to_i64();
  const KnownValues& known = pass_.known_values();
  const auto found = known.find(inputs_[slot].index);
  if (found == known.end()) return std::nullopt;
  return found->second.to_i64();
}

std::vector<int64_t> RuleContext::integers(size_t slot) const {
  const auto known = known_integers(slot);
  if (!known) unsupported(fmt::format("its rule needs to know input '{}' before running", input_name(slot)));
  return *known;
}

void RuleContext::set(size_t slot, const Var& gradient) {
  if (!wants(slot)) return;
  const Var x = in(slot);
  if (!x.type().is_tensor()) {
    AG_CHECK(gradient.is_valid() && gradient.type().kind() == x.type().kind(), "[{}] gradient of input {}: expected {}",
             op_->name, slot, to_string(x.type()));
    is_set_[slot] = 1;
    return pass_.seed(inputs_[slot], gradient.id());
  }
  AG_CHECK(gradient.is_valid() && gradient.type().is_tensor() && gradient.dtype() == x.dtype(),
           "[{}] gradient of input {}: expected {}, got {}", op_->name, slot, to_string(x.type()),
           gradient.is_valid() ? to_string(gradient.type()) : "nothing");
  is_set_[slot] = 1;
  pass_.seed(inputs_[slot], sum_to(gradient, x).id());
}

// Further uses of the input are added as those of other rules are: passes see one form.
Var RuleContext::so_far(size_t slot) { return filled_like(in(slot), 0); }

std::vector<Var> RuleContext::with_outputs(int count) {
  Graph& graph = pass_.graph_;
  const NodeId more =
      graph.add_node(*op_, inputs_, attributes_, {.provenance = graph.node(node_).provenance(), .num_outputs = count});
  const std::vector<ValueId> outputs = graph.node(more).outputs();
  std::vector<Var> values;
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (k < outputs_.size()) {
      if (graph.value(outputs[k]).name().empty()) {
        graph.set_value_name(outputs[k], graph.value(outputs_[k]).name());
      }
      graph.replace_uses(outputs_[k], outputs[k]);
    }
    values.emplace_back(graph, outputs[k]);
  }
  outputs_ = outputs;
  gradients_.resize(outputs_.size());
  return values;
}

Graph gradient_of_body(const Graph& body, const std::vector<bool>& wanted, const std::vector<bool>& given,
                       size_t num_shared) {
  Graph result(body.name());
  std::vector<ValueId> inputs;
  for (const ValueId input : body.inputs()) inputs.push_back(result.add_input(body.type(input)));
  const std::vector<ValueId> outputs = inline_graph(result, body, inputs);
  std::vector<ValueId> asked;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (wanted[i]) asked.push_back(inputs[i]);
  }
  std::vector<std::pair<ValueId, ValueId>> seeds;
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (given[k]) seeds.emplace_back(outputs[k], result.add_input(result.type(outputs[k])));
  }
  Reverse pass(result, asked);
  for (const auto& [value, gradient] : seeds) pass.seed(value, gradient);
  pass.run();
  for (const ValueId id : asked) {
    const ValueId gradient = pass.gradient(id);
    result.add_output(gradient.is_valid() ? gradient : zeros_of(Var(result, id)).id());
  }
  for (size_t k = outputs.size() - num_shared; k < outputs.size(); ++k) {
    result.replace_uses(outputs[k], result.add_input(result.type(outputs[k])));
  }
  // Hooks of what is computed again have no readers, and are there for gradients of the result.
  if (num_shared > 0 || !has_hooks(result)) result.erase_dead();
  return result;
}

void RuleContext::unsupported(std::string_view detail) const {
  throw UnsupportedError(fmt::format("[gradient] {}: {} (node {})", op_->name, detail, describe(pass_.graph_, node_)));
}

}  // namespace autograph
