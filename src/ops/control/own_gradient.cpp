// with_gradient: results with a gradient of their own, which a nested graph computes. gradient_hook: what becomes of
// the whole gradient of its input, likewise. Both give what they take: to a run they are other names for their inputs.
//
// with_gradient takes (results..., inputs..., captured...); its graph takes (gradients of the results..., captured...)
// and gives a gradient for each of the inputs. Nothing flows into results, whose place the inputs take.
// gradient_hook takes (x, captured...); its graph takes (gradient of x, captured...). Nothing need read its output:
// whoever differentiates looks for hooks among the readers of a value.
#include <fmt/core.h>

#include "autograph/op_def.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "graph/nested/inline_graph.h"
#include "ops/control/captures.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

constexpr const char* kGradient = "gradient";

AttributeSpec gradient_spec(std::string_view doc) {
  return {.name = kGradient, .type = AttributeType::graph, .doc = doc, .required = true};
}

void check_body(const InferContext& context, size_t num_flowing, size_t num_results) {
  const Graph& body = *context.attributes().get<GraphRef>(kGradient);
  const size_t num_captured = context.num_inputs() - num_formal_inputs(context);
  if (body.inputs().size() != num_flowing + num_captured || body.outputs().size() != num_results) {
    context.fail<ValueError>(
        kGradient, fmt::format("expected a graph of {} inputs and {} outputs, got {} and {}",
                               num_flowing + num_captured, num_results, body.inputs().size(), body.outputs().size()));
  }
}

void infer(InferContext& context) {
  const size_t results = context.num_outputs(), formal = num_formal_inputs(context);
  if (formal < results) {
    context.fail<ValueError>("values", fmt::format("expected {} results and their inputs, got {}", results, formal));
  }
  check_body(context, results, formal - results);
  for (size_t k = 0; k < results; ++k) context.set_output(k, context.input(k));
}

void infer_hook(InferContext& context) {
  check_body(context, 1, 1);
  context.set_output(0, context.input(0));
}

std::vector<Var> decompose(DecomposeContext& context) {
  std::vector<Var> outputs;
  for (size_t k = 0; k < context.num_outputs; ++k) outputs.push_back(identity(context.inputs[k]));
  return outputs;
}

void vjp(VjpContext& c) {
  const size_t results = c.num_outputs();
  const size_t formal = c.num_inputs() - static_cast<size_t>(c.attributes().integer("num_captures"));
  std::vector<ValueId> given;
  for (size_t k = 0; k < results; ++k) given.push_back(c.gy(k).id());
  for (size_t slot = formal; slot < c.num_inputs(); ++slot) given.push_back(c.in(slot).id());
  const std::vector<ValueId> gradients = inline_graph(c.graph(), *c.attributes().get<GraphRef>(kGradient), given);
  for (size_t slot = 0; slot < c.num_inputs(); ++slot) {
    const bool is_input = slot >= results && slot < formal;
    is_input ? c.set(slot, Var(c.graph(), gradients[slot - results])) : c.set_none(slot);
  }
}

std::vector<Var> with_captured(std::vector<Var> values, const std::vector<Var>& captured) {
  values.insert(values.end(), captured.begin(), captured.end());
  return values;
}

Attributes attributes_of(const Graph& gradient, const std::vector<Var>& captured) {
  return {{kGradient, std::make_shared<const Graph>(gradient)}, {"num_captures", std::ssize(captured)}};
}

GraphRef sample_body(const Type& type) {
  auto graph = std::make_shared<Graph>();
  const ValueId flowing = graph->add_input(type);
  graph->add_output(identity(Var(*graph, flowing)).id());
  return graph;
}

// Of integers: differences know nothing of a gradient that somebody made up.
OpSample sample(Random& random) {
  const Tensor x = draw_tensor(random, DType::i64, draw_dims(random));
  return {.inputs = {x, x}, .attributes = {{kGradient, sample_body(x.type())}}, .num_outputs = 1};
}

OpSample sample_hook(Random& random) {
  const Tensor x = draw_tensor(random, DType::f32, draw_dims(random));
  return {.inputs = {x}, .attributes = {{kGradient, sample_body(x.type())}}};
}

}  // namespace

std::vector<Var> with_gradient(const std::vector<Var>& results, const std::vector<Var>& inputs, const Graph& gradient,
                               const std::vector<Var>& captured) {
  std::vector<Var> values = with_captured(results, inputs);
  return apply_all(with_gradient_def(), with_captured(std::move(values), captured), attributes_of(gradient, captured),
                   static_cast<int>(results.size()));
}

void gradient_hook(const Var& x, const Graph& gradient, const std::vector<Var>& captured) {
  apply(gradient_hook_def(), with_captured({x}, captured), attributes_of(gradient, captured));
}

const OpDef& with_gradient_def() {
  static const OpDef def{
      .name = "with_gradient",
      .doc = "ys = the first values, with a gradient that flows into the others as a nested graph says.",
      .inputs = {{"values", "", "Results, then inputs, then captured values.", Arity::variadic}},
      .outputs = {{"ys", "", "The results.", Arity::variadic}},
      .attributes = {gradient_spec("From gradients of the results and captured values to gradients of the inputs."),
                     captures_spec()},
      .infer = infer,
      .decompose = decompose,
      .vjp = vjp,
      .sample = sample,
  };
  return def;
}

const OpDef& gradient_hook_def() {
  static const OpDef def{
      .name = "gradient_hook",
      .doc = "y = x; the whole gradient of x becomes what a nested graph makes of it.",
      .inputs = {{"x", "", "A tensor of floats."},
                 {"captured", "", "What the nested graph uses besides.", Arity::variadic}},
      .outputs = {{"y", "", "The type of x."}},
      .attributes = {gradient_spec("From the gradient of x and captured values to what takes its place."),
                     captures_spec()},
      .infer = infer_hook,
      .decompose = decompose,
      .vjp = [](VjpContext& c) { c.set(0, c.gy(0)); },
      .sample = sample_hook,
  };
  return def;
}

}  // namespace autograph
