// Control flow on eager values and on values of graphs.
#include <functional>
#include <string_view>

#include "autograph/capture.h"
#include "autograph/ops/control.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "eager/in_graph.h"
#include "graph/nested/body_scope.h"

namespace autograph {
namespace {

constexpr std::string_view kWhere = "control flow";

Var one_bool(const Var& condition) {
  AG_CHECK_USER(condition.is_valid() && condition.type().is_tensor() && condition.dtype() == DType::boolean, TypeError,
                "[control flow] condition: expected bool, got {}",
                condition.is_valid() ? to_string(condition.type()) : "nothing");
  const auto count = condition.shape().num_elements();
  AG_CHECK_USER(!count || *count == 1, ShapeError, "[control flow] condition: expected one bool, got {}",
                to_string(condition.type()));
  return condition.shape() == Shape{} ? condition : reshape(condition, std::vector<int64_t>{});
}

Type slice_type(const Var& scanned) {
  const Shape& shape = scanned.shape();
  AG_CHECK_USER(shape.has_rank() && shape.rank() > 0, ShapeError,
                "[scan] scanned: expected tensors of rank 1 or more, got {}", to_string(scanned.type()));
  return {scanned.dtype(), Shape(std::vector<Dim>(shape.dims().begin() + 1, shape.dims().end()))};
}

int64_t num_slices(const std::vector<Var>& scanned) {
  for (const Var& value : scanned) {
    slice_type(value);
    AG_CHECK_USER(value.dim(0) == scanned[0].dim(0), ShapeError,
                  "[scan] scanned: expected equal extents of the first axis, got {} and {}",
                  to_string(scanned[0].type()), to_string(value.type()));
  }
  return scanned[0].dim(0);
}

// What a step keeps is known when it has run once, or from a graph of it.
std::vector<Var> scan_nothing(const std::vector<Var>& first, const std::vector<Var>& scanned, const ScanStep& step) {
  std::vector<Var> all = first;
  all.insert(all.end(), scanned.begin(), scanned.end());
  const auto middle = static_cast<std::ptrdiff_t>(first.size());
  return capture([&](const std::vector<Var>& given) {
    return scan({given.begin(), given.begin() + middle}, {given.begin() + middle, given.end()}, step);
  })(all);
}

// What each turn takes of a value, from one node: the gradient is put together once, not padded for each turn.
std::vector<Var> slices_of(const Var& scanned, int64_t turns) {
  std::vector<Var> slices = split(scanned, std::vector<int64_t>(static_cast<size_t>(turns), 1), 0);
  for (Var& slice : slices) slice = squeeze(slice, {0});
  return slices;
}

std::vector<Var> scan_eagerly(const std::vector<Var>& first, const std::vector<Var>& scanned, const ScanStep& step) {
  AG_CHECK_USER(!scanned.empty(), ValueError, "[scan] scanned: expected at least one");
  const int64_t turns = num_slices(scanned);
  if (turns == 0) return scan_nothing(first, scanned, step);
  std::vector<Var> states = first;
  std::vector<std::vector<Var>> kept, by_value;
  for (const Var& value : scanned) by_value.push_back(slices_of(value, turns));
  for (int64_t turn = 0; turn < turns; ++turn) {
    std::vector<Var> slices;
    for (const std::vector<Var>& of_value : by_value) slices.push_back(of_value[static_cast<size_t>(turn)]);
    std::vector<Var> results = step(states, slices);
    AG_CHECK_USER(results.size() >= states.size(), ValueError, "[scan] step: expected {} states or more, got {}",
                  states.size(), results.size());
    kept.resize(results.size() - states.size());
    for (size_t k = 0; k < kept.size(); ++k) kept[k].push_back(unsqueeze(results[states.size() + k], {0}));
    results.resize(states.size());
    states = std::move(results);
  }
  for (const std::vector<Var>& parts : kept) states.push_back(concat(parts, 0));
  return states;
}

}  // namespace

std::vector<Var> cond(const Var& condition, const std::function<std::vector<Var>()>& then,
                      const std::function<std::vector<Var>()>& otherwise) {
  Graph* graph = graph_of({condition});
  if (!graph) return is_true(one_bool(condition)) ? then() : otherwise();
  Graph then_graph("then"), other_graph("otherwise");
  std::vector<Var> captured;
  {
    BodyScope scope(then_graph, *graph);
    add_outputs(then_graph, then(), kWhere);
    captured = scope.captured();
  }
  // Both take the same values: first those that the one uses, then those that only the other does.
  const size_t shared = captured.size();
  {
    BodyScope scope(other_graph, *graph);
    for (const Var& value : captured) scope.bring_in(value);
    add_outputs(other_graph, otherwise(), kWhere);
    captured = scope.captured();
  }
  for (size_t k = shared; k < captured.size(); ++k) then_graph.add_input(captured[k].type());
  AG_CHECK_USER(then_graph.outputs().size() == other_graph.outputs().size(), ValueError,
                "[cond] results: expected equally many, got {} and {}", then_graph.outputs().size(),
                other_graph.outputs().size());
  return if_else(one_bool(in_graph(condition, *graph, kWhere)), then_graph, other_graph, captured);
}

std::vector<Var> while_loop(const std::vector<Var>& states, const std::function<Var(const std::vector<Var>&)>& goes_on,
                            const std::function<std::vector<Var>(const std::vector<Var>&)>& body, int64_t max_turns) {
  AG_CHECK_USER(!states.empty(), ValueError, "[while_loop] states: expected at least one");
  Graph* graph = graph_of(states);
  std::vector<Var> now = states;
  if (!graph) {
    for (int64_t turn = 0; (max_turns < 0 || turn < max_turns) && is_true(one_bool(goes_on(now))); ++turn) {
      now = body(now);
      AG_CHECK_USER(now.size() == states.size(), ValueError, "[while_loop] body: expected {} states, got {}",
                    states.size(), now.size());
    }
    return now;
  }
  now = in_graph(states, *graph, kWhere);
  const Var begins = one_bool(in_graph(goes_on(now), *graph, kWhere));
  Graph turn("turn");
  turn.add_input(Type(DType::i64, Shape{}));
  turn.add_input(Type(DType::boolean, Shape{}));
  const std::vector<Var> inside = add_inputs(turn, now);
  std::vector<Var> captured;
  {
    BodyScope scope(turn, *graph);
    const std::vector<Var> next = in_graph(body(inside), turn, kWhere);
    AG_CHECK_USER(next.size() == states.size(), ValueError, "[while_loop] body: expected {} states, got {}",
                  states.size(), next.size());
    turn.add_output(one_bool(in_graph(goes_on(next), turn, kWhere)).id());
    for (const Var& value : next) turn.add_output(value.id());
    captured = scope.captured();
  }
  const Var limit = max_turns < 0 ? Var() : constant(*graph, Tensor::scalar(max_turns));
  return loop(limit, begins, now, turn, captured);
}

std::vector<Var> scan(const std::vector<Var>& states, const std::vector<Var>& scanned, const ScanStep& step) {
  std::vector<Var> all = states;
  all.insert(all.end(), scanned.begin(), scanned.end());
  Graph* graph = graph_of(all);
  if (!graph) return scan_eagerly(states, scanned, step);
  AG_CHECK_USER(!scanned.empty(), ValueError, "[scan] scanned: expected at least one");
  const std::vector<Var> first = in_graph(states, *graph, kWhere), taken = in_graph(scanned, *graph, kWhere);
  Graph body("step");
  const std::vector<Var> inside = add_inputs(body, first);
  std::vector<Var> slices, captured;
  for (const Var& value : taken) slices.emplace_back(body, body.add_input(slice_type(value)));
  {
    BodyScope scope(body, *graph);
    const std::vector<Var> results = step(inside, slices);
    AG_CHECK_USER(results.size() >= states.size(), ValueError, "[scan] step: expected {} states or more, got {}",
                  states.size(), results.size());
    add_outputs(body, results, kWhere);
    captured = scope.captured();
  }
  return scan(first, taken, body, captured);
}

}  // namespace autograph
