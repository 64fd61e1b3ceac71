// Type inference over a whole graph, with propagation of small known values so that shape arithmetic resolves.
#include <algorithm>
#include <utility>

#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "graph/infer_node.h"
#include "graph/run_reference.h"

namespace autograph {
namespace {

// Elements of `value` when they are known without running.
const Tensor* find_known(const Graph& graph, const KnownValues& known, ValueId value) {
  if (graph.value(value).is_constant()) return &graph.value(value).constant();
  const auto it = known.find(value.index);
  return it == known.end() ? nullptr : &it->second;
}

bool small_enough(const Type& type, const InferOptions& options) {
  if (!type.is_static()) return false;
  const auto count = type.shape().num_elements();
  return count && *count <= options.max_known_elements;
}

// Inputs of a call that are known, without memory to stay within: they are small.
class KnownInputs final : public EvaluateContext {
 public:
  KnownInputs(const Graph& graph, const Node& node, std::vector<Datum> inputs)
      : graph_(graph), node_(node), inputs_(std::move(inputs)) {}
  const Attributes& attributes() const override { return node_.attributes(); }
  size_t num_inputs() const override { return inputs_.size(); }
  size_t num_outputs() const override { return node_.outputs().size(); }
  const Type& input_type(size_t slot) const override { return graph_.type(node_.inputs()[slot]); }
  const Datum& input(size_t slot) const override {
    static const Datum kNothing;
    return slot < inputs_.size() ? inputs_[slot] : kNothing;
  }
  std::vector<Datum> run_nested(std::string_view attribute, const std::vector<Datum>& /*inputs*/) override {
    throw UnsupportedError(fmt::format("[infer] {}: nested graph '{}' of a known value", node_.op().name, attribute));
  }
  Tensor allocate(DType dtype, Dims dims) override { return Tensor::empty(dtype, std::move(dims)); }

 private:
  const Graph& graph_;
  const Node& node_;
  std::vector<Datum> inputs_;
};

// What an op whose shapes follow from elements (the positions of what is not zero) gives for known ones; nothing where
// that is not small, or some of it no tensor.
std::vector<Tensor> evaluate_on(const Graph& graph, const Node& node, const std::vector<Tensor>& inputs,
                                const InferOptions& options) {
  std::vector<Datum> datums;
  for (const Tensor& input : inputs) {
    if (input.is_present() && input.num_elements() > options.max_known_elements) return {};
    datums.push_back(input.is_present() ? Datum(input) : Datum());
  }
  KnownInputs context(graph, node, std::move(datums));
  std::vector<Tensor> results;
  for (const Datum& result : node.op().evaluate(context)) {
    if (!result.is_tensor() || result.tensor().num_elements() > options.max_known_elements) return {};
    results.push_back(result.tensor());
  }
  return results;
}

// Computes the outputs of `id` now when all that they depend on is known and they are small.
void evaluate_if_known(Graph& graph, NodeId id, KnownValues& known, const InferOptions& options) {
  const Node& node = graph.node(id);
  const OpDef& op = node.op();
  if (!op.traits.pure || op.traits.random || op.traits.control_flow) return;
  if (!op.reference && !op.scalar && !op.evaluate) return;
  for (const ValueId output : node.outputs()) {
    if (!graph.type(output).is_tensor() || (!op.evaluate && !small_enough(graph.type(output), options))) return;
  }
  // Ops that read only the shape of an input (shape, size) need no elements.
  const bool shape_only = op.traits.reads_shape_only && graph.type(node.input(0)).is_static();
  std::vector<Tensor> inputs(node.inputs().size());
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    const ValueId input = node.inputs()[slot];
    if (!input.is_valid()) continue;
    if (const Tensor* value = find_known(graph, known, input)) {
      inputs[slot] = *value;
    } else if (shape_only) {
      const Type& type = graph.type(input);
      inputs[slot] = Tensor::wrap(type.dtype(), type.shape().static_dims(), nullptr, nullptr);
    } else {
      return;
    }
  }
  std::vector<Type> types;
  for (const ValueId output : node.outputs()) types.push_back(graph.type(output));
  std::vector<Tensor> results;
  try {
    results =
        op.evaluate ? evaluate_on(graph, node, inputs, options) : run_reference(op, node.attributes(), inputs, types);
  } catch (const BudgetError&) {
    throw;
  } catch (const UserError&) {
    return;  // an index out of range, say: belongs to the run, which names the node
  }
  for (size_t slot = 0; slot < results.size(); ++slot) {
    graph.set_type(node.outputs()[slot], results[slot].type());
    known[node.outputs()[slot].index] = results[slot];
  }
}

bool has_bodies(const Node& node) {
  const auto& attributes = node.attributes();
  return std::any_of(attributes.begin(), attributes.end(),
                     [](const auto& attribute) { return std::holds_alternative<GraphRef>(attribute.second); });
}

// Where a node comes from is spelled out when there is something to say about it. Nodes with bodies say it at once: a
// mistake would be looked for twice at each level that it passes on its way out.
std::vector<Type> infer_outputs(const Graph& graph, const Node& node, const KnownValues& known) {
  const auto infer = [&](const std::string& where) {
    return infer_node(node.op(), graph, node.inputs(), node.attributes(), node.outputs().size(), where, &known);
  };
  if (has_bodies(node)) return infer(node.provenance().to_string());
  try {
    return infer("");
  } catch (const Error&) {
    return infer(node.provenance().to_string());
  }
}

}  // namespace

KnownValues infer_types(Graph& graph, const InferOptions& options) {
  KnownValues known;
  for (const NodeId id : graph.topological_order()) {
    std::vector<Type> types = infer_outputs(graph, graph.node(id), known);
    for (size_t slot = 0; slot < types.size(); ++slot) {
      graph.set_type(graph.node(id).outputs()[slot], std::move(types[slot]));
    }
    evaluate_if_known(graph, id, known, options);
  }
  return known;
}

}  // namespace autograph
