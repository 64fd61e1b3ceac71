#include "support/graphs/random_graph.h"
#include "autograph/random.h"

#include <algorithm>

#include "base/checked_int.h"
#include "ops/sample.h"

namespace autograph {
namespace {

class Generator {
 public:
  explicit Generator(Random& random) : random_(random) {
    for (const OpDef* op : all_ops()) {
      if (is_drawable(*op)) ops_.push_back(op);
    }
  }

  TestGraph make(int num_nodes) {
    for (int i = 0; i < num_nodes; ++i) add_drawn_node();
    for (const NodeId node : result_.graph.nodes()) {
      for (const ValueId output : result_.graph.node(node).outputs()) {
        if (result_.graph.value(output).uses().empty()) result_.graph.add_output(output);
      }
    }
    return std::move(result_);
  }

 private:
  void add_drawn_node() {
    const OpDef& op = *ops_[static_cast<size_t>(draw(random_, 0, static_cast<int64_t>(ops_.size()) - 1))];
    const OpSample sample = op.sample(random_);
    std::vector<ValueId> inputs;
    for (size_t slot = 0; slot < sample.inputs.size(); ++slot) inputs.push_back(input_for(op, sample, slot));
    while (!inputs.empty() && !inputs.back().is_valid()) inputs.pop_back();
    NodeOptions options;
    options.num_outputs = sample.num_outputs;
    options.provenance = Provenance::named("n" + std::to_string(result_.graph.num_nodes()));
    NodeId node;
    try {
      node = result_.graph.add_node(op, std::move(inputs), sample.attributes, std::move(options));
    } catch (const UserError&) {
      // Folded values of the pool may be illegal here, such as 0 as the step of a range.
      return;
    }
    for (const ValueId output : result_.graph.node(node).outputs()) {
      const Type& type = result_.graph.type(output);
      if (type.is_static() && type.dtype() == DType::f32 && *type.shape().num_elements() > 0) pool_.push_back(output);
    }
  }

  // Only inputs that share the type variable of input 0 carry data; others may be scales, bounds or probabilities,
  // whose values must stay legal.
  ValueId input_for(const OpDef& op, const OpSample& sample, size_t slot) {
    const Datum& datum = sample.inputs[slot];
    if (!datum.is_present()) return {};
    const Tensor& tensor = datum.tensor();
    const auto type_var = [&op](size_t s) { return op.inputs[std::min(s, op.inputs.size() - 1)].type_var; };
    const bool is_data = tensor.dtype() == DType::f32 && type_var(slot) == type_var(0) && tensor.num_elements() > 0;
    if (is_data && draw(random_, 0, 9) < 8) {
      const ValueId value = adapted_from_pool(tensor.dims());
      if (value.is_valid()) return value;
    }
    if (is_shape_like(datum) || !is_data || draw_bool(random_)) return result_.graph.add_constant(tensor);
    result_.inputs.push_back(datum);
    return result_.graph.add_input(tensor.type(), "x" + std::to_string(result_.inputs.size()));
  }

  // A value of exactly `dims` made from an earlier one: itself, or its first elements under another shape.
  ValueId adapted_from_pool(const Dims& dims) {
    if (pool_.empty()) return {};
    const int64_t needed = checked_product(dims, "random_graph");
    const ValueId value = pool_[static_cast<size_t>(draw(random_, 0, static_cast<int64_t>(pool_.size()) - 1))];
    Graph& graph = result_.graph;
    const Dims have = graph.type(value).shape().static_dims();
    const int64_t count = checked_product(have, "random_graph");
    if (have == dims) return value;
    if (count < needed) return {};
    const auto vector = [&graph](const std::vector<int64_t>& list) { return graph.add_constant(Tensor::vector(list)); };
    const auto add = [&graph](const char* op, std::vector<ValueId> inputs) {
      return graph.node(graph.add_node(get_op(op), std::move(inputs))).output(0);
    };
    ValueId flat = add("reshape", {value, vector({count})});
    if (count > needed) flat = add("slice", {flat, vector({0}), vector({needed})});
    return add("reshape", {flat, vector(dims)});
  }

  Random& random_;
  std::vector<const OpDef*> ops_;
  std::vector<ValueId> pool_;
  TestGraph result_;
};

}  // namespace

bool is_drawable(const OpDef& op) {
  if (!op.sample || !op.traits.pure || op.traits.random || op.traits.control_flow) return false;
  Random random(1);
  for (int i = 0; i < 8; ++i) {
    for (const Datum& datum : op.sample(random).inputs) {
      if (datum.is_present() && !datum.is_tensor()) return false;
    }
  }
  return true;
}

TestGraph make_random_graph(Random& random, int num_nodes) { return Generator(random).make(num_nodes); }

}  // namespace autograph
