#include "optimize/rules/reduced_axes.h"

#include <algorithm>
#include <numeric>

#include "optimize/match.h"

namespace autograph {
namespace {

// In rising order, counted from the end.
std::optional<std::vector<int64_t>> axes_from_end(const RuleMatch& match, std::string_view x, std::string_view axes) {
  auto list = integer_constants(match.graph(), match.value(axes));
  if (!list || list->empty()) return std::nullopt;
  const int64_t rank = match.type(x).shape().rank();
  for (int64_t& axis : *list) axis = axis < 0 ? axis : axis - rank;
  std::sort(list->begin(), list->end());
  return list;
}

bool are_trailing(const std::vector<int64_t>& axes) {
  std::vector<int64_t> expected(axes.size());
  std::iota(expected.begin(), expected.end(), -static_cast<int64_t>(axes.size()));
  return axes == expected;
}

}  // namespace

std::optional<int64_t> single_axis(const RuleMatch& match, std::string_view x, std::string_view axes) {
  const auto list = axes_from_end(match, x, axes);
  if (!list || list->size() != 1) return std::nullopt;
  return list->front() + match.type(x).shape().rank();
}

std::optional<int64_t> trailing_axes(const RuleMatch& match, std::string_view x, std::string_view axes) {
  const auto list = axes_from_end(match, x, axes);
  return list && are_trailing(*list) ? std::optional(list->front()) : std::nullopt;
}

bool are_spatial_axes(const RuleMatch& match, std::string_view x, std::string_view axes) {
  const auto list = axes_from_end(match, x, axes);
  const int64_t rank = match.type(x).shape().rank();
  return rank >= 4 && list && are_trailing(*list) && list->front() == 2 - rank;
}

std::optional<Dims> tail_dims(const Graph& graph, ValueId x, int64_t axis) {
  const Shape& shape = graph.type(x).shape();
  if (!shape.has_rank() || shape.rank() < -axis) return std::nullopt;
  Dims dims;
  for (int64_t a = shape.rank() + axis; a < shape.rank(); ++a) {
    if (!shape[a].is_known()) return std::nullopt;
    dims.push_back(shape[a].value());
  }
  return dims;
}

}  // namespace autograph
