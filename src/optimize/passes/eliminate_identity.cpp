// eliminate_identity: removes nodes whose output is their input.
//
// Views say so themselves (Traits::view): those that keep dtype and shape, such as identity or a reshape to the same
// shape. Of the ops that may move or change elements, these do nothing:
//
//   cast to its own dtype; expand to its own shape; slice of everything, forwards; pad by zeros only;
//   concat, sum, mean, max, min of one input; split into one; clip without bounds; dropout outside training
#include <algorithm>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

bool all_integers(const Graph& graph, ValueId v, bool (*holds)(int64_t)) {
  const auto values = integer_constants(graph, v);
  return values && std::all_of(values->begin(), values->end(), holds);
}

// Keeping the shape, a slice with positive steps takes everything.
bool is_whole_slice(const Graph& graph, const Node& node) {
  return !node.input(4).is_valid() || all_integers(graph, node.input(4), [](int64_t step) { return step > 0; });
}

bool is_training(const Graph& graph, ValueId mode) {
  if (!mode.is_valid()) return false;
  const Value& value = graph.value(mode);
  const bool is_off = value.is_constant() && value.type().dtype() == DType::boolean &&
                      value.constant().num_elements() == 1 && !*value.constant().data<bool>();
  return !is_off;
}

// Does a node that keeps dtype and shape give back its elements?
bool keeps_elements(const Graph& graph, const Node& node) {
  const OpDef* op = &node.op();
  if (op->traits.view || op == &cast_def() || op == &expand_def()) return true;
  if (op == &slice_def()) return is_whole_slice(graph, node);
  if (op == &pad_def()) return all_integers(graph, node.input(1), [](int64_t pad) { return pad == 0; });
  if (op == &clip_def()) return !node.input(1).is_valid() && !node.input(2).is_valid();
  if (op == &dropout_def()) return !is_training(graph, node.input(2));
  if (op == &split_def()) return node.outputs().size() == 1;
  const bool joins = is_one_of(*op, {&concat_def(), &sum_def(), &mean_def(), &max_def(), &min_def()});
  return joins && node.inputs().size() == 1;
}

bool is_identity(const Graph& graph, const Node& node) {
  if (node.inputs().empty() || !node.input(0).is_valid() || node.outputs().empty()) return false;
  for (size_t k = 1; k < node.outputs().size(); ++k) {
    if (num_reads(graph, node.output(k)) > 0) return false;
  }
  return keeps_elements(graph, node) && same_tensor_type(graph.type(node.input(0)), graph.type(node.output(0)));
}

}  // namespace

bool eliminate_identity(Graph& graph, PassContext&) {
  return rewrite_nodes(graph, [&](NodeId id) {
    if (!is_identity(graph, graph.node(id))) return false;
    replace_node(graph, id, {graph.node(id).input(0)});
    return true;
  });
}

}  // namespace autograph
