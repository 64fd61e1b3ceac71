// SliceForm: what a slice takes along each axis, and what rules make of several.
#pragma once

#include <optional>
#include <vector>

#include "optimize/rules/rule.h"

namespace autograph {

/// Element i of the result is element first + i * step of an axis of `extent`.
struct SliceAxis {
  int64_t first = 0;
  int64_t step = 1;
  int64_t count = 0;
  int64_t extent = 0;

  bool is_whole() const { return first == 0 && step == 1 && count == extent; }
  /// Neighbours, in order.
  bool is_range() const { return step == 1; }
  int64_t end() const { return first + count; }
  friend bool operator==(const SliceAxis&, const SliceAxis&) = default;
};

/// By axis of the sliced value. Steps of axes with one element are 1.
using SliceForm = std::vector<SliceAxis>;

/// The form of a slice of static type; nothing when its positions are not constants.
std::optional<SliceForm> slice_form(const Graph& graph, NodeId slice);

/// The form that takes all of a value.
SliceForm whole_form(const Dims& dims);

/// The only axis along which the form does not take everything; nothing when there is none or more than one.
std::optional<size_t> only_axis(const SliceForm& form);

/// The slice of a slice.
SliceForm composed(const SliceForm& first, const SliceForm& second);

/// The part of an operand that a part of the result of an elementwise op needs: axes that broadcast stay as they are.
SliceForm form_of_operand(const SliceForm& result, const Dims& operand);

/// A slice of `x`; `x` itself when the form takes all of it.
ValueId add_slice(RuleBuilder& builder, ValueId x, const SliceForm& form);

}  // namespace autograph
