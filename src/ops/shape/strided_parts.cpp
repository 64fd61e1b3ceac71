#include "ops/shape/strided_parts.h"

#include "ops/defs.h"

namespace autograph {
namespace {

std::vector<Strided> parts_of_input(const OpDef& op, const OpCall& call) {
  if (op.traits.view) return {{0, dense_strides(call.output(0).dims())}};
  if (&op == &slice_def()) return {sliced_part(call)};
  if (&op == &transpose_def()) return {transposed_part(call)};
  if (&op == &split_def()) return split_parts(call);
  return {};
}

bool is_in_a_row(const Strided& part, const TensorView& output) {
  const std::vector<int64_t> dense = dense_strides(output.dims());
  for (size_t axis = 0; axis < dense.size(); ++axis) {
    if (output.dims()[axis] > 1 && part.strides[axis] != dense[axis]) return false;
  }
  return true;
}

}  // namespace

std::optional<std::vector<int64_t>> starts_in_input(const OpDef& op, const OpCall& call) {
  const std::vector<Strided> parts = parts_of_input(op, call);
  if (parts.empty() || parts.size() != call.outputs.size()) return std::nullopt;
  std::vector<int64_t> starts;
  for (size_t k = 0; k < parts.size(); ++k) {
    const TensorView& output = call.outputs[k];
    if (output.dtype() != call.input(0).dtype() || output.num_elements() > call.input(0).num_elements() ||
        !is_in_a_row(parts[k], output)) {
      return std::nullopt;
    }
    starts.push_back(output.num_elements() == 0 ? 0 : parts[k].start);
  }
  return starts;
}

}  // namespace autograph
