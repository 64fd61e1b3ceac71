#include "optimize/rules/families/slice_form.h"

#include <algorithm>
#include <limits>

#include "ops/defs.h"
#include "ops/shape/axes.h"
#include "ops/shape/slice_range.h"
#include "optimize/match.h"
#include "optimize/rules/siblings.h"

namespace autograph {

std::optional<SliceForm> slice_form(const Graph& graph, NodeId slice) {
  const Node& node = graph.node(slice);
  const auto list = [&](size_t slot) { return integer_constants(graph, node.input(slot)); };
  const bool has_axes = node.input(3).is_valid(), has_steps = node.input(4).is_valid();
  const auto starts = list(1);
  const auto ends = list(2);
  const auto axes = has_axes ? list(3) : std::vector<int64_t>{};
  const auto steps = has_steps ? list(4) : std::vector<int64_t>{};
  if (!starts || !ends || !axes || !steps) return std::nullopt;
  SliceForm form = whole_form(dims_of(graph, node.input(0)));
  const auto rank = static_cast<int64_t>(form.size());
  for (size_t k = 0; k < starts->size(); ++k) {
    const int64_t axis = has_axes ? front_axis((*axes)[k], rank) : static_cast<int64_t>(k);
    SliceAxis& part = form[static_cast<size_t>(axis)];
    const SliceRange range = slice_range((*starts)[k], (*ends)[k], has_steps ? (*steps)[k] : 1, part.extent);
    part = {range.start, range.count > 1 ? range.step : 1, range.count, part.extent};
  }
  return form;
}

SliceForm whole_form(const Dims& dims) {
  SliceForm form;
  for (const int64_t extent : dims) form.push_back({0, 1, extent, extent});
  return form;
}

std::optional<size_t> only_axis(const SliceForm& form) {
  std::optional<size_t> found;
  for (size_t axis = 0; axis < form.size(); ++axis) {
    if (form[axis].is_whole()) continue;
    if (found) return std::nullopt;
    found = axis;
  }
  return found;
}

SliceForm composed(const SliceForm& first, const SliceForm& second) {
  SliceForm form = first;
  for (size_t axis = 0; axis < form.size(); ++axis) {
    form[axis].first += second[axis].first * first[axis].step;
    form[axis].count = second[axis].count;
    form[axis].step = form[axis].count > 1 ? first[axis].step * second[axis].step : 1;
  }
  return form;
}

SliceForm form_of_operand(const SliceForm& result, const Dims& operand) {
  SliceForm form = whole_form(operand);
  const size_t skipped = result.size() - operand.size();
  for (size_t axis = 0; axis < form.size(); ++axis) {
    if (operand[axis] == result[axis + skipped].extent) form[axis] = result[axis + skipped];
  }
  return form;
}

ValueId add_slice(RuleBuilder& builder, ValueId x, const SliceForm& form) {
  std::vector<int64_t> starts, ends, axes, steps;
  for (size_t axis = 0; axis < form.size(); ++axis) {
    const SliceAxis& part = form[axis];
    if (part.is_whole()) continue;
    const int64_t end = part.first + part.step * part.count;
    starts.push_back(part.first);
    // Below 0 positions count from the end: beyond the front needs a number that is clamped.
    ends.push_back(end < 0 ? std::numeric_limits<int64_t>::min() : end);
    axes.push_back(static_cast<int64_t>(axis));
    steps.push_back(part.step);
  }
  if (axes.empty()) return x;
  std::vector<ValueId> inputs{x, builder.integers(starts), builder.integers(ends), builder.integers(axes)};
  const bool has_steps = std::any_of(steps.begin(), steps.end(), [](int64_t step) { return step != 1; });
  if (has_steps) inputs.push_back(builder.integers(steps));
  return builder.add(slice_def(), std::move(inputs));
}

}  // namespace autograph
