#include "ops/control/control_vjp.h"

#include <algorithm>

#include <fmt/core.h>

#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/sequence.h"
#include "autograph/ops/shape.h"
#include "autograph/verify.h"
#include "graph/nested/inline_graph.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sequence/sequence_vjp.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

bool is_float(const Type& type) { return type.is_tensor() && dtypes::kFloat.contains(type.dtype()); }

Type without_axis(const Type& type, int64_t axis) {
  if (!type.shape().has_rank()) return Type(type.dtype(), Shape::unknown());
  std::vector<Dim> dims = type.shape().dims();
  dims.erase(dims.begin() + front_axis(axis, type.shape().rank()));
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
  std::vector<bool> wanted, given;    // of the inputs and outputs of the body
  std::vector<Var> states;            // before the first step: those that are tensors
  std::vector<size_t> state_outputs;  // of the node, and their places among its states
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
      carried_.push_back(zeros_of(forward_.captured[k]));
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
      body_.add_output(sum_of_gradients(Var(body_, of_captured_[k]), Var(body_, captured[k])).id());
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

// What each step had for a state is stacked, which lists are not.
void refuse_lists(VjpContext& c, size_t num_states) {
  for (size_t slot = 0; slot < num_states; ++slot) {
    if (!c.in(slot).type().is_tensor()) {
      c.unsupported(fmt::format("state {} is {}, but what each step had is stacked, which only tensors can be", slot,
                                to_string(c.in(slot).type())));
    }
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
std::vector<Var> last_gradients(VjpContext& c, const Repetition& forward) {
  std::vector<Var> gradients;
  for (size_t k = 0; k < forward.states.size(); ++k) {
    const size_t output = forward.state_outputs[k];
    const bool flows = is_float(forward.states[k].type());
    gradients.push_back(!flows ? Var() : c.has_gy(output) ? c.gy(output) : filled_like(forward.states[k], 0));
  }
  return gradients;
}

// The first of `num_states` states is input `first_slot` of the node.
void set_gradients(VjpContext& c, const Repetition& forward, const RepetitionGradients& gradients, size_t first_slot,
                   size_t num_states) {
  size_t next = 0;
  for (size_t k = 0; k < forward.states.size(); ++k) {
    if (is_float(forward.states[k].type())) c.set(first_slot + forward.state_outputs[k], gradients.states[next++]);
  }
  next = 0;
  size_t slot = first_slot + num_states;
  for (size_t k = 0; k < forward.slices.size(); ++k, ++slot) {
    if (c.wants(slot)) c.set(slot, gradients.slices[next++]);
  }
  next = 0;
  for (size_t k = 0; k < forward.captured.size(); ++k, ++slot) {
    if (c.wants(slot)) c.set(slot, gradients.captured[next++]);
  }
}

// A list that a loop carries and that each turn adds one tensor to: these tensors are a scan output by another name.
struct GrowingList {
  size_t state = 0;
  Var flowing;  // into the list behind the last turn
};

void refuse_list(VjpContext& c, size_t state) {
  c.unsupported(
      fmt::format("state {} is {}; a list has a gradient where each turn adds one tensor to its end and does "
                  "nothing else with it",
                  state, to_string(c.in(2 + state).type())));
}

// What a turn adds to the list that is `before` it and `after` it; invalid where it does anything else.
ValueId added_tensor(const Graph& body, ValueId before, ValueId after) {
  const NodeId producer = body.value(after).producer();
  if (!producer.is_valid() || body.value(before).uses().size() != 1) return {};
  const Node& node = body.node(producer);
  const bool adds = &node.op() == &sequence_insert_def() && node.input(0) == before && !node.input(2).is_valid();
  return adds ? node.input(1) : ValueId{};
}

// The body of a loop without its lists, whose additions are further outputs.
Graph without_lists(VjpContext& c, const Graph& body, const std::vector<GrowingList>& lists) {
  const auto is_list = [&](size_t state) {
    return std::any_of(lists.begin(), lists.end(), [&](const GrowingList& list) { return list.state == state; });
  };
  Graph plain(body.name());
  std::vector<ValueId> arguments;
  for (size_t i = 0; i < body.inputs().size(); ++i) {
    const Type& type = body.type(body.inputs()[i]);
    const bool is_carried = i >= 2 && is_list(i - 2);
    if (is_carried && (!type.is_sequence() || !type.element().is_tensor())) refuse_list(c, i - 2);
    arguments.push_back(is_carried ? sequence_empty(plain, type.element().dtype()).id() : plain.add_input(type));
  }
  const std::vector<ValueId> results = inline_graph(plain, body, arguments);
  for (size_t k = 0; k < results.size(); ++k) {
    if (k == 0 || !is_list(k - 1)) plain.add_output(results[k]);
  }
  for (const GrowingList& list : lists) {
    const ValueId added = added_tensor(plain, arguments[2 + list.state], results[1 + list.state]);
    if (!added.is_valid()) refuse_list(c, list.state);
    plain.add_output(added);
  }
  return plain;
}

// What flows into the tensors that `turns` turns have added to a list, stacked.
Var stacked_additions(const Var& flowing, const Var& turns) {
  const Var first = sequence_length(flowing) - turns;
  const Var rows = concat_from_sequence(flowing, 0, true);
  const auto as_list = [](const Var& x) { return reshape(x, std::vector<int64_t>{1}); };
  return apply(slice_def(),
               {rows, as_list(first), as_list(sequence_length(flowing)), constant_like(flowing, Tensor::vector({0}))});
}

// A list without its last `turns` elements.
Var without_additions(const Var& list, const Var& turns) {
  Graph body("drop");
  body.add_input(Type(DType::i64, {}));
  const ValueId condition = body.add_input(Type(DType::boolean, {}));
  const Var inner(body, body.add_input(list.type()));
  body.add_output(condition);
  body.add_output(sequence_erase(inner).id());
  return loop(turns, {}, {list}, body, {})[0];
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
  const Attributes& attributes = c.attributes();
  if (attributes.flag("batched") || attributes.flag("has_sequence_lens")) {
    c.unsupported("its rule is for scans as they are since opset 9");
  }
  const auto scans = static_cast<size_t>(attributes.integer("num_scan_inputs"));
  const auto captures = static_cast<size_t>(attributes.integer("num_captures"));
  const size_t states = c.num_inputs() - captures - scans, scan_outputs = c.num_outputs() - states;
  refuse_lists(c, states);
  Repetition forward;
  for (size_t slot = 0; slot < c.num_inputs(); ++slot) {
    const bool is_state = slot < states;
    forward.wanted.push_back(is_state ? is_float(c.in(slot).type()) : c.wants(slot));
    if (is_state) {
      forward.state_outputs.push_back(forward.states.size());
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
  forward.last = last_gradients(c, forward);
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
  set_gradients(c, forward, BackwardScan(forward, gradient).build(), 0, states);
}

void loop_vjp(VjpContext& c) {
  const auto captures = static_cast<size_t>(c.attributes().integer("num_captures"));
  const size_t states = c.num_inputs() - captures - 2;
  Repetition forward;
  std::vector<GrowingList> lists;
  std::vector<Type> types{Type(DType::i64, Shape()), Type(DType::boolean, Shape())};
  forward.wanted = {false, false};
  forward.given = {false};
  for (size_t slot = 2; slot < c.num_inputs(); ++slot) {
    types.push_back(c.in(slot).type());
    const size_t state = slot - 2;
    if (state < states && !types.back().is_tensor()) {
      lists.push_back({state, c.has_gy(state) ? c.gy(state) : Var()});
      continue;
    }
    const bool is_state = state < states;
    forward.wanted.push_back(is_state ? is_float(c.in(slot).type()) : c.wants(slot));
    if (is_state) forward.state_outputs.push_back(state);
    (is_state ? forward.states : forward.captured).push_back(c.in(slot));
  }
  const Graph body = with_types(*c.attributes().get<GraphRef>("body"), types);
  const Graph plain = without_lists(c, body, lists);
  refuse_growing(c, plain, forward.states, 1);
  for (const Var& state : forward.states) forward.given.push_back(is_float(state.type()));
  for (size_t k = states; k < c.num_outputs(); ++k) {
    forward.given.push_back(c.has_gy(k));
    if (c.has_gy(k)) forward.flowing.push_back({c.gy(k)});
  }
  forward.last = last_gradients(c, forward);
  std::vector<ValueId> inputs{body.inputs()[0]};
  for (const size_t state : forward.state_outputs) inputs.push_back(body.inputs()[2 + state]);
  const std::vector<Var> outputs = run_again(c, body, inputs, c.attributes());
  forward.turns.push_back({outputs[c.num_outputs()]});
  for (size_t k = 0; k < forward.states.size(); ++k) forward.saved.push_back({outputs[c.num_outputs() + 1 + k]});
  for (const GrowingList& list : lists) {
    const Var turns = size(forward.turns[0].value);
    forward.given.push_back(list.flowing.is_valid());
    if (list.flowing.is_valid()) forward.flowing.push_back({stacked_additions(list.flowing, turns)});
    if (c.wants(2 + list.state)) {
      c.set(2 + list.state,
            list.flowing.is_valid() ? without_additions(list.flowing, turns) : zeros_of(c.in(2 + list.state)));
    }
  }
  const Graph gradient = c.vjp_of(plain, forward.wanted, forward.given);
  set_gradients(c, forward, BackwardScan(forward, gradient).build(), 2, states);
}

}  // namespace autograph
