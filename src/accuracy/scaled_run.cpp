#include "accuracy/scaled_run.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "accuracy/nested_scales.h"
#include "autograph/builder.h"
#include "base/check.h"
#include "graph/infer_node.h"
#include "graph/nested/function_body.h"
#include "graph/run_reference.h"

namespace autograph {
namespace {

// Of a node of the reference that is no product: runs for its scales, and operations for an element beside its own.
constexpr double kRuns = 6;
constexpr double kFlopsOfElement = 10;
// Bytes of an element while its node runs: its scale, and copies in f64.
constexpr double kBytesOfElement = 32;
// Values of the middle of a graph are taken to be off by so many times what their own rounding makes them be off, the
// smallest ones as much as usual ones.
constexpr double kScaleBefore = 8;

std::vector<Datum> values_of(std::vector<ScaledDatum> scaled) {
  std::vector<Datum> values;
  for (ScaledDatum& datum : scaled) values.push_back(std::move(datum.value));
  return values;
}

// For ops that run nested graphs, or whose results have shapes of their own.
class ScaledEvaluation : public EvaluateContext {
 public:
  ScaledEvaluation(const Node& node, std::vector<Type> types, std::vector<Datum> inputs, const ErrorModel& model,
                   NestedScales& scales)
      : node_(node), types_(std::move(types)), inputs_(std::move(inputs)), model_(model), scales_(scales) {}
  const Attributes& attributes() const override { return node_.attributes(); }
  size_t num_inputs() const override { return inputs_.size(); }
  size_t num_outputs() const override { return node_.outputs().size(); }
  const Type& input_type(size_t slot) const override { return types_[slot]; }
  const Datum& input(size_t slot) const override {
    static const Datum kNothing;
    return slot < inputs_.size() ? inputs_[slot] : kNothing;
  }
  std::vector<Datum> run_nested(std::string_view attribute, const std::vector<Datum>& inputs) override {
    std::vector<ScaledDatum> scaled;
    for (const Datum& input : inputs) scaled.push_back(scales_.input_of_run(input));
    std::vector<ScaledDatum> results = run_scaled(*node_.attributes().get<GraphRef>(attribute), scaled, model_);
    scales_.add_run(results);
    return values_of(std::move(results));
  }
  Tensor allocate(DType dtype, Dims dims) override { return Tensor::empty(dtype, std::move(dims)); }

 private:
  const Node& node_;
  std::vector<Type> types_;
  std::vector<Datum> inputs_;
  const ErrorModel& model_;
  NestedScales& scales_;
};

double largest_of(const Tensor& tensor) {
  double largest = 0;
  for (const double x : tensor.to_f64()) {
    if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  }
  return largest;
}

class GraphRun {
 public:
  // `is_plain`, by node: its results have no scales; empty: none.
  GraphRun(const Graph& graph, const ErrorModel& model, std::vector<bool> is_plain = {})
      : graph_(graph),
        model_(model),
        is_plain_(std::move(is_plain)),
        values_(graph.value_capacity()),
        readers_(graph.value_capacity(), 0) {
    for (const NodeId id : graph.nodes()) {
      for (const ValueId v : graph.node(id).inputs()) {
        if (v.is_valid()) ++readers_[v.index];
      }
    }
    for (const ValueId v : graph.outputs()) ++readers_[v.index];
  }

  std::vector<ScaledDatum> run(const std::vector<ScaledDatum>& inputs, const std::function<bool()>& should_stop) {
    for (size_t i = 0; i < inputs.size(); ++i) values_[graph_.inputs()[i].index] = inputs[i];
    for (const ValueId v : graph_.constants()) values_[v.index] = {graph_.value(v).constant(), {}};
    for (const NodeId id : graph_.topological_order()) {
      if (should_stop && should_stop()) return {};
      run_node(graph_.node(id));
    }
    std::vector<ScaledDatum> outputs;
    for (const ValueId v : graph_.outputs()) {
      estimate_scale(v);
      outputs.push_back(values_[v.index]);
    }
    return outputs;
  }

 private:
  bool is_plain(NodeId id) const { return id.is_valid() && !is_plain_.empty() && is_plain_[id.index]; }

  void estimate_scale(ValueId v) {
    ScaledDatum& known = values_[v.index];
    if (!is_plain(graph_.value(v).producer()) || known.scale.is_present() || !known.value.is_tensor()) return;
    known.scale = usual_scale(known.value.tensor());
  }

  void run_node(const Node& node) {
    const bool has_scales = !is_plain(graph_.value(node.output(0)).producer());
    std::vector<ScaledDatum> inputs;
    std::vector<Type> types;
    for (const ValueId v : node.inputs()) {
      if (v.is_valid() && has_scales) estimate_scale(v);
      inputs.push_back(v.is_valid() ? values_[v.index] : ScaledDatum());
      const Datum& value = inputs.back().value;
      types.push_back(value.is_tensor() ? value.tensor().type() : v.is_valid() ? graph_.type(v) : Type());
    }
    std::vector<ScaledDatum> results = node.op().evaluate ? evaluate(node, inputs, std::move(types))
                                                          : run_tensors(node, inputs, std::move(types), has_scales);
    for (size_t k = 0; k < node.outputs().size(); ++k) {
      if (!has_scales) results[k].scale = Tensor();
      values_[node.output(k).index] = std::move(results[k]);
    }
    // Values are large: those that nobody reads any more go.
    for (const ValueId v : node.inputs()) {
      if (v.is_valid() && --readers_[v.index] == 0) values_[v.index] = {};
    }
  }

  std::vector<ScaledDatum> run_tensors(const Node& node, const std::vector<ScaledDatum>& inputs,
                                       std::vector<Type> types, bool has_scales) {
    if (!node.op().reference && !node.op().scalar) return run_decomposed(node, inputs, types);
    std::vector<ScaledTensor> operands;
    std::vector<Tensor> known;
    for (const ScaledDatum& input : inputs) {
      operands.push_back({input.value.is_present() ? input.value.tensor() : Tensor(), input.scale});
      known.push_back(operands.back().value);
    }
    const std::vector<Type> outputs = infer_call(node.op(), std::move(types), known, node.attributes(),
                                                 node.outputs().size(), node.provenance().to_string());
    std::vector<ScaledDatum> results;
    if (!has_scales) {
      for (Tensor& value : run_reference(node.op(), node.attributes(), known, outputs)) {
        results.push_back({std::move(value), {}});
      }
      return results;
    }
    for (ScaledTensor& result : run_scaled(node.op(), node.attributes(), operands, outputs, model_)) {
      results.push_back({std::move(result.value), std::move(result.scale)});
    }
    return results;
  }

  std::vector<ScaledDatum> run_decomposed(const Node& node, const std::vector<ScaledDatum>& inputs,
                                          const std::vector<Type>& types) {
    const FunctionBody body = body_of(node, types);
    std::vector<ScaledDatum> given;
    for (const size_t slot : body.inputs) given.push_back(inputs[slot]);
    return body.by_slot(autograph::run_scaled(body.graph, given, model_), node.outputs().size());
  }

  // Where an element comes from is followed as far as it can be (nested_scales.h). What is in sequences, what comes
  // from scans of a batch, and what the op itself has computed cannot: an element is off by a share of the largest one,
  // as large as the worst share of an input. That bounds the others, too: through many turns of a loop scales grow
  // without end, and would allow everything.
  std::vector<ScaledDatum> evaluate(const Node& node, const std::vector<ScaledDatum>& inputs, std::vector<Type> types) {
    double share = 1;
    for (const ScaledDatum& input : inputs) {
      if (!input.scale.is_present()) continue;
      const double largest = largest_of(input.value.tensor());
      if (largest > 0) share = std::max(share, largest_of(input.scale) / largest);
    }
    NestedScales scales(inputs);
    ScaledEvaluation context(node, std::move(types), values_of(inputs), model_, scales);
    std::vector<ScaledDatum> results;
    for (Datum& value : node.op().evaluate(context)) {
      ScaledDatum& result = results.emplace_back(ScaledDatum{std::move(value), {}});
      if (!result.value.is_tensor()) continue;
      const Tensor& tensor = result.value.tensor();
      const std::optional<Tensor> followed = scales.scale_of(tensor);
      if (followed) result.scale = *followed;
      if (!dtypes::kFloat.contains(tensor.dtype()) || (followed && !followed->is_present())) continue;
      std::vector<double> scale(static_cast<size_t>(tensor.num_elements()), share * largest_of(tensor));
      for (size_t i = 0; followed && i < scale.size(); ++i) scale[i] = std::min(scale[i], followed->data<double>()[i]);
      result.scale = Tensor::of<double>(tensor.dims(), scale);
    }
    return results;
  }

  const Graph& graph_;
  const ErrorModel& model_;
  const std::vector<bool> is_plain_;
  std::vector<ScaledDatum> values_;  // by value
  std::vector<int> readers_;         // by value: how many nodes and outputs will still read it
};

double elements_of(const Type& type) {
  return type.is_static() ? static_cast<double>(type.shape().num_elements().value_or(0)) : 0;
}

struct NodeCost {
  double flops = 0;
  double plain_flops = 0;  // without scales
  double made = 0;         // elements
};

NodeCost cost_of_node(const Graph& graph, const Node& node) {
  std::vector<Type> inputs;
  std::vector<Type> outputs;
  double made = 0;
  bool is_static = true;
  for (const ValueId v : node.inputs()) inputs.push_back(v.is_valid() ? graph.type(v) : Type());
  for (const ValueId v : node.outputs()) outputs.push_back(graph.type(v));
  for (const Type& type : inputs) is_static = is_static && (type.kind() == Type::Kind::none || type.is_static());
  for (const Type& type : outputs) {
    is_static = is_static && (type.kind() == Type::Kind::none || type.is_static());
    made += elements_of(type);
  }
  const double runs = node.op().traits.anchor ? 1 : kRuns;
  const double flops = is_static ? cost_of(node.op(), {node.attributes(), inputs, outputs}).flops : 0;
  const double of_run = flops + kFlopsOfElement * made;
  return {runs * of_run + kFlopsOfNode, of_run + kFlopsOfNode, made};
}

}  // namespace

std::vector<ScaledDatum> run_scaled(const Graph& graph, const std::vector<ScaledDatum>& inputs, const ErrorModel& model,
                                    const std::function<bool()>& should_stop) {
  return GraphRun(graph, model).run(inputs, should_stop);
}

std::vector<ScaledDatum> run_scaled_behind(const Graph& graph, const std::vector<NodeId>& tail,
                                           const std::vector<ScaledDatum>& inputs, const ErrorModel& model,
                                           const std::function<bool()>& should_stop) {
  std::vector<bool> is_plain(graph.node_capacity(), true);
  for (const NodeId id : tail) is_plain[id.index] = false;
  return GraphRun(graph, model, std::move(is_plain)).run(inputs, should_stop);
}

Tensor usual_scale(const Tensor& tensor) {
  if (!dtypes::kFloat.contains(tensor.dtype())) return {};
  std::vector<double> scale = tensor.to_f64();
  double squares = 0;
  for (double& x : scale) {
    x = std::isfinite(x) ? std::fabs(x) : 0;
    squares += x * x;
  }
  const double usual = scale.empty() ? 0 : std::sqrt(squares / static_cast<double>(scale.size()));
  for (double& x : scale) x = kScaleBefore * (x + usual);
  return Tensor::of<double>(tensor.dims(), scale);
}

std::vector<NodeId> last_nodes(const Graph& graph, double flops) {
  std::vector<NodeId> tail;
  const std::vector<NodeId> order = graph.topological_order();
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    flops -= cost_of_node(graph, graph.node(*id)).flops;
    if (flops < 0) break;
    tail.push_back(*id);
  }
  return tail;
}

ScaledRunCost cost_of_scaled_run(const Graph& graph) {
  ScaledRunCost cost;
  std::vector<int> readers(graph.value_capacity(), 0);
  for (const NodeId id : graph.nodes()) {
    for (const ValueId v : graph.node(id).inputs()) {
      if (v.is_valid()) ++readers[v.index];
    }
  }
  double alive = 0;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    const NodeCost of_node = cost_of_node(graph, node);
    cost.flops += of_node.flops;
    cost.plain_flops += of_node.plain_flops;
    alive += of_node.made;
    cost.bytes = std::max(cost.bytes, kBytesOfElement * alive);
    for (const ValueId v : node.inputs()) {
      if (v.is_valid() && --readers[v.index] == 0 && !graph.value(v).is_constant()) alive -= elements_of(graph.type(v));
    }
  }
  return cost;
}

}  // namespace autograph
