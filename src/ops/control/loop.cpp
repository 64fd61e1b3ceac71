// loop: runs `body` while the iteration number is below M (no limit when not given) and the condition holds (true when
// not given). The body takes (iteration, condition, states..., captured...) and gives (condition, states..., scan
// outputs...); the node gives the last states, then each scan output stacked along a new first axis. States may be
// tensors, sequences or optionals, and their shapes may change from turn to turn. No turns: states pass through and
// scan outputs are empty.
#include <limits>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/control.h"
#include "base/check.h"
#include "ops/control/captures.h"
#include "ops/control/control_vjp.h"
#include "ops/control/merge_types.h"
#include "ops/control/nested_run.h"
#include "ops/control/planned_turns.h"
#include "ops/control/slices.h"
#include "ops/control/turns.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// Inputs 0 and 1 are M and cond.
constexpr size_t kFirstState = 2;
// Types settle in a few rounds; a body that still widens after this many gets states of unknown shape.
constexpr int kMaxRounds = 64;
// A loop without limit that keeps no results would otherwise run for ever.
constexpr int64_t kMaxTurns = int64_t{1} << 31;

size_t num_states(size_t formal) { return formal > kFirstState ? formal - kFirstState : 0; }

// Types of the body's outputs when the states have these types.
std::vector<Type> body_types(const InferContext& context, const std::vector<Type>& states) {
  std::vector<Type> inputs{Type(DType::i64, {}), Type(DType::boolean, Shape::unknown())};
  inputs.insert(inputs.end(), states.begin(), states.end());
  for (size_t slot = num_formal_inputs(context); slot < context.num_inputs(); ++slot) {
    inputs.push_back(context.input(slot));
  }
  std::vector<Type> types = context.infer_nested("body", inputs);
  if (types.size() != context.num_outputs() + 1 || context.num_outputs() < states.size()) {
    context.fail<ValueError>("body", fmt::format("expected {} outputs (condition, {} states, scan outputs), got {}",
                                                 context.num_outputs() + 1, states.size(), types.size()));
  }
  return types;
}

Type without_shape(const Type& type) { return type.is_tensor() ? Type(type.dtype(), Shape::unknown()) : type; }

void infer(InferContext& context) {
  const size_t formal = num_formal_inputs(context);
  context.require<ValueError>(formal >= kFirstState || formal == context.num_inputs(), "inputs",
                              "expected M and cond before the captured values");
  std::vector<Type> states;
  for (size_t slot = kFirstState; slot < formal; ++slot) states.push_back(context.input(slot));
  std::vector<Type> types;
  bool settled = false;
  for (int round = 0; !settled; ++round) {
    types = body_types(context, states);
    settled = true;
    for (size_t k = 0; k < states.size(); ++k) {
      Type merged = merged_type(context, states[k], types[k + 1], "states");
      if (round >= kMaxRounds) merged = without_shape(merged);
      if (!(merged == states[k])) settled = false;
      states[k] = std::move(merged);
    }
  }
  for (size_t k = 0; k < states.size(); ++k) {
    // A body that takes an optional and gives its element leaves the element behind.
    const bool is_unwrapped = states[k].is_optional() && !types[k + 1].is_optional();
    context.set_output(k, is_unwrapped ? states[k].element() : states[k]);
  }
  for (size_t k = states.size(); k < context.num_outputs(); ++k) {
    const Type& turn = types[k + 1];
    if (!turn.is_tensor()) {
      context.fail<TypeError>("body", fmt::format("expected tensors as scan outputs, got {}", to_string(turn)));
    }
    Shape stacked = turn.shape();
    if (stacked.has_rank()) stacked.dims().insert(stacked.dims().begin(), Dim::unknown());
    context.set_output(k, turn.dtype(), std::move(stacked));
  }
}

int64_t turn_limit(const EvaluateContext& context) {
  if (!context.has_input(0)) return std::numeric_limits<int64_t>::max();
  const Tensor& limit = context.tensor(0);
  AG_CHECK_USER(limit.num_elements() == 1, ShapeError, "[loop] M: expected one element, got shape {}",
                to_string(limit.dims()));
  return *limit.data<int64_t>();
}

TurnPlan turns_of(size_t states, size_t outputs) {
  TurnPlan plan;
  plan.has_condition = true;
  for (size_t k = 0; k < states; ++k) plan.states.push_back({kFirstState + k, 1 + k});
  for (size_t k = states; k < outputs; ++k) plan.stacks.push_back({1 + k});
  return plan;
}

// The turns on memory that is laid out once; nothing where that cannot be done.
std::optional<std::vector<Datum>> evaluate_in_place(EvaluateContext& context, size_t states, int64_t limit,
                                                    const std::vector<Datum>& values) {
  if (limit < 1 || !read_condition("loop", values[1].tensor())) return std::nullopt;
  return run_turns(context, turns_of(states, context.num_outputs()), limit, values);
}

std::vector<Datum> evaluate(EvaluateContext& context) {
  const size_t states = num_states(num_formal_inputs(context));
  const size_t scans = context.num_outputs() - states;
  const int64_t limit = turn_limit(context);
  std::vector<Datum> values{Datum(), context.has_input(1) ? context.input(1) : Datum(Tensor::scalar(true))};
  for (size_t slot = kFirstState; slot < context.num_inputs(); ++slot) values.push_back(context.input(slot));
  if (auto outputs = evaluate_in_place(context, states, limit, values)) return std::move(*outputs);
  std::vector<std::vector<Tensor>> collected(scans);
  for (int64_t turn = 0; turn < limit && read_condition("loop", values[1].tensor()); ++turn) {
    AG_CHECK_USER(turn < kMaxTurns, BudgetError, "[loop] turns: more than {}", kMaxTurns);
    values[0] = Datum(Tensor::scalar(turn));
    std::vector<Datum> results = context.run_nested("body", values);
    for (size_t k = 0; k <= states; ++k) values[1 + k] = std::move(results[k]);
    for (size_t k = 0; k < scans; ++k) collected[k].push_back(results[1 + states + k].tensor());
  }
  std::vector<Datum> outputs(values.begin() + kFirstState, values.begin() + kFirstState + static_cast<int64_t>(states));
  const GraphRef& body = context.attributes().get<GraphRef>("body");
  for (size_t k = 0; k < scans; ++k) {
    outputs.emplace_back(collected[k].empty() ? stack_nothing(context, body->type(body->outputs()[1 + states + k]), 0)
                                              : stack_tensors(context, "loop", collected[k], 0));
  }
  return outputs;
}

// Appends the captured value to the state every turn and records the iteration number.
GraphRef sample_body() {
  auto graph = std::make_shared<Graph>();
  const ValueId turn = graph->add_input(Type(DType::i64, {}), "turn");
  const ValueId condition = graph->add_input(Type(DType::boolean, {}), "condition");
  const ValueId state = graph->add_input(Type(DType::f32, Shape::of_rank(1)), "state");
  const ValueId captured = graph->add_input(Type(DType::f32, Shape::of_rank(1)), "captured");
  const NodeId joined = graph->add_node(concat_def(), {state, captured}, {{"axis", int64_t{0}}});
  graph->add_output(condition, "condition_out");
  graph->add_output(graph->node(joined).output(0), "state_out");
  graph->add_output(turn, "turns");
  return graph;
}

OpSample sample(Random& random) {
  return {.inputs = {Tensor::scalar(draw(random, 0, 4)), draw_bool(random) ? Datum(Tensor::scalar(true)) : Datum(),
                     draw_tensor(random, DType::f32, {draw(random, 1, 3)}),
                     draw_tensor(random, DType::f32, {draw(random, 1, 3)})},
          .attributes = {{"body", sample_body()}, {"num_captures", int64_t{1}}},
          .num_outputs = 2};
}

// Files may declare the iteration number as a list of one, as tf2onnx does, and ONNX Runtime hands on what is declared.
void keep_listed_iteration(ForeignNode& node) {
  const auto* body = node.attributes.find_as<GraphRef>("body");
  if (!body || (*body)->inputs().empty()) return;
  const Type& declared = (*body)->type((*body)->inputs()[0]);
  if (!declared.is_tensor() || !declared.shape().has_rank() || declared.shape().rank() != 1) return;
  auto graph = std::make_shared<Graph>(**body);
  const ValueId turn = graph->inputs()[0], one = graph->add_constant(Tensor::vector({1}));
  graph->set_type(turn, Type(DType::i64, {}));
  const NodeId list = graph->add_node(reshape_def(), {turn, one});
  graph->replace_uses(turn, graph->node(list).output(0));
  graph->set_input(list, 0, turn);
  node.attributes.set("body", GraphRef(std::move(graph)));
}

std::vector<ValueId> import_onnx(ForeignNode& node) {
  import_captures(node);
  keep_listed_iteration(node);
  return node.emit();
}

bool is_one_element(const Type& type) { return !type.is_tensor() || type.shape().num_elements() == 1; }

}  // namespace

std::unique_ptr<NestedRun> plan_loop(const NestedCall& call) {
  const size_t formal = call.inputs.size() - static_cast<size_t>(call.attributes.integer("num_captures"));
  const size_t states = num_states(formal);
  // How many rows a stack has only a run tells.
  if (states < call.outputs.size() || call.inputs.size() < kFirstState) return nullptr;
  if (!is_one_element(call.inputs[0]) || !is_one_element(call.inputs[1])) return nullptr;
  return plan_turns(call, {turns_of(states, call.outputs.size()), 0, std::nullopt});
}

std::vector<Var> loop(Var max_turns, Var condition, const std::vector<Var>& states, const Graph& body,
                      const std::vector<Var>& captured) {
  std::vector<Var> inputs{max_turns, condition};
  inputs.insert(inputs.end(), states.begin(), states.end());
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  return apply_all(loop_def(), inputs,
                   {{"body", std::make_shared<const Graph>(body)}, {"num_captures", std::ssize(captured)}},
                   static_cast<int>(body.outputs().size()) - 1);
}

const OpDef& loop_def() {
  static const OpDef def{
      .name = "loop",
      .doc = "Runs body up to M times while its condition holds, carrying states and stacking scan outputs.",
      .inputs = {{"M", "I", "One element: most turns; no limit when not given.", Arity::optional},
                 {"cond", "B", "One element: run the first turn? Yes when not given.", Arity::optional},
                 {"v_initial", "", "Initial states, then captured values.", Arity::variadic}},
      .outputs = {{"v_final_and_scan_outputs", "", "Last states, then stacked scan outputs.", Arity::variadic}},
      .types = {{"I", dtypes::kI64}, {"B", dtypes::kBool}},
      .attributes = {{.name = "body",
                      .type = AttributeType::graph,
                      .doc = "(iteration, condition, states, captured) -> (condition, states, scan outputs).",
                      .required = true},
                     captures_spec()},
      .infer = infer,
      .evaluate = evaluate,
      .vjp = loop_vjp,
      .traits = {.control_flow = true},
      .onnx = {{.name = "Loop", .import = import_onnx, .export_node = export_captures}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
