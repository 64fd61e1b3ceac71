// scan: runs `body` once per step of its scan inputs. The body takes (states..., one slice of each scan input...,
// captured...) and gives (states..., one slice of each scan output...); the node gives the last states, then the
// stacked scan outputs. Axes and directions (1: last step first) are per scan input and output.
//
// Opset 8 had a batch: every state and scan input has a leading batch dim, scan inputs run along axis 1, and an
// optional first input holds the number of steps of each batch entry; scan outputs are padded with zeros to the
// longest. Here this is the form `batched`, whose axes count without the batch dim.
#include <algorithm>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/control.h"
#include "base/check.h"
#include "base/join.h"
#include "ops/control/captures.h"
#include "ops/control/control_vjp.h"
#include "ops/control/merge_types.h"
#include "ops/control/nested_run.h"
#include "ops/control/planned_turns.h"
#include "ops/control/slices.h"
#include "ops/control/turns.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

// Types settle in a few rounds; states that still widen after this many get an unknown shape.
constexpr int kMaxRounds = 64;

// Where the kinds of inputs begin and end.
struct Layout {
  size_t first_state = 0;  // 1 when sequence lengths come first
  size_t first_scan = 0;
  size_t first_capture = 0;
  size_t num_states() const { return first_scan - first_state; }
  size_t num_scans() const { return first_capture - first_scan; }
};

Layout make_layout(const Attributes& attributes, size_t formal) {
  Layout layout;
  layout.first_state = attributes.flag("has_sequence_lens") ? 1 : 0;
  layout.first_capture = formal;
  layout.first_scan = formal - static_cast<size_t>(attributes.integer("num_scan_inputs"));
  return layout;
}

// Entry `k` of an optional list attribute, or 0.
int64_t listed(const Attributes& attributes, std::string_view name, size_t k) {
  const auto* list = attributes.find_as<std::vector<int64_t>>(name);
  return list && k < list->size() ? (*list)[k] : 0;
}

void check_list(const InferContext& context, std::string_view name, size_t expected, bool is_direction) {
  const auto* list = context.attributes().find_as<std::vector<int64_t>>(name);
  if (!list) return;
  if (list->size() != expected) {
    context.fail<ValueError>(name, fmt::format("expected {} entries, got {}", expected, bracketed(*list)));
  }
  if (is_direction && std::any_of(list->begin(), list->end(), [](int64_t d) { return d != 0 && d != 1; })) {
    context.fail<ValueError>(name, fmt::format("expected entries of 0 or 1, got {}", bracketed(*list)));
  }
}

Layout checked_layout(const InferContext& context) {
  const Attributes& attributes = context.attributes();
  const size_t formal = num_formal_inputs(context);
  const int64_t scans = attributes.integer("num_scan_inputs");
  const size_t first = attributes.flag("has_sequence_lens") ? 1 : 0;
  if (scans < 1 || first + static_cast<size_t>(scans) > formal) {
    context.fail<ValueError>("num_scan_inputs",
                             fmt::format("expected 1..{}, got {}", formal - std::min(formal, first), scans));
  }
  const Layout layout = make_layout(attributes, formal);
  if (context.num_outputs() < layout.num_states()) {
    context.fail<ValueError>("outputs", fmt::format("expected at least {}, one per state, got {}", layout.num_states(),
                                                    context.num_outputs()));
  }
  const size_t scan_outputs = context.num_outputs() - layout.num_states();
  check_list(context, "scan_input_axes", layout.num_scans(), false);
  check_list(context, "scan_input_directions", layout.num_scans(), true);
  check_list(context, "scan_output_axes", scan_outputs, false);
  check_list(context, "scan_output_directions", scan_outputs, true);
  return layout;
}

// The type without its batch dim, in the batched form.
Type entry_type(const InferContext& context, const Type& type) {
  if (!context.attributes().flag("batched") || !type.is_tensor() || !type.shape().has_rank()) return type;
  context.require<ShapeError>(type.shape().rank() > 0, "inputs", "expected a batch dim, got a scalar");
  Shape shape = type.shape();
  shape.dims().erase(shape.dims().begin());
  return Type(type.dtype(), std::move(shape));
}

Type batched_type(const InferContext& context, Type type, const Dim& batch) {
  if (!context.attributes().flag("batched") || !type.shape().has_rank()) return type;
  Shape shape = type.shape();
  shape.dims().insert(shape.dims().begin(), batch);
  return Type(type.dtype(), std::move(shape));
}

// Types of one slice of each scan input; sets `steps`.
std::vector<Type> slice_types(const InferContext& context, const Layout& layout, Dim& steps) {
  std::vector<Type> types;
  for (size_t k = 0; k < layout.num_scans(); ++k) {
    const Type type = entry_type(context, context.input(layout.first_scan + k));
    if (!type.is_tensor())
      context.fail<TypeError>("scan inputs", fmt::format("expected tensors, got {}", to_string(type)));
    Shape shape = type.shape();
    if (shape.has_rank()) {
      const int64_t axis =
          context.normalized_axis(listed(context.attributes(), "scan_input_axes", k), shape.rank(), "scan_input_axes");
      steps = merged_dim(context, steps, shape[axis], "scan inputs");
      shape.dims().erase(shape.dims().begin() + axis);
    }
    types.emplace_back(type.dtype(), std::move(shape));
  }
  return types;
}

std::vector<Type> body_types(const InferContext& context, const Layout& layout, const std::vector<Type>& states,
                             const std::vector<Type>& slices) {
  std::vector<Type> inputs = states;
  inputs.insert(inputs.end(), slices.begin(), slices.end());
  for (size_t slot = layout.first_capture; slot < context.num_inputs(); ++slot) inputs.push_back(context.input(slot));
  std::vector<Type> types = context.infer_nested("body", inputs);
  if (types.size() != context.num_outputs()) {
    context.fail<ValueError>("body", fmt::format("expected {} outputs, one per output of the node, got {}",
                                                 context.num_outputs(), types.size()));
  }
  return types;
}

void infer(InferContext& context) {
  const Layout layout = checked_layout(context);
  Dim steps = Dim::unknown();
  const std::vector<Type> slices = slice_types(context, layout, steps);
  const Shape& first_scan = context.shape(layout.first_scan);
  const Dim batch = first_scan.has_rank() && first_scan.rank() > 0 ? first_scan[0] : Dim::unknown();
  std::vector<Type> states;
  for (size_t slot = layout.first_state; slot < layout.first_scan; ++slot) {
    states.push_back(entry_type(context, context.input(slot)));
  }
  std::vector<Type> types;
  bool settled = false;
  for (int round = 0; !settled; ++round) {
    types = body_types(context, layout, states, slices);
    settled = true;
    for (size_t k = 0; k < states.size(); ++k) {
      Type merged = merged_type(context, states[k], types[k], "states");
      if (round >= kMaxRounds && merged.is_tensor()) merged = Type(merged.dtype(), Shape::unknown());
      if (!(merged == states[k])) settled = false;
      states[k] = std::move(merged);
    }
  }
  for (size_t k = 0; k < states.size(); ++k) context.set_output(k, batched_type(context, states[k], batch));
  for (size_t k = states.size(); k < types.size(); ++k) {
    if (!types[k].is_tensor())
      context.fail<TypeError>("body", fmt::format("expected tensors, got {}", to_string(types[k])));
    Shape stacked = types[k].shape();
    if (stacked.has_rank()) {
      const int64_t axis = context.normalized_axis(listed(context.attributes(), "scan_output_axes", k - states.size()),
                                                   stacked.rank() + 1, "scan_output_axes");
      stacked.dims().insert(stacked.dims().begin() + axis, steps);
    }
    context.set_output(k, batched_type(context, Type(types[k].dtype(), std::move(stacked)), batch));
  }
}

// `rank_of(k)` is the rank of scan input `k`.
TurnPlan turns_of(const Attributes& attributes, const Layout& layout, size_t outputs,
                  FunctionRef<int64_t(size_t)> rank_of) {
  const size_t states = layout.num_states();
  TurnPlan plan;
  for (size_t k = 0; k < states; ++k) plan.states.push_back({k, k});
  for (size_t k = 0; k < layout.num_scans(); ++k) {
    plan.slices.push_back({states + k, front_axis(listed(attributes, "scan_input_axes", k), rank_of(k)),
                           listed(attributes, "scan_input_directions", k) == 1});
  }
  for (size_t k = 0; k + states < outputs; ++k) {
    plan.stacks.push_back(
        {states + k, listed(attributes, "scan_output_axes", k), listed(attributes, "scan_output_directions", k) == 1});
  }
  return plan;
}

// The steps on memory that is laid out once; nothing where that cannot be done.
std::optional<std::vector<Datum>> run_in_place(EvaluateContext& context, const Layout& layout,
                                               const std::vector<Datum>& inputs, int64_t steps) {
  if (steps < 1) return std::nullopt;
  const TurnPlan plan = turns_of(context.attributes(), layout, context.num_outputs(),
                                 [&](size_t k) { return inputs[layout.num_states() + k].tensor().rank(); });
  return run_turns(context, plan, steps, inputs);
}

// One run over `inputs` (states, scan inputs, captured) for `steps` steps.
std::vector<Datum> run_steps(EvaluateContext& context, const Layout& layout, const std::vector<Datum>& inputs,
                             int64_t steps) {
  if (auto outputs = run_in_place(context, layout, inputs, steps)) return std::move(*outputs);
  const Attributes& attributes = context.attributes();
  const size_t states = layout.num_states();
  const size_t scan_outputs = context.num_outputs() - states;
  std::vector<Datum> values = inputs;
  std::vector<std::vector<Tensor>> collected(scan_outputs);
  for (int64_t step = 0; step < steps; ++step) {
    for (size_t k = 0; k < layout.num_scans(); ++k) {
      const Tensor& scanned = inputs[states + k].tensor();
      const int64_t axis = front_axis(listed(attributes, "scan_input_axes", k), scanned.rank());
      const bool backwards = listed(attributes, "scan_input_directions", k) == 1;
      values[states + k] = take_slice(context, scanned, axis, backwards ? steps - 1 - step : step, 1, true);
    }
    std::vector<Datum> results = context.run_nested("body", values);
    for (size_t k = 0; k < states; ++k) values[k] = std::move(results[k]);
    for (size_t k = 0; k < scan_outputs; ++k) collected[k].push_back(results[states + k].tensor());
  }
  std::vector<Datum> outputs(values.begin(), values.begin() + static_cast<int64_t>(states));
  const GraphRef& body = attributes.get<GraphRef>("body");
  for (size_t k = 0; k < scan_outputs; ++k) {
    const int64_t axis = listed(attributes, "scan_output_axes", k);
    if (listed(attributes, "scan_output_directions", k) == 1) std::reverse(collected[k].begin(), collected[k].end());
    outputs.emplace_back(collected[k].empty() ? stack_nothing(context, body->type(body->outputs()[states + k]), axis)
                                              : stack_tensors(context, "scan", collected[k], axis));
  }
  return outputs;
}

int64_t num_steps(const Attributes& attributes, const Layout& layout, const std::vector<Datum>& inputs) {
  int64_t steps = -1;
  for (size_t k = 0; k < layout.num_scans(); ++k) {
    const Tensor& scanned = inputs[layout.num_states() + k].tensor();
    const int64_t axis = front_axis(listed(attributes, "scan_input_axes", k), scanned.rank());
    AG_CHECK_USER(axis >= 0 && axis < scanned.rank(), ValueError,
                  "[scan] scan_input_axes: expected an axis of {}, got {}", to_string(scanned.dims()), axis);
    const int64_t extent = scanned.dims()[static_cast<size_t>(axis)];
    AG_CHECK_USER(steps < 0 || steps == extent, ShapeError, "[scan] scan inputs: expected {} steps, got {}", steps,
                  extent);
    steps = extent;
  }
  return steps;
}

// Zeros behind the steps of a scan output of a shorter batch entry, so that all entries can be stacked.
Tensor padded(EvaluateContext& context, const Tensor& x, int64_t axis, int64_t steps) {
  const int64_t along = front_axis(axis, x.rank());
  if (x.dims()[static_cast<size_t>(along)] == steps) return x;
  Dims dims = x.dims();
  dims[static_cast<size_t>(along)] = steps;
  const Tensor y = context.allocate(x.dtype(), dims);
  fill_with(y.view(), {});
  copy_strided(x.view(), {0, dense_strides(x.dims())}, y.view(), {0, dense_strides(dims)}, x.dims());
  return y;
}

std::vector<Datum> evaluate_batched(EvaluateContext& context, const Layout& layout, const std::vector<Datum>& inputs) {
  const int64_t batch = inputs[layout.num_states()].tensor().dims().at(0);
  AG_CHECK_USER(batch > 0, ShapeError, "[scan] batch: expected 1 or more entries, got {}", batch);
  std::vector<int64_t> lengths;
  if (layout.first_state == 1 && context.has_input(0)) lengths = context.tensor(0).to_i64();
  AG_CHECK_USER(lengths.empty() || static_cast<int64_t>(lengths.size()) == batch, ShapeError,
                "[scan] sequence_lens: expected {} entries, got {}", batch, lengths.size());
  std::vector<std::vector<Tensor>> results(context.num_outputs());
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<Datum> entry = inputs;
    for (size_t k = 0; k < layout.num_states() + layout.num_scans(); ++k) {
      const Tensor& x = inputs[k].tensor();
      AG_CHECK_USER(x.rank() > 0 && x.dims()[0] == batch, ShapeError,
                    "[scan] inputs: expected a batch of {}, got shape {}", batch, to_string(x.dims()));
      entry[k] = take_slice(context, x, 0, b, 1, true);
    }
    const int64_t steps = num_steps(context.attributes(), layout, entry);
    const int64_t length = lengths.empty() ? steps : lengths[static_cast<size_t>(b)];
    AG_CHECK_USER(length >= 0 && length <= steps, ValueError, "[scan] sequence_lens[{}]: expected 0..{}, got {}", b,
                  steps, length);
    const std::vector<Datum> outputs = run_steps(context, layout, entry, length);
    for (size_t k = 0; k < outputs.size(); ++k) {
      const bool is_state = k < layout.num_states();
      const int64_t axis = is_state ? 0 : listed(context.attributes(), "scan_output_axes", k - layout.num_states());
      results[k].push_back(is_state ? outputs[k].tensor() : padded(context, outputs[k].tensor(), axis, steps));
    }
  }
  std::vector<Datum> stacked;
  for (const auto& tensors : results) stacked.emplace_back(stack_tensors(context, "scan", tensors, 0));
  return stacked;
}

std::vector<Datum> evaluate(EvaluateContext& context) {
  const Layout layout = make_layout(context.attributes(), num_formal_inputs(context));
  std::vector<Datum> inputs;
  for (size_t slot = layout.first_state; slot < context.num_inputs(); ++slot) inputs.push_back(context.input(slot));
  if (context.attributes().flag("batched")) return evaluate_batched(context, layout, inputs);
  return run_steps(context, layout, inputs, num_steps(context.attributes(), layout, inputs));
}

// Appends each slice to the state and gives the slice back.
GraphRef sample_body() {
  auto graph = std::make_shared<Graph>();
  const ValueId state = graph->add_input(Type(DType::f32, Shape::of_rank(1)), "state");
  const ValueId slice = graph->add_input(Type(DType::f32, Shape::of_rank(1)), "slice");
  const NodeId joined = graph->add_node(concat_def(), {state, slice}, {{"axis", int64_t{0}}});
  graph->add_output(graph->node(joined).output(0), "state_out");
  graph->add_output(slice, "slices");
  return graph;
}

OpSample sample(Random& random) {
  return {.inputs = {draw_tensor(random, DType::f32, {draw(random, 1, 3)}),
                     draw_tensor(random, DType::f32, {draw(random, 1, 3), draw(random, 1, 3)})},
          .attributes = {{"body", sample_body()},
                         {"num_scan_inputs", int64_t{1}},
                         {"scan_input_axes", std::vector<int64_t>{draw(random, -2, 1)}},
                         {"scan_input_directions", std::vector<int64_t>{draw(random, 0, 1)}},
                         {"scan_output_axes", std::vector<int64_t>{draw(random, -2, 1)}},
                         {"scan_output_directions", std::vector<int64_t>{draw(random, 0, 1)}}},
          .num_outputs = 2};
}

std::vector<ValueId> import_onnx(ForeignNode& node) {
  import_captures(node);
  if (node.opset >= 9) return node.emit();
  node.attributes.set("batched", int64_t{1});
  if (const auto* directions = node.attributes.find_as<std::vector<int64_t>>("directions")) {
    node.attributes.set("scan_input_directions", *directions);
    node.attributes.erase("directions");
  }
  if (node.has_input(0)) {
    node.attributes.set("has_sequence_lens", int64_t{1});
  } else if (!node.inputs.empty()) {
    node.inputs.erase(node.inputs.begin());
  }
  return node.emit();
}

void export_onnx(ExportNode& to) {
  AG_CHECK_USER(!to.attributes.flag("batched"), UnsupportedError,
                "[scan] batched: ONNX has no batched form since opset 9, target is opset {}", to.opset);
  export_captures(to);
  to.attributes.erase("batched");
  to.attributes.erase("has_sequence_lens");
}

}  // namespace

std::unique_ptr<NestedRun> plan_scan(const NestedCall& call) {
  const Attributes& attributes = call.attributes;
  if (attributes.flag("batched") || attributes.flag("has_sequence_lens")) return nullptr;
  const size_t formal = call.inputs.size() - static_cast<size_t>(attributes.integer("num_captures"));
  const Layout layout = make_layout(attributes, formal);
  const auto type_of = [&](size_t k) -> const Type& { return call.inputs[layout.first_scan + k]; };
  const TurnPlan plan =
      turns_of(attributes, layout, call.outputs.size(), [&](size_t k) { return type_of(k).shape().rank(); });
  const int64_t steps = type_of(0).shape().static_dims()[static_cast<size_t>(plan.slices[0].axis)];
  return plan_turns(call, {plan, 0, steps});
}

std::vector<Var> scan(const std::vector<Var>& states, const std::vector<Var>& scanned, const Graph& body,
                      const std::vector<Var>& captured, Attributes attributes) {
  std::vector<Var> inputs = states;
  inputs.insert(inputs.end(), scanned.begin(), scanned.end());
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  attributes.set("body", std::make_shared<const Graph>(body));
  attributes.set("num_scan_inputs", std::ssize(scanned));
  attributes.set("num_captures", std::ssize(captured));
  return apply_all(scan_def(), inputs, std::move(attributes), static_cast<int>(body.outputs().size()));
}

const OpDef& scan_def() {
  constexpr AttributeType kList = AttributeType::integers;
  static const OpDef def{
      .name = "scan",
      .doc = "Runs body over the slices of its scan inputs, carrying states and stacking scan outputs.",
      .inputs = {{"initial_state_and_scan_inputs", "", "Initial states, scan inputs, captured values.",
                  Arity::variadic}},
      .outputs = {{"final_state_and_scan_outputs", "", "Last states, then stacked scan outputs.", Arity::variadic}},
      .attributes = {{.name = "body",
                      .type = AttributeType::graph,
                      .doc = "(states, slices, captured) -> (states, slices of the scan outputs).",
                      .required = true},
                     {.name = "num_scan_inputs", .doc = "How many inputs are scanned, 1 or more.", .required = true},
                     {"scan_input_axes", kList, "The axis of each scan input; 0 when absent."},
                     {"scan_input_directions", kList, "Per scan input 1: last step first; 0 when absent."},
                     {"scan_output_axes", kList, "The new axis of each scan output; 0 when absent."},
                     {"scan_output_directions", kList, "Per scan output 1: last step first; 0 when absent."},
                     {"batched", AttributeType::integer, "1: states and scan inputs have a batch dim.", int64_t{0}},
                     {"has_sequence_lens", AttributeType::integer, "1: input 0 holds the steps of each batch entry.",
                      int64_t{0}},
                     captures_spec()},
      .infer = infer,
      .evaluate = evaluate,
      .vjp = scan_vjp,
      .traits = {.control_flow = true},
      .onnx = {{.name = "Scan", .since = 8, .import = import_onnx, .export_node = export_onnx, .export_since = 9}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
