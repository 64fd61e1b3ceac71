#include "optimize/rules/weight_range.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "autograph/op_def.h"
#include "ops/defs.h"

namespace autograph {
namespace {

constexpr int64_t kMaxElements = 4096;
constexpr int kMaxDepth = 8;

// Magnitudes of the elements that are not 0.
struct Range {
  double least = std::numeric_limits<double>::infinity();
  double largest = 0;
};

// Half of the digits of the largest and of the least number: a product of two factors is still a number.
Range moderate(DType dtype) {
  if (dtype == DType::f64) return {1e-150, 1e150};
  if (dtype == DType::f16) return {1e-2, 1e2};
  return {1e-15, 1e15};
}

std::optional<Range> range_of(const Tensor& tensor) {
  if (!dtypes::kFloat.contains(tensor.dtype()) || tensor.num_elements() > kMaxElements) return std::nullopt;
  Range range;
  for (const double element : tensor.to_f64()) {
    if (element == 0) continue;
    const double magnitude = std::isnan(element) ? std::numeric_limits<double>::infinity() : std::fabs(element);
    range.least = std::fmin(range.least, magnitude);
    range.largest = std::fmax(range.largest, magnitude);
  }
  return range;
}

// Of a value that depends on constants alone; nothing for others, and where it cannot be told from products and moves.
std::optional<Range> range_of(const Graph& graph, ValueId v, int depth) {
  const Value& value = graph.value(v);
  if (value.is_constant()) return range_of(value.constant());
  if (depth == 0 || !value.producer().is_valid()) return std::nullopt;
  const Node& node = graph.node(value.producer());
  const OpDef* op = &node.op();
  const bool is_product = op == &mul_def() || op == &div_def();
  if (!is_product && op != &neg_def() && op != &concat_def() && !op->traits.view) return std::nullopt;
  auto range = range_of(graph, node.input(0), depth - 1);
  if (!is_product && op != &concat_def()) return range;
  for (size_t slot = 1; range && slot < node.inputs().size(); ++slot) {
    const auto other = range_of(graph, node.input(slot), depth - 1);
    if (!other) return std::nullopt;
    if (op == &mul_def()) range = Range{range->least * other->least, range->largest * other->largest};
    if (op == &div_def()) range = Range{range->least / other->largest, range->largest / other->least};
    if (op == &concat_def()) {
      range = Range{std::fmin(range->least, other->least), std::fmax(range->largest, other->largest)};
    }
  }
  return range;
}

bool is_moderate(const Graph& graph, ValueId v) {
  const auto range = v.is_valid() && graph.type(v).is_tensor() ? range_of(graph, v, kMaxDepth) : std::nullopt;
  if (!range || range->largest == 0) return true;
  const Range bounds = moderate(graph.type(v).dtype());
  return range->least >= bounds.least && range->largest <= bounds.largest;
}

}  // namespace

bool have_moderate_factors(const Graph& graph, std::span<const NodeId> nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    const Node& node = graph.node(id);
    if (&node.op() != &mul_def() && &node.op() != &div_def()) return true;
    return is_moderate(graph, node.input(0)) && is_moderate(graph, node.input(1)) && is_moderate(graph, node.output(0));
  });
}

}  // namespace autograph
