#include "autodiff/reverse.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "autodiff/rule_context.h"
#include "autograph/ops/elementwise.h"
#include "base/check.h"
#include "graph/nested/function_body.h"
#include "graph/nested/inline_graph.h"
#include "ops/defs.h"
#include "ops/sequence/sequence_vjp.h"

namespace autograph {
namespace {

// Can a gradient belong to a value of this type?
bool carries_floats(const Type& type) {
  if (type.is_tensor()) return dtypes::kFloat.contains(type.dtype());
  return type.kind() != Type::Kind::none && carries_floats(type.element());
}

// "gradient/layer1/conv", which the nodes of a rule are named after.
std::string scope_of(const Node& node) {
  const auto origins = node.provenance().origins();
  return "gradient/" + (origins.empty() ? std::string(node.op().name) : origins.front());
}

// The sum of gradients.
Var sum_of(const std::vector<Var>& terms) {
  if (terms.size() > 2 && terms[0].type().is_tensor()) return sum(terms);
  return std::accumulate(terms.begin() + 1, terms.end(), terms[0], sum_of_gradients);
}

}  // namespace

Reverse::Reverse(Graph& graph, const std::vector<ValueId>& wanted)
    : graph_(graph), order_(graph.topological_order()), active_(graph.value_capacity(), 0) {
  for (const ValueId id : wanted) active_[id.index] = 1;
  for (const NodeId id : order_) follow(id);
}

void Reverse::follow(NodeId id) {
  const Node& node = graph_.node(id);
  if (!node.op().no_grad.empty()) return;
  const auto& inputs = node.inputs();
  if (std::none_of(inputs.begin(), inputs.end(), [this](ValueId input) { return is_active(input); })) return;
  for (const ValueId output : node.outputs()) {
    if (carries_floats(graph_.type(output))) active_[output.index] = 1;
  }
}

void Reverse::seed(ValueId value, ValueId gradient) {
  if (is_active(value)) contributions_[value.index].push_back(gradient);
}

void Reverse::run() {
  for (size_t i = order_.size(); i-- > 0;) {
    if (has_gradient(order_[i])) visit(order_[i]);
  }
}

ValueId Reverse::gradient(ValueId wanted) { return total(wanted); }

bool Reverse::has_gradient(NodeId id) const {
  const Node& node = graph_.node(id);
  const bool flows = std::any_of(node.outputs().begin(), node.outputs().end(),
                                 [this](ValueId output) { return contributions_.contains(output.index); });
  return flows && std::any_of(node.inputs().begin(), node.inputs().end(), [this](ValueId x) { return is_active(x); });
}

void Reverse::visit(NodeId id) {
  const OpDef& op = graph_.node(id).op();
  const ProvenanceScope scope(scope_of(graph_.node(id)));
  if (!op.vjp && op.decompose) return visit_body(id);
  RuleContext context(*this, id);
  if (!op.vjp) context.unsupported("it has no gradient rule");
  try {
    op.vjp(context);
  } catch (const UnsupportedError&) {
    // A rule for most calls of an op leaves the others to the body, before it has set anything.
    if (!op.decompose || context.has_set_any()) throw;
    return visit_body(id);
  }
  context.check_all_set();
}

// The nodes of a body come after those that they read.
void Reverse::visit_body(NodeId id) {
  const OpDef& op = graph_.node(id).op();
  const Attributes attributes = graph_.node(id).attributes();
  const Provenance provenance = graph_.node(id).provenance();
  const std::vector<ValueId> outputs = graph_.node(id).outputs();
  DecomposeContext context{graph_, attributes, {}, outputs.size()};
  for (const ValueId input : graph_.node(id).inputs()) {
    context.inputs.push_back(input.is_valid() ? Var(graph_, input) : Var());
  }
  const auto first = static_cast<uint32_t>(graph_.node_capacity());
  const std::vector<Var> results = add_body(op, context);
  const auto last = static_cast<uint32_t>(graph_.node_capacity());
  active_.resize(graph_.value_capacity(), 0);
  for (uint32_t n = first; n < last; ++n) {
    graph_.set_provenance({n}, provenance);
    follow({n});
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (k < results.size() && results[k].is_valid()) stand_in(outputs[k], results[k].id());
  }
  for (uint32_t n = last; n-- > first;) {
    if (has_gradient({n})) visit({n});
  }
}

void Reverse::stand_in(ValueId from, ValueId to) {
  if (graph_.value(to).name().empty()) graph_.set_value_name(to, graph_.value(from).name());
  graph_.replace_uses(from, to);
  const ValueId flown = total(from);
  if (flown.is_valid()) seed(to, flown);
}

ValueId Reverse::total(ValueId value) {
  const auto found = contributions_.find(value.index);
  if (found == contributions_.end()) return {};
  std::vector<ValueId>& parts = found->second;
  if (parts.size() > 1) {
    std::vector<Var> terms;
    for (const ValueId part : parts) terms.emplace_back(graph_, part);
    parts = {sum_of(terms).id()};
  }
  parts.front() = hooked(value, parts.front());
  return parts.front();
}

// Each hook once, though a total may be asked for again; in the order in which they were given.
ValueId Reverse::hooked(ValueId value, ValueId gradient) {
  std::set<NodeId> hooks;
  for (const Use& use : graph_.value(value).uses()) {
    if (use.slot == 0 && &graph_.node(use.node).op() == &gradient_hook_def()) hooks.insert(use.node);
  }
  for (const NodeId hook : hooks) {
    if (!used_hooks_.insert(hook).second) continue;
    std::vector<ValueId> inputs = graph_.node(hook).inputs();
    inputs[0] = gradient;
    const GraphRef body = graph_.node(hook).attributes().get<GraphRef>("gradient");
    gradient = inline_graph(graph_, *body, inputs).front();
  }
  return gradient;
}

const KnownValues& Reverse::known_values() {
  if (!known_) known_ = infer_types(graph_);
  return *known_;
}

}  // namespace autograph
