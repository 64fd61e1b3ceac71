// fuse_epilogues: what follows a convolution or a matrix product element by element is computed while its result is
// still in registers.
//
//   conv -> add(residual) -> relu    becomes    fused{conv, add, relu}
//
// Starting from each op with the `anchor` trait, the chain of elementwise nodes behind it is followed as long as
// nothing else reads the values in between, dims and dtype stay, and the device has a kernel for the whole. Scalars
// become constants of the body; everything else that is read becomes an input of the fused node, so weights stay where
// they are. A residual is taken by the producer that comes last, by which time the other operand is there.
#include <algorithm>

#include "autograph/op_def.h"
#include "optimize/passes/passes.h"

namespace autograph {

const OpDef& fused_def();

namespace {

// The nodes of a chain as a body, and the values of the outer graph that it reads.
class BodyBuilder {
 public:
  explicit BodyBuilder(const Graph& graph) : graph_(graph), body_("body") {}

  // Copies `node`, whose inputs are in the chain, or come from outside.
  void add(const Node& node) {
    std::vector<ValueId> inputs;
    for (const ValueId v : node.inputs()) inputs.push_back(v.is_valid() ? inner(v) : ValueId{});
    std::vector<Type> types;
    for (const ValueId v : node.outputs()) types.push_back(graph_.type(v));
    const NodeId copy = body_.add_node_typed(node.op(), std::move(inputs), node.attributes(), std::move(types));
    last_ = body_.node(copy).output(0);
    known_.emplace_back(node.output(0), last_);
    provenance_ = Provenance::merged(provenance_, node.provenance());
  }

  // The body with the last node's value as its output.
  GraphRef finish() const {
    auto body = std::make_shared<Graph>(body_);
    body->add_output(last_);
    return body;
  }

  const std::vector<ValueId>& outer_inputs() const { return outer_inputs_; }
  const Provenance& provenance() const { return provenance_; }

 private:
  ValueId inner(ValueId outer) {
    for (const auto& [from, to] : known_) {
      if (from == outer) return to;
    }
    const Value& value = graph_.value(outer);
    ValueId made;
    if (value.is_constant() && value.constant().num_elements() == 1) {
      made = body_.add_constant(value.constant());
    } else {
      made = body_.add_input(value.type());
      outer_inputs_.push_back(outer);
    }
    known_.emplace_back(outer, made);
    return made;
  }

  const Graph& graph_;
  Graph body_;
  ValueId last_;
  std::vector<std::pair<ValueId, ValueId>> known_;  // outer to inner
  std::vector<ValueId> outer_inputs_;
  Provenance provenance_;
};

// Would a kernel of the device run this body as one node?
bool has_kernel(const PassContext& context, const Graph& graph, const BodyBuilder& builder) {
  Graph trial;
  std::vector<ValueId> inputs;
  for (const ValueId v : builder.outer_inputs()) inputs.push_back(trial.add_input(graph.type(v)));
  const NodeId node = trial.add_node(fused_def(), std::move(inputs), {{"body", builder.finish()}}, {{}, 1});
  return context.has_kernel(trial, node);
}

// The elementwise node that alone reads `v` and could join the chain; invalid when there is none.
NodeId next_in_chain(const Graph& graph, ValueId v) {
  const Value& value = graph.value(v);
  if (value.uses().size() != 1 || graph.num_output_uses(v) > 0 || !value.type().is_static()) return {};
  const NodeId id = value.uses()[0].node;
  const Node& node = graph.node(id);
  const bool joins = node.op().traits.elementwise && node.op().traits.pure && node.outputs().size() == 1 &&
                     graph.type(node.output(0)) == value.type();
  return joins ? id : NodeId{};
}

class EpilogueFuser {
 public:
  EpilogueFuser(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {
    const std::vector<NodeId> order = graph.topological_order();
    // From the back, so that of two producers of a sum the later one takes it.
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      if (graph.is_live(*it) && graph.node(*it).op().traits.anchor) fuse_behind(*it);
    }
  }

  bool changed() const { return changed_; }

 private:
  void fuse_behind(NodeId anchor) {
    BodyBuilder builder(graph_);
    builder.add(graph_.node(anchor));
    std::vector<NodeId> chain{anchor};
    for (NodeId next = next_in_chain(graph_, graph_.node(anchor).output(0)); next.is_valid();
         next = next_in_chain(graph_, graph_.node(chain.back()).output(0))) {
      BodyBuilder longer = copy_of(chain);
      longer.add(graph_.node(next));
      if (!has_kernel(context_, graph_, longer)) break;
      chain.push_back(next);
    }
    if (chain.size() > 1) replace(chain);
  }

  BodyBuilder copy_of(const std::vector<NodeId>& chain) const {
    BodyBuilder builder(graph_);
    for (const NodeId id : chain) builder.add(graph_.node(id));
    return builder;
  }

  void replace(const std::vector<NodeId>& chain) {
    const BodyBuilder builder = copy_of(chain);
    const ValueId last = graph_.node(chain.back()).output(0);
    const NodeId fused = graph_.add_node_typed(fused_def(), builder.outer_inputs(), {{"body", builder.finish()}},
                                               {graph_.type(last)}, builder.provenance());
    graph_.set_value_name(graph_.node(fused).output(0), graph_.value(last).name());
    graph_.replace_uses(last, graph_.node(fused).output(0));
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) graph_.erase_node(*it);
    changed_ = true;
  }

  Graph& graph_;
  const PassContext& context_;
  bool changed_ = false;
};

}  // namespace

bool fuse_epilogues(Graph& graph, PassContext& context) {
  if (!context.has_kernel) return false;
  const bool changed = EpilogueFuser(graph, context).changed();
  if (changed) graph.erase_dead();
  return changed;
}

}  // namespace autograph
