// upcast_half: computes in f32 what a model says in f16 or bf16, where the device has kernels for f32 alone.
//
//   y = op(x, w)    in f16    becomes    y = cast(op(cast(x), w as f32))
//
// Ops next to each other stay in f32: no casts between them, and those of the model between f32 and half precision are
// left out. So every intermediate value has at least the precision that the model asks for, and the model's inputs and
// outputs keep their dtypes. What overflows in f16 may stay finite. Weights take twice the memory.
//
// What only moves from an input to an output stays as it is, as the caches of a decoder do: what is new is cast to it,
// and what is computed from it reads a cast.
//
// Left alone: ops that name a half dtype in an attribute, that run nested graphs, or that work on lists; and the whole
// graph where no op gains a kernel.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "autograph/error.h"
#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

bool is_half(const Graph& graph, ValueId v) {
  return v.is_valid() && graph.type(v).is_tensor() && is_half(graph.type(v).dtype());
}

template <class T>
void upcast_elements(const Tensor& from, Tensor& to) {
  const T* in = from.data<T>();
  float* out = to.mutable_data<float>();
  for (int64_t i = 0; i < from.num_elements(); ++i) out[i] = static_cast<float>(in[i]);
}

Tensor upcast(const Tensor& half) {
  Tensor result = Tensor::empty(DType::f32, half.dims());
  if (half.dtype() == DType::f16) {
    upcast_elements<Half>(half, result);
  } else {
    upcast_elements<BFloat16>(half, result);
  }
  return result;
}

// Ops whose output 0 has elements of input 0, and perhaps of others, and whose kernels take any dtype.
bool moves(const OpDef& op) {
  return is_one_of(op, {&concat_def(), &gather_def(), &identity_def(), &pad_def(), &reshape_def(), &slice_def(),
                        &squeeze_def(), &tensor_scatter_def(), &transpose_def(), &unsqueeze_def()});
}

// One run of the pass on a graph of its own.
class UpcastHalf {
 public:
  UpcastHalf(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  // Does any op have a kernel now that it had not before?
  bool run() {
    const std::vector<NodeId> nodes = graph_.topological_order();
    find_moved(nodes);
    for (const NodeId id : nodes) {
      if (!touches_half(id) || stays_.contains(id.index)) continue;
      if (&graph_.node(id).op() == &cast_def()) {
        upcast_cast(id);
      } else if (can_upcast(id)) {
        upcast_node(id);
      }
    }
    give_back();
    graph_.erase_dead();
    return gains_;
  }

 private:
  // Nodes that move an input of the graph on the way to an output.
  void find_moved(const std::vector<NodeId>& nodes) {
    std::set<uint32_t> from_inputs;  // values
    for (const ValueId v : graph_.inputs()) {
      if (is_half(graph_, v)) from_inputs.insert(v.index);
    }
    std::vector<NodeId> movers;
    for (const NodeId id : nodes) {
      const Node& node = graph_.node(id);
      if (!moves(node.op()) || !from_inputs.contains(node.input(0).index)) continue;
      from_inputs.insert(node.output(0).index);
      movers.push_back(id);
    }
    std::for_each(movers.rbegin(), movers.rend(), [&](NodeId id) {
      const ValueId y = graph_.node(id).output(0);
      const auto& uses = graph_.value(y).uses();
      const bool leads_out =
          graph_.num_output_uses(y) > 0 || std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
            return use.slot == 0 && stays_.contains(use.node.index);
          });
      if (leads_out) stays_.insert(id.index);
    });
  }

  bool touches_half(NodeId id) const {
    const auto half = [&](ValueId v) { return is_half(graph_, v); };
    const Node& node = graph_.node(id);
    return std::any_of(node.inputs().begin(), node.inputs().end(), half) ||
           std::any_of(node.outputs().begin(), node.outputs().end(), half);
  }

  bool can_upcast(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.op().traits.control_flow) return false;
    const auto is_list = [&](ValueId v) {
      return v.is_valid() && !graph_.type(v).is_tensor() && graph_.type(v).kind() != Type::Kind::none;
    };
    if (std::any_of(node.inputs().begin(), node.inputs().end(), is_list)) return false;
    if (std::any_of(node.outputs().begin(), node.outputs().end(), is_list)) return false;
    return std::none_of(node.op().attributes.begin(), node.op().attributes.end(), [&](const AttributeSpec& spec) {
      if (spec.type != AttributeType::dtype) return false;
      const DType* given = node.attributes().find_as<DType>(spec.name);
      return given && is_half(*given);
    });
  }

  ValueId cast(ValueId v, DType to, const Provenance& provenance) {
    return graph_.node(graph_.add_node(cast_def(), {v}, {{"to", to}}, {provenance, 1})).output(0);
  }

  // The value in f32.
  ValueId wide(ValueId v, const Provenance& provenance) {
    if (!is_half(graph_, v)) return v;
    const auto known = wide_.find(v.index);
    if (known != wide_.end()) return known->second;
    const Value& value = graph_.value(v);
    const ValueId result = value.is_constant() ? graph_.add_constant(upcast(value.constant()), value.name())
                                               : cast(v, DType::f32, provenance);
    wide_[v.index] = result;
    return result;
  }

  void upcast_cast(NodeId id) {
    const ValueId x = graph_.node(id).input(0), y = graph_.node(id).output(0);
    const Provenance provenance = graph_.node(id).provenance();
    const ValueId from = wide(x, provenance);
    const DType to = graph_.type(y).dtype();
    const DType wanted = is_half(to) ? DType::f32 : to;
    const ValueId result = graph_.type(from).dtype() == wanted ? from : cast(from, wanted, provenance);
    if (is_half(to)) {
      set_upcast(y, result);
    } else {
      replace_value(graph_, y, result);
    }
  }

  // From here on `result` stands for `y`.
  void set_upcast(ValueId y, ValueId result) {
    wide_[y.index] = result;
    computed_.emplace_back(y, result);
  }

  void upcast_node(NodeId id) {
    const bool had_kernel = context_.expects_kernel && context_.expects_kernel(graph_, id);
    const Provenance provenance = graph_.node(id).provenance();
    std::vector<ValueId> inputs = graph_.node(id).inputs();
    for (ValueId& v : inputs) v = wide(v, provenance);
    const std::vector<ValueId> outputs = graph_.node(id).outputs();
    NodeId added;
    try {
      added = graph_.add_node(graph_.node(id).op(), std::move(inputs), graph_.node(id).attributes(),
                              {provenance, static_cast<int>(outputs.size())});
    } catch (const UserError&) {
      return;  // the op does not take f32 there
    }
    for (size_t k = 0; k < outputs.size(); ++k) {
      const DType expected = is_half(graph_, outputs[k]) ? DType::f32 : graph_.type(outputs[k]).dtype();
      if (graph_.type(graph_.node(added).output(k)).dtype() != expected)
        return;  // its dtype does not follow the inputs
    }
    for (size_t k = 0; k < outputs.size(); ++k) {
      const ValueId result = graph_.node(added).output(k);
      if (is_half(graph_, outputs[k])) {
        set_upcast(outputs[k], result);
      } else {
        replace_value(graph_, outputs[k], result);
      }
    }
    gains_ = gains_ || (!had_kernel && context_.expects_kernel && context_.expects_kernel(graph_, added));
  }

  // Casts what is still read in half precision: outputs of the graph, and operands of nodes that stayed as they were.
  // What those nodes make is left alone: its f32 form is a cast of it, which would come to read itself.
  void give_back() {
    for (const auto& [y, result] : computed_) {
      if (num_reads(graph_, y) == 0) continue;
      const NodeId producer = graph_.value(y).producer();
      replace_value(graph_, y, cast(result, graph_.type(y).dtype(), graph_.node(producer).provenance()));
    }
  }

  Graph& graph_;
  const PassContext& context_;
  std::set<uint32_t> stays_;                    // nodes, by index
  std::unordered_map<uint32_t, ValueId> wide_;  // by the index of the value in half precision
  std::vector<std::pair<ValueId, ValueId>>
      computed_;  // those that f32 nodes now compute: in half precision, and in f32
  bool gains_ = false;
};

bool has_half(const Graph& graph) {
  const std::vector<NodeId> nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    const auto& inputs = graph.node(id).inputs();
    return std::any_of(inputs.begin(), inputs.end(), [&](ValueId v) { return is_half(graph, v); });
  });
}

}  // namespace

bool upcast_half(Graph& graph, PassContext& context) {
  if (!has_half(graph)) return false;
  Graph wide = graph;
  if (!UpcastHalf(wide, context).run()) return false;
  graph = std::move(wide);
  return true;
}

}  // namespace autograph
