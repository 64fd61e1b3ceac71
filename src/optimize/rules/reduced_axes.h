// Axes of reductions as passes need them, on shapes with symbolic extents.
#pragma once

#include <optional>
#include <string_view>

#include "optimize/rules/rule.h"

namespace autograph {

/// The axis, counted from the front, when the constant `axes` names one alone of `x`.
std::optional<int64_t> single_axis(const RuleMatch& match, std::string_view x, std::string_view axes);

/// The first of the trailing axes, counted from the end (-1 is the last), when `axes` names all from there on.
std::optional<int64_t> trailing_axes(const RuleMatch& match, std::string_view x, std::string_view axes);

/// Does `axes` name all axes from the third on, and are there two of them or more?
bool are_spatial_axes(const RuleMatch& match, std::string_view x, std::string_view axes);

/// The extents of `x` from `axis` (counted from the end) on; nothing when they are not known.
std::optional<Dims> tail_dims(const Graph& graph, ValueId x, int64_t axis);

}  // namespace autograph
