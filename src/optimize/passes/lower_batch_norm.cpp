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
#include "optimize/weight_scaling.h"

namespace autograph {
namespace {

// Does f32 hold the number? Tiny ones lose their digits, or all of it.
bool is_held(double x) {
  return x == 0 ||
         (std::fabs(x) >= std::numeric_limits<float>::min() && std::fabs(x) <= std::numeric_limits<float>::max());
}

bool replace(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const auto norm = read_batch_statistics(graph, node);
  if (!norm) return false;
  const Type type = graph.type(node.input(0));
  if (!type.is_tensor() || type.dtype() != DType::f32 || !type.shape().has_rank() || type.shape().rank() < 2) {
    return false;
  }
  const ValueId x = node.input(0);
  const Provenance provenance = node.provenance();
  Dims dims(static_cast<size_t>(type.shape().rank()), 1);
  dims[1] = static_cast<int64_t>(norm->factor.size());
  Tensor factor = Tensor::empty(DType::f32, dims);
  Tensor shift = Tensor::empty(DType::f32, dims);
  for (size_t c = 0; c < norm->factor.size(); ++c) {
    const double f = norm->factor[c];
    const double s = norm->bias[c] - norm->mean[c] * f;
    if (!is_held(f) || !(std::fabs(s) <= std::numeric_limits<float>::max())) return false;
    factor.mutable_data<float>()[c] = static_cast<float>(f);
    shift.mutable_data<float>()[c] = static_cast<float>(s);
  }
  const Var y = add(mul(Var(graph, x), constant(graph, std::move(factor))), constant(graph, std::move(shift)));
  graph.set_provenance(graph.value(y.id()).producer(), provenance);
  const NodeId product = graph.value(graph.node(graph.value(y.id()).producer()).input(0)).producer();
  graph.set_provenance(product, provenance);
  replace_node(graph, id, {y.id()});
  return true;
}

}  // namespace

bool lower_batch_norm(Graph& graph, PassContext&) {
  return rewrite_nodes(graph, [&](NodeId id) { return replace(graph, id); });
}

}  // namespace autograph
