// update_rows: an update that leaves most rows of a table as they are writes the others alone.
//
//   update table = table - rate * (zeros + rows at indices)     becomes
//   update table = table with (its rows at indices - rate * rows) at indices
//   reduce_sum(f(zeros + rows at indices)), f(0) = 0             becomes
//   reduce_sum(f(rows, those of one index added up))
//
// Holds before: the update is a sum or difference of the table and its gradient after elementwise ops that keep zeros,
// as of gradient descent without momentum and weight decay, or such a choice of rows between old and new ones as of
// lazy Adam; a single bool may choose between it and the old table, as dynamic loss scaling does. Rows of the gradient
// are zeros where nothing was read, and a finite number times zero changes nothing. What an optimiser does besides
// (moments, decay) touches every row; it is left as it is. The sums are those of clipping by norm and of looking for
// overflows. After: the new table has the same bits, sums are taken in another order. The rows of one index are added
// up first, in their order, so that they are subtracted once. Tables of which a quarter or more is read are left as
// they are.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/index/row_gradient.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr int64_t kRowsForEachRead = 4;

std::optional<RowGradient> few_rows(const Var& gradient) {
  if (!gradient.type().is_static() || gradient.rank() == 0) return std::nullopt;
  return row_gradient(gradient, gradient.dim(0) / kRowsForEachRead);
}

// What scatter_nd makes the new table of.
struct NewRows {
  Var positions;
  Var values;
};

// Which input of the node that makes the new table is the gradient; none where it is no sum or difference of the table.
std::optional<size_t> gradient_slot(const Node& node, ValueId table) {
  const bool is_sum = &node.op() == &add_def();
  if (!is_sum && &node.op() != &sub_def()) return std::nullopt;
  if (node.input(0) == table) return 1;
  return is_sum && node.input(1) == table ? std::optional<size_t>(0) : std::nullopt;
}

// Of a table and its gradient.
std::optional<NewRows> rows_of_sum(const Node& node, const Var& table) {
  Graph& graph = table.graph();
  const auto slot = gradient_slot(node, table.id());
  if (!slot || graph.type(node.input(*slot)) != table.type()) return std::nullopt;
  const auto rows = few_rows(Var(graph, node.input(*slot)));
  if (!rows) return std::nullopt;
  std::vector<Var> terms{rows->read(table), rows->read(table)};
  terms[*slot] = rows->rows;
  return NewRows{unsqueeze(rows->indices, {-1}), apply(node.op(), terms, node.attributes())};
}

// Of a table with other rows in places that are known, when `chosen`: by itself it is what is wanted.
std::optional<NewRows> rows_of_scatter(const Node& node, const Var& table, bool chosen) {
  const bool replaces = node.input(0) == table.id() && node.attributes().text("reduction") == "none";
  if (!chosen || !replaces) return std::nullopt;
  return NewRows{Var(table.graph(), node.input(1)), Var(table.graph(), node.input(2))};
}

std::optional<NewRows> new_rows(const Var& table, ValueId value, bool chosen = false);

// Of a choice between the table and another.
std::optional<NewRows> rows_of_choice(const Node& node, const Var& table, bool chosen) {
  const Var condition(table.graph(), node.input(0));
  const bool is_second = node.input(1) == table.id();
  const bool fits = is_second || node.input(2) == table.id();
  if (chosen || !fits || !condition.type().is_static() || condition.shape().num_elements() != 1) return std::nullopt;
  auto rows = new_rows(table, node.input(is_second ? 2 : 1), true);
  if (!rows) return std::nullopt;
  const Var before = gather_nd(table, rows->positions), now = rows->values;
  const Var scalar = reshape(condition, Dims{});
  rows->values = is_second ? where(scalar, before, now) : where(scalar, now, before);
  return rows;
}

std::optional<NewRows> new_rows(const Var& table, ValueId value, bool chosen) {
  const NodeId producer = table.graph().value(value).producer();
  if (!producer.is_valid()) return std::nullopt;
  const Node node = table.graph().node(producer);
  if (&node.op() == &where_def()) return rows_of_choice(node, table, chosen);
  if (&node.op() == &scatter_nd_def()) return rows_of_scatter(node, table, chosen);
  return rows_of_sum(node, table);
}

bool update_rows_of(Graph& graph, const StateUpdate& update) {
  const Var table(graph, update.state);
  if (!same_tensor_type(table.type(), graph.type(update.value))) return false;
  if (!table.type().is_static() || table.rank() == 0) return false;
  const auto rows = new_rows(table, update.value);
  if (!rows) return false;
  replace_pattern(graph, update.value, scatter_nd(table, rows->positions, rows->values).id());
  return true;
}

// Zeros add nothing to these.
bool is_sum_of_elements(const OpDef& op) {
  return is_one_of(op, {&reduce_sum_def(), &reduce_sum_square_def(), &reduce_l1_def(), &reduce_l2_def()});
}

bool sum_rows_of(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  if (!is_sum_of_elements(node.op()) || graph.type(node.output(0)).shape().num_elements() != 1) return false;
  const auto rows = few_rows(Var(graph, node.input(0)));
  if (!rows) return false;
  std::vector<Var> inputs{rows->once};
  if (node.inputs().size() > 1) inputs.push_back(node.input(1).is_valid() ? Var(graph, node.input(1)) : Var());
  replace_pattern(graph, node.output(0), apply(node.op(), inputs, node.attributes()).id());
  return true;
}

}  // namespace

bool update_rows(Graph& graph, PassContext&) {
  bool changed = false;
  const std::vector<StateUpdate> updates = graph.updates();
  for (const StateUpdate& update : updates) changed |= update_rows_of(graph, update);
  for (const NodeId id : graph.topological_order()) {
    if (graph.is_live(id)) changed |= sum_rows_of(graph, id);
  }
  return changed;
}

}  // namespace autograph
