// if: runs one of two nested graphs. Both take exactly the captured values, in the order of the inputs behind `cond`,
// and give as many outputs as the node has.
#include <array>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/control.h"
#include "base/check.h"
#include "ops/control/control_vjp.h"
#include "ops/control/merge_types.h"
#include "ops/control/nested_run.h"
#include "ops/control/slices.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

constexpr std::array<std::string_view, 2> kBranches{"then_branch", "else_branch"};

std::vector<Type> branch_types(const InferContext& context, std::string_view branch) {
  std::vector<Type> captured;
  for (size_t slot = 1; slot < context.num_inputs(); ++slot) captured.push_back(context.input(slot));
  return context.infer_nested(branch, captured);
}

// Types of both branches. Models test a shape and leave the branch for other shapes there: one that cannot run on these
// inputs has no types, and only a run that takes it fails. What neither can run on is an error at once.
std::array<std::vector<Type>, 2> types_of_branches(const InferContext& context) {
  const Tensor* condition = context.known_value(0);
  std::array<std::vector<Type>, 2> types;
  if (condition) {
    const size_t taken = read_condition("if", *condition) ? 0 : 1;
    types[taken] = branch_types(context, kBranches[taken]);
    return types;
  }
  try {
    types[0] = branch_types(context, kBranches[0]);
  } catch (const BudgetError&) {
    throw;
  } catch (const UserError&) {
    types[1] = branch_types(context, kBranches[1]);
    return types;
  }
  try {
    types[1] = branch_types(context, kBranches[1]);
  } catch (const BudgetError&) {
    throw;
  } catch (const UserError&) {
    types[1].clear();
  }
  return types;
}

void check_branch(const InferContext& context, std::string_view branch) {
  const Graph& body = *context.attributes().get<GraphRef>(branch);
  if (body.outputs().size() != context.num_outputs()) {
    context.fail<ValueError>(branch, fmt::format("expected {} outputs, one per output of the node, got {}",
                                                 context.num_outputs(), body.outputs().size()));
  }
  if (body.inputs().size() + 1 != context.num_inputs()) {
    context.fail<ValueError>(branch, fmt::format("expected {} inputs of the nested graph, got {}",
                                                 context.num_inputs() - 1, body.inputs().size()));
  }
}

void infer(InferContext& context) {
  const auto count = context.shape(0).num_elements();
  if (count.value_or(1) != 1) {
    context.fail<ShapeError>("cond", fmt::format("expected one element, got {}", to_string(context.shape(0))));
  }
  for (const std::string_view branch : kBranches) check_branch(context, branch);
  const auto [then_types, else_types] = types_of_branches(context);
  for (size_t k = 0; k < context.num_outputs(); ++k) {
    if (then_types.empty() || else_types.empty()) {
      context.set_output(k, then_types.empty() ? else_types[k] : then_types[k]);
    } else {
      context.set_output(k, merged_type(context, then_types[k], else_types[k], "branches"));
    }
  }
}

std::vector<Datum> evaluate(EvaluateContext& context) {
  std::vector<Datum> captured;
  for (size_t slot = 1; slot < context.num_inputs(); ++slot) captured.push_back(context.input(slot));
  const bool condition = read_condition("if", context.tensor(0));
  return context.run_nested(kBranches[condition ? 0 : 1], captured);
}

class PlannedIf final : public NestedRun {
 public:
  void run(const Args& args) const override {
    NestedSession& branch = *args.sessions[*args.inputs[0].data<bool>() ? 0 : 1];
    for (size_t slot = 1; slot < args.inputs.size(); ++slot) branch.bind_input(slot - 1, args.inputs[slot].raw());
    for (size_t k = 0; k < args.outputs.size(); ++k) branch.bind_output(k, args.outputs[k].raw());
    branch.run();
  }
};

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

std::unique_ptr<NestedRun> plan_if(const NestedCall& call) {
  const std::vector<Type> captured(call.inputs.begin() + 1, call.inputs.end());
  for (const std::string_view name : kBranches) {
    const PlannedBody* branch = call.plan_body(name, captured, captured.size());
    if (!branch) return nullptr;
    const std::unique_ptr<PlannedSession> session = branch->new_session();
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      if (!(session->output_type(k) == call.outputs[k])) return nullptr;
    }
  }
  return std::make_unique<PlannedIf>();
}

std::vector<Var> if_else(Var condition, const Graph& then_branch, const Graph& otherwise,
                         const std::vector<Var>& captured) {
  std::vector<Var> inputs{condition};
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  const auto num_outputs = static_cast<int>(then_branch.outputs().size());
  return apply_all(if_def(), inputs,
                   {{"then_branch", std::make_shared<const Graph>(then_branch)},
                    {"else_branch", std::make_shared<const Graph>(otherwise)}},
                   num_outputs);
}

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
      .vjp = if_vjp,
      .traits = {.control_flow = true},
      .onnx = {{.name = "If", .export_node = export_onnx}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
