// if: runs one of two nested graphs. Both take exactly the captured values, in the order of the inputs behind `cond`,
// and give as many outputs as the node has.
#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "base/check.h"
#include "ops/control/merge_types.h"
#include "ops/control/slices.h"
#include "ops/sample.h"

namespace autograph {

const OpDef& concat_def();
const OpDef& if_def();
namespace {

std::vector<Type> branch_types(const InferContext& context, std::string_view branch) {
  std::vector<Type> captured;
  for (size_t slot = 1; slot < context.num_inputs(); ++slot) captured.push_back(context.input(slot));
  std::vector<Type> types = context.infer_nested(branch, captured);
  if (types.size() != context.num_outputs()) {
    context.fail<ValueError>(branch, fmt::format("expected {} outputs, one per output of the node, got {}",
                                                 context.num_outputs(), types.size()));
  }
  return types;
}

void infer(InferContext& context) {
  const auto count = context.shape(0).num_elements();
  if (count.value_or(1) != 1) {
    context.fail<ShapeError>("cond", fmt::format("expected one element, got {}", to_string(context.shape(0))));
  }
  const std::vector<Type> then_types = branch_types(context, "then_branch");
  const std::vector<Type> else_types = branch_types(context, "else_branch");
  for (size_t k = 0; k < then_types.size(); ++k) {
    context.set_output(k, merged_type(context, then_types[k], else_types[k], "branches"));
  }
}

std::vector<Datum> evaluate(EvaluateContext& context) {
  std::vector<Datum> captured;
  for (size_t slot = 1; slot < context.num_inputs(); ++slot) captured.push_back(context.input(slot));
  const bool condition = read_condition("if", context.tensor(0));
  return context.run_nested(condition ? "then_branch" : "else_branch", captured);
}

// A graph that takes one f32 value and gives it back, once or doubled by concatenation.
GraphRef sample_branch(bool twice) {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->add_input(Type(DType::f32, Shape::of_rank(1)), "x");
  const std::vector<ValueId> inputs(twice ? 2 : 1, x);
  const NodeId node = graph->add_node(concat_def(), inputs, {{"axis", int64_t{0}}});
  graph->add_output(graph->node(node).output(0), "y");
  return graph;
}

OpSample sample(Random& random) {
  return {.inputs = {Tensor::scalar(draw_bool(random)), draw_tensor(random, DType::f32, {draw(random, 1, 4)})},
          .attributes = {{"then_branch", sample_branch(true)}, {"else_branch", sample_branch(false)}},
          .num_outputs = 1};
}

// In ONNX branches see the values around them: only the condition is an input.
void export_onnx(ExportNode& to) { to.num_captured = to.inputs.size() - 1; }

}  // namespace

const OpDef& if_def() {
  static const OpDef def{
      .name = "if",
      .doc = "Runs then_branch when cond holds, else_branch otherwise.",
      .inputs = {{"cond", "B", "One element."}, {"captured", "", "The inputs of both branches.", Arity::variadic}},
      .outputs = {{"outputs", "", "The outputs of the branch.", Arity::variadic}},
      .types = {{"B", dtypes::kBool}},
      .attributes = {{.name = "then_branch",
                      .type = AttributeType::graph,
                      .doc = "Run when cond is true; takes the captured values.",
                      .required = true},
                     {.name = "else_branch",
                      .type = AttributeType::graph,
                      .doc = "Run when cond is false; takes the captured values.",
                      .required = true}},
      .infer = infer,
      .evaluate = evaluate,
      .traits = {.control_flow = true},
      .onnx = {{.name = "If", .export_node = export_onnx}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
