#include "ops/sequence/sequence_vjp.h"

#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/sequence.h"
#include "autograph/ops/shape.h"
#include "graph/nested/inline_graph.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

bool is_float(const Type& type) { return type.is_tensor() && dtypes::kFloat.contains(type.dtype()); }

// A position counted from the front, i64; where none is given, `end`.
Var position_of(const Var& position, const Var& length, const Var& end) {
  if (!position.is_valid()) return end;
  const Var at = reshape(cast(position, DType::i64), std::vector<int64_t>{});
  return where(less(at, scalar_like(at, 0)), at + length, at);
}

Var given(VjpContext& c, size_t slot) { return c.has_input(slot) ? c.in(slot) : Var(); }

}  // namespace

Var zeros_of(const Var& x) {
  if (x.type().is_tensor()) return filled_like(x, 0);
  if (x.type().is_optional()) return optional_of(zeros_of(optional_get_element(x)));
  Graph body("zeros");
  const Var element(body, body.add_input(x.type().element()));
  body.add_output(filled_like(element, 0).id());
  return sequence_map(x, {}, body)[0];
}

Var sum_of_gradients(const Var& a, const Var& b) {
  if (a.type().is_tensor()) return a + b;
  if (a.type().is_optional()) return optional_of(sum_of_gradients(optional_get_element(a), optional_get_element(b)));
  Graph body("add");
  const Var x(body, body.add_input(a.type().element())), y(body, body.add_input(b.type().element()));
  body.add_output((x + y).id());
  return sequence_map(a, {b}, body)[0];
}

void sequence_construct_vjp(VjpContext& c) {
  for (size_t slot = 0; slot < c.num_inputs(); ++slot) {
    if (!c.wants(slot)) continue;
    const Var at = constant_like(c.in(slot), Tensor::scalar(static_cast<int64_t>(slot)));
    c.set(slot, reshape_as(sequence_at(c.gy(0), at), c.in(slot)));
  }
}

void sequence_at_vjp(VjpContext& c) {
  const Var sequence = c.in(0), length = sequence_length(sequence);
  const Var at = position_of(c.in(1), length, {});
  c.set(0, sequence_insert(sequence_erase(zeros_of(sequence), at), c.gy(0), at));
}

void sequence_insert_vjp(VjpContext& c) {
  const Var length = sequence_length(c.in(0));
  const Var at = position_of(given(c, 2), length, length);
  if (c.wants(0)) c.set(0, sequence_erase(c.gy(0), at));
  if (c.wants(1)) c.set(1, reshape_as(sequence_at(c.gy(0), at), c.in(1)));
}

void sequence_erase_vjp(VjpContext& c) {
  const Var length = sequence_length(c.in(0));
  const Var at = position_of(given(c, 1), length, length - 1);
  c.set(0, sequence_insert(c.gy(0), filled_like(sequence_at(c.in(0), at), 0), at));
}

void split_to_sequence_vjp(VjpContext& c) {
  const bool drops_axis = !c.has_input(1) && !c.attributes().flag("keepdims");
  c.set(0, reshape_as(concat_from_sequence(c.gy(0), c.attributes().integer("axis"), drops_axis), c.in(0)));
}

void concat_from_sequence_vjp(VjpContext& c) {
  const int64_t axis = c.attributes().integer("axis");
  if (c.attributes().flag("new_axis")) return c.set(0, split_to_sequence(c.gy(0), {}, axis, false));
  Graph body("extent");
  const Var element(body, body.add_input(c.in(0).type().element()));
  body.add_output(gather(shape(element), constant(body, Tensor::vector({axis})), 0).id());
  const Var sizes = concat_from_sequence(sequence_map(c.in(0), {}, body)[0], 0);
  c.set(0, split_to_sequence(c.gy(0), sizes, axis));
}

// The body's gradient on each element. What every call reads whole gets the sum of what flows from all of them.
void sequence_map_vjp(VjpContext& c) {
  const size_t captures = static_cast<size_t>(c.attributes().integer("num_captures"));
  const size_t formal = c.num_inputs() - captures;
  std::vector<bool> wanted, flows;
  std::vector<Var> others, captured;
  for (size_t slot = 0; slot < c.num_inputs(); ++slot) {
    wanted.push_back(c.wants(slot));
    if (slot > 0) (slot < formal ? others : captured).push_back(c.in(slot));
  }
  for (size_t k = 0; k < c.num_outputs(); ++k) {
    flows.push_back(c.has_gy(k));
    if (c.has_gy(k)) others.push_back(c.gy(k));
  }
  const auto is_mapped = [&](size_t slot) { return slot < formal && c.in(slot).type().is_sequence(); };
  const Graph gradient = c.vjp_of(*c.attributes().get<GraphRef>("body"), wanted, flows);
  // Its inputs are in another order: captured values come last.
  Graph body("gradient");
  std::vector<ValueId> inputs(gradient.inputs().size());
  const size_t flowing = gradient.inputs().size() - c.num_inputs();
  const auto add = [&](size_t at) { inputs[at] = body.add_input(gradient.type(gradient.inputs()[at])); };
  for (size_t at = 0; at < formal; ++at) add(at);
  for (size_t at = 0; at < flowing; ++at) add(c.num_inputs() + at);
  for (size_t at = formal; at < c.num_inputs(); ++at) add(at);
  for (const ValueId output : inline_graph(body, gradient, inputs)) body.add_output(output);
  const std::vector<Var> results = sequence_map(c.in(0), others, body, captured);
  size_t next = 0;
  for (size_t slot = 0; slot < c.num_inputs(); ++slot) {
    if (!c.wants(slot)) continue;
    const Var& result = results[next++];
    if (is_mapped(slot)) {
      c.set(slot, result);
    } else {
      if (!is_float(c.in(slot).type())) c.unsupported("its rule is for sequences and tensors");
      // With a zero among them: a list of no elements gives no gradients.
      const Var terms = sequence_insert(result, filled_like(c.in(slot), 0));
      c.set(slot, reshape_as(reduce_sum(concat_from_sequence(terms, 0, true), {0}, false), c.in(slot)));
    }
  }
}

}  // namespace autograph
