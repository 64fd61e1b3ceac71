#include "autograph/builder.h"

#include <algorithm>

#include "autograph/op_def.h"
#include "base/check.h"
#include "base/printable.h"
#include "graph/nested/body_scope.h"
#include "tensor/front_axis.h"

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

// Names are how a call gives inputs and finds outputs; those without a name go by their positions.
void check_is_new(bool is_new, std::string_view what, const std::string& name) {
  AG_CHECK_USER(is_new || name.empty(), ValueError,
                "[graph] {} '{}': expected a new name, the graph has one of that name", what, printable(name));
}

void check_extents(const Shape& shape, const std::string& name) {
  for (const Dim& dim : shape.dims()) {
    AG_CHECK_USER(
        !dim.is_negative(), ShapeError,
        "[graph] input '{}': expected extents of 0 or more, got a negative one in {} (Dim::symbol(\"batch\") or "
        "Dim::unknown() where it is not known)",
        printable(name), to_string(shape));
  }
}

}  // namespace

// A graph that nobody shares is borrowed. A value that is not given belongs to none.
Var::Var(Graph& graph, ValueId id) : id_(id) {
  if (!id.is_valid()) return;
  std::shared_ptr<Graph> shared = graph.weak_from_this().lock();
  holder_ = shared ? std::move(shared) : std::shared_ptr<Graph>(std::shared_ptr<void>(), &graph);
}

void Var::refuse_graph() const {
  if (is_eager()) {
    throw ValueError(
        "[graph] value: expected one of a graph, got an eager value (constants beside it: constant_like())");
  }
  throw ValueError("[graph] value: expected one, got Var(), which stands for an optional input that is not given");
}

const Tensor* Var::known() const {
  if (is_eager()) return eager().known();
  const Value& value = graph().value(id_);
  return value.is_constant() ? &value.constant() : nullptr;
}

GraphBuilder::GraphBuilder(std::string name) : graph_(std::make_shared<Graph>(std::move(name))) {}

Var GraphBuilder::input(std::string name, DType dtype, Shape shape) {
  const std::vector<ValueId>& inputs = graph_->inputs();
  const auto is_other = [&](ValueId id) { return graph_->value(id).name() != name; };
  check_is_new(std::all_of(inputs.begin(), inputs.end(), is_other), "input", name);
  return autograph::input(*graph_, dtype, std::move(shape), std::move(name));
}

Var GraphBuilder::constant(Tensor tensor, std::string name) {
  return autograph::constant(*graph_, std::move(tensor), std::move(name));
}

Var GraphBuilder::state(std::string name, Tensor initial) {
  return autograph::state(*graph_, std::move(initial), std::move(name));
}

void GraphBuilder::check_own(const Var& value, const std::string& what) const {
  AG_CHECK_USER(value.is_valid(), ValueError, "[graph] {}: expected a value, got none", what);
  AG_CHECK_USER(&value.graph() == graph_.get(), ValueError, "[graph] {}: belongs to another graph", what);
}

void GraphBuilder::update(const Var& state, const Var& value) {
  check_own(state, "update: the state");
  check_own(value, "update: the new value");
  autograph::update(state, value);
}

void GraphBuilder::output(std::string name, const Var& value) {
  check_own(value, fmt::format("output '{}'", printable(name)));
  bool is_new = true;
  for (size_t i = 0; i < graph_->outputs().size(); ++i) is_new = is_new && graph_->output_name(i) != name;
  check_is_new(is_new, "output", name);
  graph_->add_output(value.id(), std::move(name));
}

int64_t Var::rank() const {
  AG_CHECK_USER(
      shape().has_rank(), ShapeError,
      "[rank] value: expected a known rank, got {} (give the input a shape; unknown extents may be Dim::unknown())",
      to_string(type()));
  return shape().rank();
}

int64_t Var::dim(int64_t axis) const {
  const int64_t size = rank();
  AG_CHECK_USER(axis >= -size && axis < size, ShapeError, "[dim] axis: expected {} for {}, got {}",
                size == 0 ? "none" : fmt::format("{}..{}", -size, size - 1), to_string(type()), axis);
  const Dim& extent = shape()[front_axis(axis, size)];
  AG_CHECK_USER(extent.is_known(), ShapeError,
                "[dim] axis {}: expected a known extent, got {} of {} (ask the graph for it when it runs: shape())",
                axis, to_string(extent), to_string(type()));
  return extent.value();
}

ProvenanceScope::ProvenanceScope(const std::string& name) : previous_length_(scope_path().size()) {
  std::string& path = scope_path();
  if (!path.empty()) path += '/';
  path += name;
}

ProvenanceScope::~ProvenanceScope() { scope_path().resize(previous_length_); }

const std::string& ProvenanceScope::current() { return scope_path(); }

PlaceScope::PlaceScope(std::string (*place)()) : place_(place), outer_(innermost_place) { innermost_place = this; }

PlaceScope::~PlaceScope() { innermost_place = outer_; }

std::string PlaceScope::current() { return innermost_place ? innermost_place->place_() : ""; }

Var input(Graph& graph, DType dtype, Shape shape, std::string name) {
  AG_CHECK_USER(dtype != DType::undefined, TypeError, "[graph] input '{}': expected a dtype, got {}", printable(name),
                to_string(dtype));
  check_extents(shape, name);
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
