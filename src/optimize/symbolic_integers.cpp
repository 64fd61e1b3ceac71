#include "optimize/symbolic_integers.h"

#include <algorithm>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"

namespace autograph {
namespace {

constexpr size_t kMaxElements = 64;

using Elements = std::vector<SymbolicInteger>;

Dim as_dim(const SymbolicInteger& element) { return element.number ? Dim(*element.number) : element.symbol; }

// Sums and products of extents; numbers below 0 only among numbers.
SymbolicInteger combine(const OpDef& op, const SymbolicInteger& a, const SymbolicInteger& b) {
  const bool are_extents = a.number.value_or(0) >= 0 && b.number.value_or(0) >= 0;
  if (!are_extents || a.is_unknown() || b.is_unknown()) return Dim::unknown();
  // Differences may fall below 0, which no Dim can hold.
  if (&op == &sub_def()) return a.number && b.number ? SymbolicInteger(*a.number - *b.number) : Dim::unknown();
  if (&op == &div_def()) {
    return b.number && *b.number > 0 ? SymbolicInteger(floor_div(as_dim(a), *b.number)) : Dim::unknown();
  }
  return &op == &add_def() ? as_dim(a) + as_dim(b) : as_dim(a) * as_dim(b);
}

int64_t clamped(int64_t index, size_t extent) {
  const auto size = static_cast<int64_t>(extent);
  if (index < -size) return 0;
  if (index < 0) index += size;
  return std::min(index, size);
}

}  // namespace

SymbolicInteger::SymbolicInteger(const Dim& dim) : symbol(dim) {
  if (dim.is_known()) number = dim.value();
}

const std::vector<SymbolicInteger>* SymbolicIntegers::find(ValueId v) {
  if (!v.is_valid()) return nullptr;
  if (const auto it = known_.find(v.index); it != known_.end()) return &it->second;
  const Value& value = graph_.value(v);
  if (!value.is_constant() || static_cast<size_t>(value.constant().num_elements()) > kMaxElements) return nullptr;
  const auto numbers = integer_constants(graph_, v);
  if (!numbers || value.constant().rank() > 1) return nullptr;
  return &known_.emplace(v.index, Elements(numbers->begin(), numbers->end())).first->second;
}

void SymbolicIntegers::visit(NodeId id) {
  const Node& node = graph_.node(id);
  if (node.outputs().size() != 1) return;
  const Type& type = graph_.type(node.output(0));
  if (!type.is_tensor() || !dtypes::kIndex.contains(type.dtype())) return;
  if (!type.shape().has_rank() || type.shape().rank() > 1) return;
  auto elements = evaluate(node);
  if (elements && elements->size() <= kMaxElements) known_.insert_or_assign(node.output(0).index, std::move(*elements));
}

std::optional<Elements> SymbolicIntegers::evaluate(const Node& node) {
  const OpDef* op = &node.op();
  if (op == &shape_def()) return evaluate_shape(node);
  if (op == &gather_def()) return evaluate_gather(node);
  if (op == &slice_def()) return evaluate_slice(node);
  if (op == &concat_def()) return evaluate_concat(node);
  if (op == &add_def() || op == &sub_def() || op == &mul_def() || op == &div_def()) return evaluate_arithmetic(node);
  if (!op->traits.view && op != &cast_def()) return std::nullopt;
  const Elements* same = find(node.input(0));
  return same ? std::optional(*same) : std::nullopt;
}

std::optional<Elements> SymbolicIntegers::evaluate_shape(const Node& node) const {
  const Type& type = graph_.type(node.input(0));
  if (!type.is_tensor() || !type.shape().has_rank()) return std::nullopt;
  const std::vector<Dim>& dims = type.shape().dims();
  const auto begin = clamped(node.attributes().get_or<int64_t>("start", 0), dims.size());
  const auto end = clamped(node.attributes().get_or<int64_t>("end", static_cast<int64_t>(dims.size())), dims.size());
  Elements elements;
  for (int64_t k = begin; k < end; ++k) elements.emplace_back(dims[static_cast<size_t>(k)]);
  return elements;
}

std::optional<Elements> SymbolicIntegers::evaluate_gather(const Node& node) {
  const Elements* data = find(node.input(0));
  const auto indices = integer_constants(graph_, node.input(1));
  if (!data || !indices || graph_.type(node.input(0)).shape().rank() != 1) return std::nullopt;
  Elements elements;
  for (int64_t index : *indices) {
    if (index < 0) index += static_cast<int64_t>(data->size());
    if (index < 0 || index >= static_cast<int64_t>(data->size())) return std::nullopt;
    elements.push_back((*data)[static_cast<size_t>(index)]);
  }
  return elements;
}

std::optional<Elements> SymbolicIntegers::evaluate_slice(const Node& node) {
  const Elements* data = find(node.input(0));
  const auto starts = integer_constants(graph_, node.input(1));
  const auto ends = integer_constants(graph_, node.input(2));
  if (!data || !starts || !ends || starts->size() != 1 || ends->size() != 1) return std::nullopt;
  if (node.input(4).is_valid() && integer_constants(graph_, node.input(4)) != std::vector<int64_t>{1}) {
    return std::nullopt;
  }
  Elements elements;
  for (int64_t k = clamped(starts->front(), data->size()); k < clamped(ends->front(), data->size()); ++k) {
    elements.push_back((*data)[static_cast<size_t>(k)]);
  }
  return elements;
}

std::optional<Elements> SymbolicIntegers::evaluate_concat(const Node& node) {
  Elements elements;
  for (const ValueId v : node.inputs()) {
    const Elements* part = find(v);
    if (!part) return std::nullopt;
    elements.insert(elements.end(), part->begin(), part->end());
  }
  return elements;
}

std::optional<Elements> SymbolicIntegers::evaluate_arithmetic(const Node& node) {
  const Elements* a = find(node.input(0));
  const Elements* b = find(node.input(1));
  if (!a || !b || a->empty() || b->empty()) return std::nullopt;
  if (a->size() != b->size() && a->size() != 1 && b->size() != 1) return std::nullopt;
  Elements elements;
  for (size_t k = 0; k < std::max(a->size(), b->size()); ++k) {
    elements.push_back(combine(node.op(), (*a)[a->size() == 1 ? 0 : k], (*b)[b->size() == 1 ? 0 : k]));
  }
  return elements;
}

std::optional<std::vector<int64_t>> reshape_target(const std::vector<SymbolicInteger>& extents, const Shape& x) {
  std::vector<int64_t> target;
  int64_t copied = 0;
  int64_t worked_out = 0;
  bool has_own_minus_one = false;
  for (size_t k = 0; k < extents.size(); ++k) {
    const SymbolicInteger& extent = extents[k];
    if (extent.number) {
      if (*extent.number == 0) return std::nullopt;
      has_own_minus_one = has_own_minus_one || *extent.number < 0;
      target.push_back(*extent.number);
    } else if (k < x.dims().size() && extent.symbol.same_as(x.dims()[k])) {
      target.push_back(0);
      ++copied;
    } else {
      target.push_back(-1);
      ++worked_out;
    }
  }
  const bool is_certain = worked_out == 0 || (worked_out == 1 && copied == 0 && !has_own_minus_one);
  return is_certain ? std::optional(target) : std::nullopt;
}

}  // namespace autograph
