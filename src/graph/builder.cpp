#include "autograph/builder.h"

#include "autograph/op_def.h"
#include "base/check.h"
#include "graph/nested/body_scope.h"

namespace autograph {
namespace {

std::string& scope_path() {
  thread_local std::string path;
  return path;
}

thread_local const PlaceScope* innermost_place = nullptr;

// "layer1/conv at train.cpp:27", with as much of it as is known.
Provenance current_provenance(const OpDef& op) {
  const std::string& scope = ProvenanceScope::current();
  const std::string place = PlaceScope::current();
  if (scope.empty() && place.empty()) return {};
  std::string origin = scope.empty() ? "" : scope + "/";
  origin += op.name;
  return Provenance::named(place.empty() ? origin : origin + " at " + place);
}

}  // namespace

// A graph that nobody shares is borrowed. A value that is not given belongs to none.
Var::Var(Graph& graph, ValueId id) : id_(id) {
  if (!id.is_valid()) return;
  std::shared_ptr<Graph> shared = graph.weak_from_this().lock();
  holder_ = shared ? std::move(shared) : std::shared_ptr<Graph>(std::shared_ptr<void>(), &graph);
}

void Var::refuse_graph() {
  throw InternalError("[graph] an eager value belongs to no graph (constants beside it: constant_like())");
}

const Tensor* Var::known() const {
  if (is_eager()) return eager().known();
  const Value& value = graph().value(id_);
  return value.is_constant() ? &value.constant() : nullptr;
}

GraphBuilder::GraphBuilder(std::string name) : graph_(std::make_shared<Graph>(std::move(name))) {}

Var GraphBuilder::input(std::string name, DType dtype, Shape shape) {
  return autograph::input(*graph_, dtype, std::move(shape), std::move(name));
}

Var GraphBuilder::constant(Tensor tensor, std::string name) {
  return autograph::constant(*graph_, std::move(tensor), std::move(name));
}

Var GraphBuilder::state(std::string name, Tensor initial) {
  return autograph::state(*graph_, std::move(initial), std::move(name));
}

void GraphBuilder::update(const Var& state, const Var& value) { autograph::update(state, value); }

void GraphBuilder::output(std::string name, const Var& value) {
  AG_CHECK_USER(value.is_valid(), ValueError, "[graph] output '{}': expected a value, got none", name);
  AG_CHECK_USER(&value.graph() == graph_.get(), ValueError, "[graph] output '{}': belongs to another graph", name);
  graph_->add_output(value.id(), std::move(name));
}

int64_t Var::dim(int64_t axis) const { return shape()[axis < 0 ? axis + rank() : axis].value(); }

ProvenanceScope::ProvenanceScope(const std::string& name) : previous_length_(scope_path().size()) {
  std::string& path = scope_path();
  if (!path.empty()) path += '/';
  path += name;
}

ProvenanceScope::~ProvenanceScope() { scope_path().resize(previous_length_); }

const std::string& ProvenanceScope::current() { return scope_path(); }

PlaceScope::PlaceScope(std::function<std::string()> place) : place_(std::move(place)), outer_(innermost_place) {
  innermost_place = this;
}

PlaceScope::~PlaceScope() { innermost_place = outer_; }

std::string PlaceScope::current() { return innermost_place ? innermost_place->place_() : ""; }

Var input(Graph& graph, DType dtype, Shape shape, std::string name) {
  return {graph, graph.add_input(Type(dtype, std::move(shape)), std::move(name))};
}

Var constant(Graph& graph, Tensor tensor, std::string name) {
  return {graph, graph.add_constant(std::move(tensor), std::move(name))};
}

Var state(Graph& graph, Tensor initial, std::string name) {
  return {graph, graph.add_state(std::move(initial), std::move(name))};
}

void update(Var state, Var value) {
  AG_CHECK_USER(state.is_valid() && value.is_valid() && &state.graph() == &value.graph(), ValueError,
                "[update] state and value: expected values of one graph");
  state.graph().set_update(state.id(), value.id());
}

Var constant_like(const Var& like, Tensor tensor) {
  return like.is_eager() ? like.eager().constant(std::move(tensor)) : constant(like.graph(), std::move(tensor));
}

Var apply(const OpDef& op, const std::vector<Var>& inputs, Attributes attributes) {
  return apply_all(op, inputs, std::move(attributes)).front();
}

std::vector<Var> apply_all(const OpDef& op, const std::vector<Var>& inputs, Attributes attributes, int num_outputs) {
  Graph* graph = nullptr;
  const Var* eager = nullptr;
  for (const Var& var : inputs) {
    if (!var.is_valid()) continue;
    if (var.is_eager())
      eager = &var;
    else if (!graph)
      graph = &var.graph();
  }
  if (eager && !graph) return eager->eager().apply(op, inputs, std::move(attributes), num_outputs);
  BodyScope* nested = graph ? BodyScope::innermost() : nullptr;
  if (nested && !nested->encloses(*graph)) nested = nullptr;
  if (nested) graph = &nested->body();
  std::vector<ValueId> ids;
  for (const Var& var : inputs) {
    if (var.is_eager()) {
      ids.push_back(var.eager().in_graph(*graph).id());
      continue;
    }
    const bool is_other = var.is_valid() && graph != &var.graph();
    AG_CHECK_USER(!is_other || (nested && nested->encloses(var.graph())), ValueError,
                  "[{}] inputs: from different graphs", op.name);
    ids.push_back(is_other ? nested->bring_in(var).id() : var.id());
  }
  AG_CHECK_USER(graph, ValueError, "[{}] inputs: at least one must be given", op.name);
  while (!ids.empty() && !ids.back().is_valid()) ids.pop_back();
  NodeOptions options;
  options.num_outputs = num_outputs;
  options.provenance = current_provenance(op);
  const NodeId node = graph->add_node(op, std::move(ids), std::move(attributes), std::move(options));
  std::vector<Var> outputs;
  for (const ValueId output : graph->node(node).outputs()) outputs.emplace_back(*graph, output);
  return outputs;
}

}  // namespace autograph
