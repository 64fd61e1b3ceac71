#include "ops/control/control_vjp.h"

#include <algorithm>

#include <fmt/core.h>

#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/verify.h"
#include "graph/nested/inline_graph.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

bool is_float(const Type& type) { return type.is_tensor() && dtypes::kFloat.contains(type.dtype()); }

Type without_axis(const Type& type, int64_t axis) {
  if (!type.shape().has_rank()) return Type(type.dtype(), Shape::unknown());
  std::vector<Dim> dims = type.shape().dims();
  dims.erase(dims.begin() + (axis < 0 ? axis + type.shape().rank() : axis));
  return Type(type.dtype(), Shape(std::move(dims)));
}

// Something that is scanned: along which axis, and from the last step on?
struct Scanned {
  Var value;
  int64_t axis = 0;
  int64_t direction = 0;
};

// A repeated body as its gradient sees it.
struct Repetition {
  std::vector<bool> wanted, given;  // of the inputs and outputs of the body
  std::vector<Var> states;          // before the first step
  std::vector<Var> captured;
  std::vector<Scanned> saved;    // what each step had for its states
  std::vector<Scanned> slices;   // of scan inputs
  std::vector<Scanned> turns;    // numbers of the turns; of a loop
  std::vector<Scanned> flowing;  // gradients of those scan outputs that have some
  std::vector<Var> last;         // gradients of the states behind the last step
};

// Gradients of the states before the first step, of the captured values and of the scan inputs, where wanted.
struct RepetitionGradients {
  std::vector<Var> states, captured, slices;
};

// The body of the backward scan: (gradients of states and captured values so far; what the step had; captured) ->
// (gradients of states and captured values; gradients of slices).
class BackwardScan {
 public:
  BackwardScan(const Repetition& forward, const Graph& gradient) : forward_(forward), gradient_(gradient) {}

  RepetitionGradients build() {
    const size_t first_state = forward_.turns.empty() ? 0 : 2;
    const size_t first_slice = first_state + forward_.states.size();
    const size_t first_captured = first_slice + forward_.slices.size();
    add_carried(first_captured);
    add_scanned();
    const std::vector<ValueId> results = inline_graph(body_, gradient_, arguments());
    add_results(results, first_slice, first_captured);
    return run(first_slice, first_captured);
  }

 private:
  void add_carried(size_t first_captured) {
    for (size_t k = 0; k < forward_.states.size(); ++k) {
      if (!is_float(forward_.states[k].type())) continue;
      carried_.push_back(forward_.last[k]);
      of_state_.push_back(body_.add_input(forward_.states[k].type()));
    }
    for (size_t k = 0; k < forward_.captured.size(); ++k) {
      if (!forward_.wanted[first_captured + k]) continue;
      carried_.push_back(filled_like(forward_.captured[k], 0));
      of_captured_.push_back(body_.add_input(forward_.captured[k].type()));
    }
  }

  void add_scanned() {
    for (const auto* list : {&forward_.turns, &forward_.saved, &forward_.slices, &forward_.flowing}) {
      std::vector<ValueId>& ids = list == &forward_.turns    ? turn_
                                  : list == &forward_.saved  ? state_
                                  : list == &forward_.slices ? slice_
                                                             : flowing_;
      for (const Scanned& scanned : *list) {
        ids.push_back(body_.add_input(without_axis(scanned.value.type(), scanned.axis)));
        scanned_.push_back(scanned.value);
        axes_.push_back(scanned.axis);
        directions_.push_back(1 - scanned.direction);
      }
    }
    for (const Var& value : forward_.captured) captured_.push_back(body_.add_input(value.type()));
  }

  // In the order of the gradient's inputs: those of the body, then the gradients that flow into its outputs.
  std::vector<ValueId> arguments() {
    std::vector<ValueId> ids = turn_;
    if (!turn_.empty()) ids.push_back(body_.add_constant(Tensor::scalar(true)));
    for (const auto* list : {&state_, &slice_, &captured_, &of_state_, &flowing_}) {
      ids.insert(ids.end(), list->begin(), list->end());
    }
    return ids;
  }

  void add_results(const std::vector<ValueId>& results, size_t first_slice, size_t first_captured) {
    size_t next = of_state_.size();
    std::vector<ValueId> slices, captured;
    for (size_t k = first_slice; k < forward_.wanted.size(); ++k) {
      if (forward_.wanted[k]) (k < first_captured ? slices : captured).push_back(results[next++]);
    }
    for (size_t k = 0; k < of_state_.size(); ++k) body_.add_output(results[k]);
    for (size_t k = 0; k < captured.size(); ++k) {
      body_.add_output((Var(body_, of_captured_[k]) + Var(body_, captured[k])).id());
    }
    for (const ValueId slice : slices) body_.add_output(slice);
  }

  RepetitionGradients run(size_t first_slice, size_t first_captured) {
    std::vector<int64_t> output_axes, output_directions;
    for (size_t k = first_slice; k < first_captured; ++k) {
      if (!forward_.wanted[k]) continue;
      output_axes.push_back(forward_.slices[k - first_slice].axis);
      output_directions.push_back(1 - forward_.slices[k - first_slice].direction);
    }
    Attributes attributes{{"scan_input_axes", axes_}, {"scan_input_directions", directions_}};
    if (!output_axes.empty()) {
      attributes.set("scan_output_axes", output_axes);
      attributes.set("scan_output_directions", output_directions);
    }
    const std::vector<Var> outputs = scan(carried_, scanned_, body_, forward_.captured, attributes);
    RepetitionGradients gradients;
    const auto states = outputs.begin() + std::ssize(of_state_), captured = states + std::ssize(of_captured_);
    gradients.states.assign(outputs.begin(), states);
    gradients.captured.assign(states, captured);
    gradients.slices.assign(captured, outputs.end());
    return gradients;
  }

  const Repetition& forward_;
  const Graph& gradient_;
  Graph body_{"backward"};
  std::vector<Var> carried_, scanned_;
  std::vector<int64_t> axes_, directions_;
  std::vector<ValueId> of_state_, of_captured_, turn_, state_, slice_, flowing_, captured_;
};

int64_t listed(const Attributes& attributes, std::string_view name, size_t k) {
  const auto* list = attributes.find_as<std::vector<int64_t>>(name);
  return list && k < list->size() ? (*list)[k] : 0;
}

// `name` with `more` zeros behind its first `count` entries.
void extend_list(Attributes& attributes, std::string_view name, size_t count, size_t more) {
  std::vector<int64_t> list;
  for (size_t k = 0; k < count; ++k) list.push_back(listed(attributes, name, k));
  list.resize(count + more, 0);
  attributes.set(name, list);
}

// The node again with a body that gives more outputs; readers of the node read the new one.
std::vector<Var> run_again(VjpContext& c, Graph body, const std::vector<ValueId>& more, Attributes attributes) {
  for (const ValueId id : more) body.add_output(id);
  attributes.set("body", std::make_shared<const Graph>(std::move(body)));
  std::vector<Var> inputs;
  for (size_t slot = 0; slot < c.num_inputs(); ++slot) inputs.push_back(c.in(slot));
  std::vector<Var> outputs = apply_all(c.op(), inputs, attributes, static_cast<int>(c.num_outputs() + more.size()));
  for (size_t k = 0; k < c.num_outputs(); ++k) {
    if (!c.out(k).is_eager()) c.graph().replace_uses(c.out(k).id(), outputs[k].id());
  }
  return outputs;
}

// What each step had is stacked, and what flows back is added up from zeros.
void refuse_lists(VjpContext& c) {
  for (size_t slot = 0; slot < c.num_inputs(); ++slot) {
    if (c.wants(slot) && !c.in(slot).type().is_tensor())
      c.unsupported("its rule is for tensors, not for lists of them");
  }
}

// The body with the types that its inputs have in this call: where it states none itself, its rules need them.
Graph with_types(const Graph& body, const std::vector<Type>& inputs) {
  Graph typed = body;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const ValueId input = typed.inputs()[k];
    const bool tells_more = inputs[k].is_tensor() && inputs[k].shape().has_rank();
    if (tells_more && typed.type(input).is_tensor() && !typed.type(input).is_static()) typed.set_type(input, inputs[k]);
  }
  infer_types(typed);
  return typed;
}

bool may_be_same(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return true;
  if (a.rank() != b.rank()) return false;
  for (int64_t axis = 0; axis < a.rank(); ++axis) {
    if (a[axis].is_known() && b[axis].is_known() && a[axis] != b[axis]) return false;
  }
  return true;
}

// What each step had is stacked: states keep their shapes. Those of the body's outputs come from `first` on.
void refuse_growing(VjpContext& c, const Graph& typed, const std::vector<Var>& states, size_t first) {
  for (size_t k = 0; k < states.size(); ++k) {
    const Type& before = states[k].type();
    const Type& after = typed.type(typed.outputs()[first + k]);
    if (!before.is_tensor() || !after.is_tensor() || may_be_same(before.shape(), after.shape())) continue;
    c.unsupported(
        fmt::format("its rule is for states that keep their shape, but state {} is {} before a step and {} "
                    "behind it",
                    k, to_string(before), to_string(after)));
  }
}

// The gradients of states behind the last step.
std::vector<Var> last_gradients(VjpContext& c, const std::vector<Var>& states) {
  std::vector<Var> gradients;
  for (size_t k = 0; k < states.size(); ++k) {
    const bool flows = is_float(states[k].type());
    gradients.push_back(!flows ? Var() : c.has_gy(k) ? c.gy(k) : filled_like(states[k], 0));
  }
  return gradients;
}

void set_gradients(VjpContext& c, const Repetition& forward, const RepetitionGradients& gradients, size_t first_slot) {
  size_t next = 0, slot = first_slot;
  for (const Var& state : forward.states) {
    if (is_float(state.type())) c.set(slot, gradients.states[next++]);
    ++slot;
  }
  next = 0;
  for (size_t k = 0; k < forward.slices.size(); ++k, ++slot) {
    if (c.wants(slot)) c.set(slot, gradients.slices[next++]);
  }
  next = 0;
  for (size_t k = 0; k < forward.captured.size(); ++k, ++slot) {
    if (c.wants(slot)) c.set(slot, gradients.captured[next++]);
  }
}

}  // namespace

void if_vjp(VjpContext& c) {
  std::vector<bool> wanted, given;
  std::vector<Var> captured;
  for (size_t slot = 1; slot < c.num_inputs(); ++slot) {
    wanted.push_back(c.wants(slot));
    captured.push_back(c.in(slot));
  }
  for (size_t k = 0; k < c.num_outputs(); ++k) {
    given.push_back(c.has_gy(k));
    if (c.has_gy(k)) captured.push_back(c.gy(k));
  }
  const auto branch = [&](std::string_view name) {
    return c.vjp_of(*c.attributes().get<GraphRef>(name), wanted, given);
  };
  const std::vector<Var> gradients = if_else(c.in(0), branch("then_branch"), branch("else_branch"), captured);
  size_t next = 0;
  for (size_t slot = 1; slot < c.num_inputs(); ++slot) {
    if (c.wants(slot)) c.set(slot, gradients[next++]);
  }
}

void scan_vjp(VjpContext& c) {
  refuse_lists(c);
  const Attributes& attributes = c.attributes();
  if (attributes.flag("batched") || attributes.flag("has_sequence_lens")) {
    c.unsupported("its rule is for scans as they are since opset 9");
  }
  const auto scans = static_cast<size_t>(attributes.integer("num_scan_inputs"));
  const auto captures = static_cast<size_t>(attributes.integer("num_captures"));
  const size_t states = c.num_inputs() - captures - scans, scan_outputs = c.num_outputs() - states;
  Repetition forward;
  for (size_t slot = 0; slot < c.num_inputs(); ++slot) {
    const bool is_state = slot < states;
    forward.wanted.push_back(is_state ? is_float(c.in(slot).type()) : c.wants(slot));
    if (is_state) {
      forward.states.push_back(c.in(slot));
    } else if (slot < states + scans) {
      forward.slices.push_back({c.in(slot), listed(attributes, "scan_input_axes", slot - states),
                                listed(attributes, "scan_input_directions", slot - states)});
    } else {
      forward.captured.push_back(c.in(slot));
    }
  }
  for (size_t k = 0; k < c.num_outputs(); ++k) {
    forward.given.push_back(k < states ? is_float(forward.states[k].type()) : c.has_gy(k));
    if (k < states || !c.has_gy(k)) continue;
    forward.flowing.push_back({c.gy(k), listed(attributes, "scan_output_axes", k - states),
                               listed(attributes, "scan_output_directions", k - states)});
  }
  forward.last = last_gradients(c, forward.states);
  std::vector<Type> types;
  for (const Var& state : forward.states) types.push_back(state.type());
  for (const Scanned& slice : forward.slices) types.push_back(without_axis(slice.value.type(), slice.axis));
  for (const Var& value : forward.captured) types.push_back(value.type());
  const Graph body = with_types(*attributes.get<GraphRef>("body"), types);
  refuse_growing(c, body, forward.states, 0);
  Attributes extended = attributes;
  extend_list(extended, "scan_output_axes", scan_outputs, states);
  extend_list(extended, "scan_output_directions", scan_outputs, states);
  const std::vector<ValueId> inputs(body.inputs().begin(), body.inputs().begin() + static_cast<int64_t>(states));
  const std::vector<Var> outputs = run_again(c, body, inputs, extended);
  for (size_t k = 0; k < states; ++k) forward.saved.push_back({outputs[c.num_outputs() + k]});
  const Graph gradient = c.vjp_of(body, forward.wanted, forward.given);
  set_gradients(c, forward, BackwardScan(forward, gradient).build(), 0);
}

void loop_vjp(VjpContext& c) {
  refuse_lists(c);
  const auto captures = static_cast<size_t>(c.attributes().integer("num_captures"));
  const size_t states = c.num_inputs() - captures - 2;
  Repetition forward;
  forward.wanted = {false, false};
  forward.given = {false};
  for (size_t slot = 2; slot < c.num_inputs(); ++slot) {
    const bool is_state = slot < 2 + states;
    forward.wanted.push_back(is_state ? is_float(c.in(slot).type()) : c.wants(slot));
    (is_state ? forward.states : forward.captured).push_back(c.in(slot));
  }
  for (size_t k = 0; k < c.num_outputs(); ++k) {
    forward.given.push_back(k < states ? is_float(forward.states[k].type()) : c.has_gy(k));
    if (k >= states && c.has_gy(k)) forward.flowing.push_back({c.gy(k)});
  }
  forward.last = last_gradients(c, forward.states);
  std::vector<Type> types{Type(DType::i64, Shape()), Type(DType::boolean, Shape())};
  for (const auto* list : {&forward.states, &forward.captured}) {
    for (const Var& value : *list) types.push_back(value.type());
  }
  const Graph body = with_types(*c.attributes().get<GraphRef>("body"), types);
  refuse_growing(c, body, forward.states, 1);
  std::vector<ValueId> inputs{body.inputs()[0]};
  for (size_t k = 0; k < states; ++k) inputs.push_back(body.inputs()[2 + k]);
  const std::vector<Var> outputs = run_again(c, body, inputs, c.attributes());
  forward.turns.push_back({outputs[c.num_outputs()]});
  for (size_t k = 0; k < states; ++k) forward.saved.push_back({outputs[c.num_outputs() + 1 + k]});
  const Graph gradient = c.vjp_of(body, forward.wanted, forward.given);
  set_gradients(c, forward, BackwardScan(forward, gradient).build(), 2);
}

}  // namespace autograph
