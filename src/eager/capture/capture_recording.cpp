#include "eager/capture/capture_recording.h"

#include <map>

#include "autograph/autodiff.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "base/check.h"
#include "eager/modes.h"
#include "graph/nested/body_scope.h"
#include "ops/defs.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

// Could a gradient flow on from `value`, to what was there before node `first_node`?
bool may_carry_gradient(const Graph& graph, ValueId value, size_t first_node) {
  const Value& here = graph.value(value);
  const bool is_new = here.producer().is_valid() && here.producer().index >= first_node;
  return !is_new && !here.is_constant() && carries_floats(here.type());
}

}  // namespace

CaptureRecording::CaptureRecording() : root_(std::make_shared<Graph>("captured")), previous_(modes().capture) {
  modes().capture = this;
}

CaptureRecording::~CaptureRecording() { modes().capture = previous_; }

Graph& CaptureRecording::graph() {
  BodyScope* nested = BodyScope::innermost();
  return nested && nested->encloses(*root_) ? nested->body() : *root_;
}

CaptureRecording::Known& CaptureRecording::known(Eager& value) {
  const auto [place, is_new] = numbers_.try_emplace(&value, known_.size());
  if (is_new) known_.push_back(std::make_unique<Known>(Known{value.shared_from_this(), {}, false, false, false, {}}));
  return *known_[place->second];
}

Var CaptureRecording::read(Eager& value, bool is_gradient, const Type& type) {
  reads_.push_back({value.shared_from_this(), is_gradient});
  return {*root_, root_->add_input(type, fmt::format("{}{}", is_gradient ? "gradient" : "value", reads_.size() - 1))};
}

// Variables get other elements between calls, and through what depends on them gradients flow. All else stays what it
// is, and is a constant.
Var CaptureRecording::value_of(Eager& value, Graph& graph) {
  Known& here = known(value);
  if (!here.now.is_valid()) {
    if (value.requires_grad()) {
      here.now = read(value, false, value.type());
    } else {
      AG_CHECK_USER(value.datum().is_tensor(), UnsupportedError,
                    "[capture] value from outside: expected a tensor, got {} (hand it to the function as an input)",
                    to_string(value.type()));
      here.now = autograph::constant(*root_, value.tensor());
    }
  }
  if (&graph == root_.get()) return here.now;
  BodyScope* nested = BodyScope::innermost();
  AG_CHECK(nested && &nested->body() == &graph, "a value from outside in graph '{}', which is not being built",
           graph.name());
  return nested->bring_in(here.now);
}

void CaptureRecording::refuse_nested(std::string_view what) const {
  BodyScope* nested = BodyScope::innermost();
  AG_CHECK_USER(!nested || !nested->encloses(*root_), UnsupportedError,
                "[{}] variable: not inside cond(), while_loop(), scan(), a hook or a gradient function of a function "
                "that is captured (give the value back from there)",
                what);
}

Var CaptureRecording::in_root(const Var& value) {
  AG_CHECK_USER(value.is_valid(), ValueError, "[capture] value: expected one, got none");
  Var inside = value.is_eager() ? value.eager().in_graph(*root_) : value;
  AG_CHECK_USER(&inside.graph() == root_.get(), ValueError,
                "[capture] value: expected one of the function that is captured, got one of another graph");
  return inside;
}

void CaptureRecording::assign(Eager& variable, const Var& value) {
  refuse_nested("assign");
  const Var inside = in_root(value);
  AG_CHECK_USER(inside.type().is_tensor() && inside.dtype() == variable.type().dtype(), TypeError,
                "[assign] value: expected {}, got {}", to_string(variable.type()), to_string(inside.type()));
  AG_CHECK_USER(!inside.type().is_static() || inside.type() == variable.type(), ShapeError,
                "[assign] value: expected {}, got {}", to_string(variable.type()), to_string(inside.type()));
  Known& here = known(variable);
  here.now = stop_gradient(inside);
  here.is_assigned = true;
}

Var CaptureRecording::gradient(Eager& variable) {
  Known& here = known(variable);
  if (!here.has_gradient) {
    const Var before = variable.as_variable().gradient;
    gradients_.push_back({variable.shared_from_this(), before.is_valid()});
    if (before.is_valid()) here.gradient = read(variable, true, before.type());
    here.has_gradient = true;
  }
  if (!here.gradient.is_valid() || &graph() == root_.get()) return here.gradient;
  return BodyScope::innermost()->bring_in(here.gradient);
}

void CaptureRecording::set_gradient(Eager& variable, const Var& gradient) {
  refuse_nested("gradient");
  Known& here = known(variable);
  here.gradient = gradient.is_valid() ? in_root(gradient) : Var();
  here.has_gradient = here.sets_gradient = true;
}

void CaptureRecording::begin_no_grad() { unrecorded_.push_back({&graph(), graph().node_capacity()}); }

// Graphs know no record: what was built meanwhile reads what was there before through stop_gradient.
void CaptureRecording::end_no_grad() {
  if (unrecorded_.empty()) return;  // began before the capture
  const Unrecorded ended = unrecorded_.back();
  unrecorded_.pop_back();
  Graph& here = graph();
  const bool is_inner = !unrecorded_.empty() && unrecorded_.back().graph == &here;
  if (ended.graph != &here || is_inner) return;
  std::map<ValueId, ValueId> stopped;
  const size_t end = here.node_capacity();
  for (size_t index = ended.first_node; index < end; ++index) {
    const NodeId node{static_cast<uint32_t>(index)};
    if (!here.is_live(node) || &here.node(node).op() == &gradient_hook_def()) continue;
    for (size_t slot = 0; slot < here.node(node).inputs().size(); ++slot) {
      const ValueId input = here.node(node).inputs()[slot];
      if (!input.is_valid() || !may_carry_gradient(here, input, ended.first_node)) continue;
      ValueId& barrier = stopped[input];
      if (!barrier.is_valid()) barrier = stop_gradient(Var(here, input)).id();
      here.set_input(node, slot, barrier);
    }
  }
}

void CaptureRecording::asks(std::shared_ptr<const bool> setting, const std::string& what) {
  if (known_settings_.insert(setting).second) settings_.push_back({setting, *setting, what});
}

void CaptureRecording::sets(std::shared_ptr<const bool> setting) { known_settings_.insert(std::move(setting)); }

// Variables that gradients flow to from `value`.
std::vector<CaptureRecording::Known*> CaptureRecording::variables_behind(const Var& value) {
  std::vector<char> is_behind(root_->value_capacity(), 0);
  std::vector<ValueId> open{value.id()};
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (!id.is_valid() || is_behind[id.index]) continue;
    is_behind[id.index] = 1;
    const NodeId producer = root_->value(id).producer();
    if (!producer.is_valid() || !root_->node(producer).op().no_grad.empty()) continue;
    for (const ValueId input : root_->node(producer).inputs()) open.push_back(input);
  }
  std::vector<Known*> found;
  for (const auto& here : known_) {
    if (here->value->is_variable() && here->now.is_valid() && is_behind[here->now.id().index]) {
      found.push_back(here.get());
    }
  }
  return found;
}

void CaptureRecording::backward(const Var& value, const BackwardOptions& options) {
  refuse_nested("backward");
  const Var inside = in_root(value);
  const std::vector<Known*> variables = variables_behind(inside);
  AG_CHECK_USER(!variables.empty(), ValueError, "[backward] value: expected one that depends on a variable, got {}",
                to_string(inside.type()));
  std::vector<Var> wanted;
  for (const Known* here : variables) wanted.push_back(here->now);
  const std::vector<Var> added =
      options.gradient.is_valid() ? vjp({inside}, {in_root(options.gradient)}, wanted) : grad(inside, wanted);
  for (size_t i = 0; i < variables.size(); ++i) {
    const Var before = gradient(*variables[i]->value);
    const Var slope = variables[i]->value->hooked(added[i]);
    const Var total = before.is_valid() ? before + slope : slope;
    set_gradient(*variables[i]->value, options.differentiable ? total : stop_gradient(total));
  }
}

void CaptureRecording::finish(const std::vector<Var>& results) {
  for (size_t k = 0; k < results.size(); ++k) root_->add_output(in_root(results[k]).id(), fmt::format("result{}", k));
  for (const CapturedWrite& write : writes()) {
    if (!write.value.is_valid()) continue;
    root_->add_output(write.value.id(), fmt::format("write{}", root_->outputs().size() - results.size()));
  }
}

std::vector<CapturedWrite> CaptureRecording::writes() const {
  std::vector<CapturedWrite> writes;
  for (const auto& here : known_) {
    if (here->is_assigned) writes.push_back({here->value, false, here->now});
    if (here->sets_gradient) writes.push_back({here->value, true, here->gradient});
  }
  return writes;
}

}  // namespace autograph
