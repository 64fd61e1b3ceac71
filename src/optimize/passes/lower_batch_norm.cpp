// lower_batch_norm: batch normalization with given statistics that found no weights to merge into becomes a factor
// and a sum per channel, which fuse_elementwise then computes together with what stands around them.
//
//   factor[c] = scale[c] / sqrt(var[c] + epsilon)      shift[c] = bias[c] - mean[c] * factor[c]
//   y = x * factor + shift
//
// Precondition: f32, constant statistics whose factors and shifts f32 holds, no training mode, known rank. Runs
// behind fold_batch_norm. Computed in f64 and rounded once.
#include <cmath>
#include <limits>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

bool matches(const Graph& graph, const Node& node) {
  if (&node.op() != &batch_normalization_def() || node.outputs().size() != 1) return false;
  if (node.attributes().flag("training_mode")) return false;
  const Type& x = graph.type(node.input(0));
  if (!x.is_tensor() || x.dtype() != DType::f32 || !x.shape().has_rank() || x.shape().rank() < 2) return false;
  for (size_t slot = 1; slot <= 4; ++slot) {
    if (!constant_f32(graph, node.input(slot))) return false;
  }
  return true;
}

// Does f32 hold the number? Tiny ones lose their digits, or all of it.
bool is_held(double x) {
  return x == 0 ||
         (std::fabs(x) >= std::numeric_limits<float>::min() && std::fabs(x) <= std::numeric_limits<float>::max());
}

bool replace(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const auto scale = constant_f32(graph, node.input(1))->elements<float>();
  const auto bias = constant_f32(graph, node.input(2))->elements<float>();
  const auto mean = constant_f32(graph, node.input(3))->elements<float>();
  const auto var = constant_f32(graph, node.input(4))->elements<float>();
  const double epsilon = node.attributes().real("epsilon");
  const ValueId x = node.input(0);
  const Provenance provenance = node.provenance();
  Dims dims(static_cast<size_t>(graph.type(x).shape().rank()), 1);
  dims[1] = static_cast<int64_t>(scale.size());
  Tensor factor = Tensor::empty(DType::f32, dims);
  Tensor shift = Tensor::empty(DType::f32, dims);
  for (size_t c = 0; c < scale.size(); ++c) {
    const double f = scale[c] / std::sqrt(static_cast<double>(var[c]) + epsilon);
    const double s = bias[c] - mean[c] * f;
    if (!is_held(f) || !(std::fabs(s) <= std::numeric_limits<float>::max())) return false;
    factor.mutable_data<float>()[c] = static_cast<float>(f);
    shift.mutable_data<float>()[c] = static_cast<float>(s);
  }
  const Var y = add(mul(Var(graph, x), constant(graph, std::move(factor))), constant(graph, std::move(shift)));
  graph.set_provenance(graph.value(y.id()).producer(), provenance);
  const NodeId product = graph.value(graph.node(graph.value(y.id()).producer()).input(0)).producer();
  graph.set_provenance(product, provenance);
  replace_value(graph, graph.node(id).output(0), y.id());
  graph.erase_node(id);
  return true;
}

}  // namespace

bool lower_batch_norm(Graph& graph, PassContext&) {
  return rewrite_nodes(graph, [&](NodeId id) { return matches(graph, graph.node(id)) && replace(graph, id); });
}

}  // namespace autograph
