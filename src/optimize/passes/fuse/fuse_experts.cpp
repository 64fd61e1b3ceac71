// fuse_experts: a mixture of experts that computes every expert for every token becomes one node, whose kernel computes
// what counts alone.
//
//   sum over i of (swish(x gate_i) * (x up_i)) down_i * factor_i    becomes    fused{...}(x, factors, weights)
//
// Holds before: the factors are the pieces of a tensor of zeros into which no more than half as many numbers as there
// are experts were scattered for each token, as routers do with their best ones. The device must have a kernel.
#include "ops/defs.h"
#include "optimize/body_builder.h"
#include "optimize/expert_mix.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

bool is_constant(const Graph& graph, ValueId v) { return graph.value(v).is_constant(); }

// A constant of zeros, or something times 0.
bool is_zero(const Graph& graph, ValueId v) {
  if (scalar_constant(graph, v) == 0.0) return true;
  if (const Tensor* constant = constant_f32(graph, v)) {
    for (int64_t i = 0; i < constant->num_elements(); ++i) {
      if (constant->data<float>()[i] != 0) return false;
    }
    return true;
  }
  const Node* product = made_by(graph, v, mul_def());
  return product &&
         (scalar_constant(graph, product->input(0)) == 0.0 || scalar_constant(graph, product->input(1)) == 0.0);
}

// Are the factors the pieces of one tensor, in the order of the experts, in which most are 0?
bool are_mostly_zero(const Graph& graph, const ExpertMix& mix) {
  const NodeId split = graph.value(mix.experts[0].factor).producer();
  if (!split.is_valid() || &graph.node(split).op() != &split_def()) return false;
  const auto count = static_cast<int64_t>(mix.experts.size());
  for (const Expert& expert : mix.experts) {
    if (graph.value(expert.factor).producer() != split) return false;
  }
  const Node* scatter = made_by(graph, graph.node(split).input(0), scatter_elements_def());
  if (!scatter || !is_zero(graph, scatter->input(0)) || !graph.type(scatter->input(2)).is_static()) return false;
  const int64_t rank = graph.type(scatter->input(0)).shape().rank(), axis = scatter->attributes().integer("axis");
  if (axis != -1 && axis != rank - 1) return false;
  const Dims updates = graph.type(scatter->input(2)).shape().static_dims();
  return scatter->attributes().text("reduction") == "none" && 2 * updates.back() <= count;
}

}  // namespace

bool fuse_experts(Graph& graph, PassContext& context) {
  if (!context.expects_kernel) return false;
  return rewrite_nodes(graph, [&](NodeId id) {
    if (&graph.node(id).op() != &sum_def()) return false;
    const auto mix = read_expert_mix(graph, id, is_constant);
    if (!mix || !are_mostly_zero(graph, *mix)) return false;
    BodyBuilder body(graph);
    for (const NodeId node : mix->nodes) body.add(graph.node(node));
    if (!body.expects_kernel(context)) return false;
    body.emit(graph);
    erase_unread(graph, id);
    return true;
  });
}

}  // namespace autograph
