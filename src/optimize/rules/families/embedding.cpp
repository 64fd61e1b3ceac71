// Look-ups in several tables become one in all of them, as recommenders with a table for each category have them.
#include <algorithm>
#include <optional>

#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/siblings.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

using enum RuleClass;

struct LookUp {
  NodeId node;
  ValueId table, index;
};

// gather[axis=0] of rows of a weight matrix, read once.
std::optional<LookUp> look_up(const Graph& graph, ValueId value) {
  const NodeId node = producer_of_op(graph, value, gather_def());
  if (!node.is_valid() || !has_one_reader(graph, value)) return std::nullopt;
  const ValueId table = graph.node(node).input(0), index = graph.node(node).input(1);
  if (!is_weight(graph, table) || is_weight(graph, index)) return std::nullopt;
  if (!graph.type(table).is_static() || !graph.type(index).is_static()) return std::nullopt;
  if (graph.type(table).shape().rank() != 2 || graph.type(index).shape().rank() < 1) return std::nullopt;
  if (graph.type(index).dtype() != DType::i64 || axis_of(graph, node) != 0) return std::nullopt;
  return LookUp{node, table, index};
}

bool are_alike(const Graph& graph, const LookUp& a, const LookUp& b) {
  return graph.type(a.table) == graph.type(b.table) && graph.type(a.index) == graph.type(b.index);
}

// The longest run of neighbours among xs that are look-ups of a kind: where it begins, and the look-ups.
std::pair<size_t, std::vector<LookUp>> longest_run(const RuleMatch& match) {
  const Graph& graph = match.graph();
  const std::vector<ValueId> values = match.list("xs");
  std::pair<size_t, std::vector<LookUp>> best{0, {}}, run{0, {}};
  for (size_t i = 0; i < values.size(); ++i) {
    const auto found = look_up(graph, values[i]);
    if (!found || run.second.empty() || !are_alike(graph, run.second.front(), *found)) run = {i, {}};
    if (found) run.second.push_back(*found);
    if (run.second.size() > best.second.size()) best = run;
  }
  const int64_t axis = match.integer("k"), rank = graph.type(match.value("c")).shape().rank();
  const bool is_last = front_axis(axis, rank) == rank - 1;
  if (!is_last || best.second.size() < 2) best.second.clear();
  return best;
}

// The rows of all look-ups, side by side.
ValueId rows_of(RuleBuilder& builder, const std::vector<LookUp>& look_ups) {
  std::vector<ValueId> tables, indices;
  for (const LookUp& one : look_ups) {
    tables.push_back(one.table);
    indices.push_back(one.index);
  }
  const auto count = static_cast<int64_t>(look_ups.size());
  const Dims table = builder.dims(tables[0]);
  const Dims index = builder.dims(indices[0]);
  Dims each = index;
  each.insert(each.begin(), count);
  each.push_back(1);
  const ValueId all_tables = builder.reshape(builder.concat(tables, 0), {count, table[0], table[1]});
  const ValueId all_indices = builder.reshape(builder.concat(indices, 0), each);
  // [look-up, index..., column]
  ValueId rows = builder.add(gather_nd_def(), {all_tables, all_indices}, {{"batch_dims", int64_t{1}}});
  Dims result = index;
  result.push_back(count * table[1]);
  if (element_count(index) > 1) {
    std::vector<int64_t> perm;
    for (size_t axis = 1; axis <= index.size(); ++axis) perm.push_back(static_cast<int64_t>(axis));
    perm.push_back(0);
    perm.push_back(static_cast<int64_t>(index.size()) + 1);
    rows = builder.transpose(rows, perm);
  }
  return builder.reshape(rows, result);
}

std::vector<ValueId> join_look_ups(RuleBuilder& builder) {
  const auto [begin, look_ups] = longest_run(builder.match());
  for (const LookUp& one : look_ups) builder.include(one.node);
  std::vector<ValueId> values = builder.match().list("xs");
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto end = first + static_cast<std::ptrdiff_t>(look_ups.size());
  *first = rows_of(builder, look_ups);
  values.erase(first + 1, end);
  return {builder.concat(values, builder.match().integer("k"))};
}

const Rule kRules[] = {
    // [V[i], W[j], ...] -> rows of [V, W, ...]
    {.name = "embedding.join_tables",
     .before = "c = concat[axis=k](xs...)",
     .after = "where xs = gather[axis=0](ts, is): t = concat[axis=0](ts...) and i = concat[axis=0](is...), as stacks; "
              "c = gather_nd[batch_dims=1](t, i), look-ups behind the other axes",
     .guard_doc = "k is the last axis; two or more neighbours among xs look rows up in weight matrices of one type, by "
                  "i64 indices of one shape that are no weights, and are read here alone",
     .guard = [](const RuleMatch& match) { return !longest_run(match).second.empty(); },
     .build = join_look_ups,
     .dtypes = dtypes::kAll},
};

}  // namespace

std::span<const Rule> embedding_rules() { return kRules; }

}  // namespace autograph
