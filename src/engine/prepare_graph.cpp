#include "engine/prepare_graph.h"

#include <algorithm>
#include <optional>

#include "autograph/op_def.h"
#include "engine/compute_constant.h"
#include "graph/nested/copy_node.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// An extent to ask kernels about while it is not known.
constexpr int64_t kTypicalExtent = 8;

// Types with kTypicalExtent for extents that are not known; nothing when a rank is not known.
std::optional<std::vector<Type>> typical_types(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<Type> types;
  for (const ValueId v : values) {
    Type type = v.is_valid() ? graph.type(v) : Type();
    if (type.kind() != Type::Kind::none) {
      if (!type.is_tensor() || !type.shape().has_rank()) return std::nullopt;
      Shape shape = type.shape();
      for (Dim& dim : shape.dims()) dim = dim.value_or(kTypicalExtent);
      type = Type(type.dtype(), std::move(shape));
    }
    types.push_back(std::move(type));
  }
  return types;
}

// Would a kernel made for this very op take the node with extents such as these?
bool expects_own_kernel(const Device& device, const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!device.catalog().has_own_kernel(node.op().name)) return false;
  const auto inputs = typical_types(graph, node.inputs());
  const auto outputs = typical_types(graph, node.outputs());
  if (!inputs || !outputs) return false;
  std::vector<Tensor> constants;
  for (const ValueId v : node.inputs()) constants.push_back(v.is_valid() ? graph.value(v).constant() : Tensor());
  try {
    return device.catalog().accepts({node.op(), node.attributes(), *inputs, *outputs, constants, 1});
  } catch (const ShapeError&) {
    return false;  // extents that are not known yet may have to be others than typical ones
  }
}

// Would a kernel made for this very op take the node as it stands?
bool has_own_kernel(const Device& device, const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const auto unknown = [&](ValueId v) {
    return v.is_valid() && graph.type(v).kind() != Type::Kind::none && !graph.type(v).is_static();
  };
  if (std::any_of(node.inputs().begin(), node.inputs().end(), unknown)) return false;
  if (std::any_of(node.outputs().begin(), node.outputs().end(), unknown)) return false;
  return expects_own_kernel(device, graph, id);
}

// To name the node that makes a NaN, every node must run by itself.
bool uses_passes(const CompileOptions& options) {
  return options.expert.use_passes && options.check_nan != NanCheck::nodes;
}

}  // namespace

PassContext pass_context(const Device& device) {
  PassContext context;
  context.has_kernel = [&device](const Graph& g, NodeId id) { return has_own_kernel(device, g, id); };
  context.expects_kernel = [&device](const Graph& g, NodeId id) { return expects_own_kernel(device, g, id); };
  return context;
}

Graph prepare_graph(Graph graph, const Device& device, const CompileOptions& compile_options, PassHalf half,
                    std::vector<PassReport>* reports, std::function<void(const PassDef&, const Graph&)> on_change,
                    const std::unordered_set<const void*>* flushed) {
  PassContext context = pass_context(device);
  context.flushed = flushed;
  context.compute = [&](const OpDef& op, const Attributes& attributes, std::span<const Tensor> inputs,
                        std::span<const Type> types) {
    return compute_constant(device, compile_options, op, attributes, inputs, types);
  };
  PipelineOptions options;
  options.use_passes = uses_passes(compile_options);
  options.half = half;
  options.disabled = compile_options.expert.disabled_passes;
  options.on_change = std::move(on_change);
  std::vector<PassReport> done = run_passes(graph, context, options);
  if (reports) *reports = std::move(done);
  return graph;
}

Graph renumbered(const Graph& graph) {
  Graph result(graph.name());
  std::vector<ValueId> copies(graph.value_capacity());
  const auto copy_of = [&](ValueId v) { return copies[v.index]; };
  for (const ValueId v : graph.inputs()) copies[v.index] = result.add_input(graph.type(v), graph.value(v).name());
  for (const ValueId v : graph.states()) {
    copies[v.index] = result.add_state(graph.value(v).initial(), graph.value(v).name());
  }
  for (const ValueId v : graph.constants()) {
    copies[v.index] = result.add_constant(graph.value(v).constant(), graph.value(v).name());
  }
  for (const NodeId id : graph.topological_order()) {
    copy_node_typed(result, graph, graph.node(id), copies);
    for (const ValueId v : graph.node(id).outputs()) result.set_value_name(copy_of(v), graph.value(v).name());
  }
  for (size_t k = 0; k < graph.outputs().size(); ++k) {
    result.add_output(copy_of(graph.outputs()[k]), graph.output_name(k));
  }
  for (const StateUpdate& update : graph.updates()) result.set_update(copy_of(update.state), copy_of(update.value));
  for (const ValueId v : graph.kept()) result.keep(copy_of(v));
  return result;
}

OpenGraph prepare_open_graph(Graph graph, const Device& device, const CompileOptions& compile_options,
                             std::vector<PassReport>* reports) {
  graph = prepare_graph(std::move(graph), device, compile_options, PassHalf::both, reports);
  // Of weights into which others were folded, too: plans would look at them, and have copies of their own.
  const std::vector<std::string>& disabled = compile_options.expert.disabled_passes;
  if (uses_passes(compile_options) && std::ranges::find(disabled, "flush_subnormals") == disabled.end()) {
    PassContext context;
    flush_subnormals(graph, context);
  }
  OpenGraph open{renumbered(graph), {}};
  open.flushed = flushed_weights(open.graph);
  return open;
}

}  // namespace autograph
