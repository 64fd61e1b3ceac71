#include "ops/control/captures.h"

#include "base/check.h"

namespace autograph {

size_t num_formal_inputs(const InferContext& context) {
  const int64_t captures = context.attributes().integer("num_captures");
  const auto count = static_cast<int64_t>(context.num_inputs());
  if (captures < 0 || captures > count) {
    context.fail<ValueError>("num_captures", fmt::format("expected 0..{}, got {}", count, captures));
  }
  return static_cast<size_t>(count - captures);
}

size_t num_formal_inputs(const EvaluateContext& context) {
  return context.num_inputs() - static_cast<size_t>(context.attributes().integer("num_captures"));
}

void import_captures(ForeignNode& node) {
  if (node.num_captured > 0) node.attributes.set("num_captures", static_cast<int64_t>(node.num_captured));
}

void export_captures(ExportNode& to) {
  to.num_captured = static_cast<size_t>(to.node.attributes().get_or<int64_t>("num_captures", 0));
  to.attributes.erase("num_captures");
}

}  // namespace autograph
