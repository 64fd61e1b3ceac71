// update_rows: an update that leaves most rows of a table as they are writes the others alone.
//
//   update table = table - rate * (zeros + rows at indices)     becomes
//   update table = table with (its rows at indices - rate * rows) at indices
//
// Holds before: the update is a sum or difference of the table and its gradient times single numbers, as of gradient
// descent without momentum and weight decay. Rows of the gradient are zeros where nothing was read, and a finite number
// times zero changes nothing. What an optimiser does besides (moments, decay) touches every row; it is left as it is.
// After: the new table has the same bits. The rows of one index are added up first, in their order, so that they are
// subtracted once. Tables of which a quarter or more is read are left as they are.
#include "autograph/op_def.h"
#include "ops/defs.h"
#include "ops/index/row_gradient.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr int64_t kRowsForEachRead = 4;

// Which input of the node that makes the new table is the gradient; none where it is no sum or difference of the table.
std::optional<size_t> gradient_slot(const Node& node, ValueId table) {
  const bool is_sum = &node.op() == &add_def();
  if (!is_sum && &node.op() != &sub_def()) return std::nullopt;
  if (node.input(0) == table) return 1;
  return is_sum && node.input(1) == table ? std::optional<size_t>(0) : std::nullopt;
}

bool update_rows_of(Graph& graph, const StateUpdate& update) {
  const ValueId table = update.state;
  const NodeId producer = graph.value(update.value).producer();
  if (!producer.is_valid() || !same_tensor_type(graph.type(table), graph.type(update.value))) return false;
  const Node node = graph.node(producer);
  const auto slot = gradient_slot(node, table);
  if (!slot || graph.type(node.input(*slot)) != graph.type(table)) return false;
  const Var gradient(graph, node.input(*slot)), whole(graph, table);
  if (!whole.type().is_static() || whole.rank() == 0) return false;
  const auto rows = row_gradient(gradient, whole.dim(0) / kRowsForEachRead);
  if (!rows) return false;
  std::vector<Var> terms{rows->read(whole), rows->read(whole)};
  terms[*slot] = rows->rows;
  const Var now = rows->write(whole, apply(node.op(), terms, node.attributes()));
  replace_pattern(graph, update.value, now.id());
  return true;
}

}  // namespace

bool update_rows(Graph& graph, PassContext&) {
  bool changed = false;
  const std::vector<StateUpdate> updates = graph.updates();
  for (const StateUpdate& update : updates) changed |= update_rows_of(graph, update);
  return changed;
}

}  // namespace autograph
