#include "engine/check/node_by_node.h"

#include <algorithm>

#include "base/rethrow.h"
#include "engine/state_store.h"
#include "runtime/find_nonfinite.h"

namespace autograph {
namespace {

CompileOptions node_by_node(CompileOptions options, const StateStore& states) {
  options.check_nan = NanCheck::nodes;
  options.states = states;
  options.tune = false;
  options.on_tune = nullptr;
  options.profile = false;
  options.expert.schedule = nullptr;  // which is one for the joined nodes
  options.expert.kernel_times = nullptr;
  return options;
}

bool is_nan_anywhere(const Tensor& tensor) { return tensor.is_present() && find_worst(tensor.to_host().view()).is_nan; }

// Constants, those of nested graphs included.
bool has_nan_constant(const Graph& graph) {
  const std::vector<ValueId> constants = graph.constants();
  const auto is_nan = [&](ValueId v) { return is_nan_anywhere(graph.value(v).constant()); };
  if (std::any_of(constants.begin(), constants.end(), is_nan)) return true;
  for (const NodeId id : graph.nodes()) {
    for (const auto& [name, value] : graph.node(id).attributes()) {
      const auto* nested = std::get_if<GraphRef>(&value);
      if (nested && has_nan_constant(**nested)) return true;
    }
  }
  return false;
}

}  // namespace

NodeByNode::NodeByNode(Graph graph, const CompileOptions& options, const StateStore& states)
    : graph_(std::move(graph)), options_(node_by_node(options, states)) {}

bool NodeByNode::has_nan(const RunInputs& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor* tensor = inputs.tensor(i);
    if (tensor && is_nan_anywhere(*tensor)) return true;
  }
  const std::lock_guard lock(mutex_);
  if (!has_nan_inside_) {
    const auto is_nan = [&](ValueId v) { return is_nan_anywhere(options_.states->get(graph_.value(v).name())); };
    has_nan_inside_ = has_nan_constant(graph_) || std::any_of(graph_.states().begin(), graph_.states().end(), is_nan);
  }
  return *has_nan_inside_;
}

const Executable::Impl& NodeByNode::executable() {
  const std::lock_guard lock(mutex_);
  if (!executable_) executable_ = std::make_unique<Executable::Impl>(graph_, options_, Nesting::none);
  return *executable_;
}

void NodeByNode::name_node(const RunInputs& inputs) {
  executable().run(inputs, nullptr);
  rethrow_changed([](const std::string& message) {
    return message +
           "; the nodes one by one make no NaN from the same inputs, so that it is made where they are joined: "
           "`autograph bisect` finds the pass or kernel";
  });
}

}  // namespace autograph
