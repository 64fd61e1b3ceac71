// Gradients that a program says itself: functions in place of rules, and hooks. On the tape they are called whenever a
// gradient flows; in graphs they are called once, and what they compute is a nested graph.
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "base/check.h"
#include "eager/in_graph.h"
#include "eager/modes.h"
#include "eager/tape/tape.h"
#include "graph/nested/body_scope.h"

namespace autograph {
namespace {

constexpr std::string_view kFunction = "with_gradient";
constexpr std::string_view kHook = "on_gradient";

std::vector<Var> with_gradient_in(Graph& graph, const std::vector<Var>& results, const std::vector<Var>& inputs,
                                  const GradientFunction& function) {
  std::vector<Var> ends = in_graph(results, graph, kFunction);
  for (Var& end : ends) end = stop_gradient(end);
  if (!modes().records) return ends;
  const std::vector<Var> given = in_graph(inputs, graph, kFunction);
  Graph body("gradient");
  std::vector<Var> reached, captured;
  {
    BodyScope scope(body, graph);
    const std::vector<Var> gradients = function(add_inputs(body, ends));
    AG_CHECK_USER(gradients.size() == given.size(), ValueError,
                  "[with_gradient] function: expected a gradient for each of {} inputs, got {}", given.size(),
                  gradients.size());
    for (size_t i = 0; i < given.size(); ++i) {
      if (!gradients[i].is_valid()) continue;
      check_gradient(gradients[i], given[i].type(), fmt::format("a function, of input {}", i));
      add_outputs(body, {gradients[i]}, kFunction);
      reached.push_back(given[i]);
    }
    captured = scope.captured();
  }
  return reached.empty() ? ends : with_gradient(ends, reached, body, captured);
}

void hook_in_graph(const Var& value, const GradientHook& hook) {
  Graph& graph = value.graph();
  AG_CHECK_USER(graph_of({value}) == &graph, UnsupportedError,
                "[on_gradient] value: expected one of the function that runs now, got one from around cond(), "
                "while_loop() or scan()");
  AG_CHECK_USER(carries_floats(value.type()) && !graph.value(value.id()).is_constant(), ValueError,
                "[on_gradient] value: expected one that may depend on a variable, got {}", to_string(value));
  Graph body("hook");
  std::vector<Var> captured;
  {
    BodyScope scope(body, graph);
    const Var changed = hook(add_inputs(body, {value}).front());
    if (!changed.is_valid()) return;
    check_gradient(changed, value.type(), "a hook");
    add_outputs(body, {changed}, kHook);
    captured = scope.captured();
  }
  gradient_hook(value, body, captured);
}

GradientHookHandle hook_of_graph() {
  return GradientHookHandle([] {
    throw UnsupportedError(
        "[on_gradient] remove: the hook of a value that a captured function computes is part of the graph; leave it "
        "out where the function runs, or hook a variable or a value from outside");
  });
}

GradientHookHandle hook_on_variable(Eager& variable, SharedHook hook) {
  variable.as_variable().hooks.push_back(hook);
  return GradientHookHandle([owner = variable.weak_from_this(), hook = std::weak_ptr(hook)] {
    const std::shared_ptr<Eager> still = owner.lock();
    if (still) std::erase(still->as_variable().hooks, hook.lock());
  });
}

GradientHookHandle hook_on_node(const std::shared_ptr<TapeNode>& node, uint32_t slot, const SharedHook& hook) {
  node->hooks.emplace_back(slot, hook);
  return GradientHookHandle([owner = std::weak_ptr(node), slot, hook = std::weak_ptr(hook)] {
    const std::shared_ptr<TapeNode> still = owner.lock();
    if (still) std::erase(still->hooks, std::pair(slot, hook.lock()));
  });
}

}  // namespace

GradientHookHandle on_gradient(const Var& value, GradientHook hook) {
  AG_CHECK_USER(value.is_valid(), ValueError, "[on_gradient] value: expected one, got none");
  AG_CHECK_USER(hook != nullptr, ValueError, "[on_gradient] hook: expected a function, got none");
  if (!value.is_eager()) {
    hook_in_graph(value, hook);
    return hook_of_graph();
  }
  auto& here = static_cast<Eager&>(value.eager());
  AG_CHECK_USER(here.requires_grad(), ValueError,
                "[on_gradient] value: expected one that is a variable or depends on one, got {} without a past",
                to_string(value.type()));
  auto shared = std::make_shared<const GradientHook>(std::move(hook));
  if (here.is_variable()) return hook_on_variable(here, std::move(shared));
  return hook_on_node(here.producer(), here.slot(), shared);
}

std::vector<Var> with_gradient(const std::vector<Var>& results, const std::vector<Var>& inputs,
                               GradientFunction gradient) {
  std::vector<Var> all = results;
  all.insert(all.end(), inputs.begin(), inputs.end());
  if (Graph* graph = graph_of(all)) return with_gradient_in(*graph, results, inputs, gradient);
  auto info = std::make_shared<CallInfo>();
  info->name = kFunction;
  std::vector<Datum> outputs;
  bool flows = false;
  for (const Var& result : results) {
    outputs.push_back(eager_of(result, kFunction).datum());
    info->output_types.push_back(result.type());
  }
  for (const Var& input : inputs) flows = flows || eager_of(input, kFunction).requires_grad();
  std::vector<Var> values;
  if (!flows || !modes().records) {
    for (const Var& result : results) values.push_back(detach(result));
    return values;
  }
  const auto node = std::make_shared<TapeNode>();
  node->info = std::move(info);
  node->inputs = recorded_inputs(inputs);
  node->outputs = std::move(outputs);
  node->origin = current_origin();
  node->function = std::move(gradient);
  for (size_t k = 0; k < results.size(); ++k) values.push_back(output_of(node, static_cast<uint32_t>(k)));
  return values;
}

}  // namespace autograph
