// Ops that look at whole rows: softmax and normalizations. What happens inside a row has no properties; scale and bias
// of normalizations are products and sums.
#include <algorithm>

#include "ops/defs.h"
#include "prove/verify/exact/exact_op.h"
#include "prove/verify/exact/prime_field.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

// x seen as [outer, extent, inner]: a row runs along `extent`.
struct Rows {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
};

int64_t axis_of(const ExactCall& call) { return front_axis(call.attributes.integer("axis"), call.input(0).rank()); }

// Calls row(first position, step) for each row.
template <class Row>
void for_each_row(const Rows& rows, Row&& row) {
  for (int64_t o = 0; o < rows.outer; ++o) {
    for (int64_t i = 0; i < rows.inner; ++i) row(o * rows.extent * rows.inner + i, rows.inner);
  }
}

// out = f(row, position in the row), where f is different for each op and attributes but the axis.
void opaque_rows(const ExactCall& call, const Rows& rows) {
  const std::string_view except[] = {"axis"};
  const OpaqueFunction opaque(call.op, call.attributes, except);
  std::vector<uint64_t> arguments(static_cast<size_t>(rows.extent) + 1);
  for_each_row(rows, [&](int64_t first, int64_t step) {
    for (int64_t k = 0; k < rows.extent; ++k) arguments[static_cast<size_t>(k)] = call.in(0)[first + k * step];
    for (int64_t k = 0; k < rows.extent; ++k) {
      arguments.back() = static_cast<uint64_t>(k);
      call.out()[first + k * step] = opaque(arguments);
    }
  });
}

// Among integers e^x is 3^x (exact_elementwise.cpp).
void softmax_of_integers(const ExactCall& call, const Rows& rows) {
  const auto exponential = [&](int64_t position) {
    const int64_t n = integer_of(call.in(0)[position]);
    const uint64_t result = field_power(field_of(int64_t{3}), static_cast<uint64_t>(n < 0 ? -n : n));
    return n < 0 ? field_inverse(result) : result;
  };
  for_each_row(rows, [&](int64_t first, int64_t step) {
    uint64_t sum = 0;
    for (int64_t k = 0; k < rows.extent; ++k) sum = field_add(sum, exponential(first + k * step));
    for (int64_t k = 0; k < rows.extent; ++k) {
      call.out()[first + k * step] = field_multiply(exponential(first + k * step), field_inverse(sum));
    }
  });
}

void softmax(const ExactCall& call) {
  const Dims& x = call.input(0).dims();
  const int64_t axis = axis_of(call);
  Rows rows;
  for (int64_t a = 0; a < call.input(0).rank(); ++a) {
    (a < axis ? rows.outer : a == axis ? rows.extent : rows.inner) *= x[static_cast<size_t>(a)];
  }
  const bool is_formula = &call.op == &softmax_def() && call.options.functions == Functions::on_integers;
  is_formula ? softmax_of_integers(call, rows) : opaque_rows(call, rows);
}

// Layer and RMS normalization: rows run over the axes from `axis` on.
void normalize_rows(const ExactCall& call) {
  if (call.outputs.size() > 1) return call_opaque(call);
  const Dims& x = call.input(0).dims();
  const int64_t axis = axis_of(call);
  Rows rows;
  for (int64_t a = 0; a < call.input(0).rank(); ++a) (a < axis ? rows.outer : rows.extent) *= x[static_cast<size_t>(a)];
  opaque_rows(call, rows);
  const BroadcastWalk walk(call.inputs, call.outputs[0].dims());
  for (int64_t i = 0; i < call.outputs[0].num_elements(); ++i) {
    uint64_t& y = call.out()[i];
    if (call.has_input(1)) y = field_multiply(y, call.in(1)[walk.position(1, i)]);
    if (call.has_input(2)) y = field_add(y, call.in(2)[walk.position(2, i)]);
  }
}

// (x - mean) / sqrt(var + epsilon) * scale + bias for each channel; the root is the op sqrt, which has no properties.
void batch_normalization(const ExactCall& call) {
  if (call.attributes.flag("training_mode")) return call_opaque(call);
  const Dims& x = call.input(0).dims();
  const int64_t channels = x.size() > 1 ? x[1] : 1;
  const int64_t elements = call.outputs[0].num_elements();
  const int64_t inner = channels == 0 || elements == 0 ? 1 : elements / (x[0] * channels);
  const OpaqueFunction root(sqrt_def(), {});
  const uint64_t epsilon = field_of(call.attributes.real("epsilon"));
  for (int64_t i = 0; i < elements; ++i) {
    const int64_t c = i / inner % channels;
    const uint64_t variance = field_add(call.in(4)[c], epsilon);
    const uint64_t factor = field_multiply(call.in(1)[c], field_inverse(root(std::span(&variance, 1))));
    const uint64_t centred = field_subtract(call.in(0)[i], call.in(3)[c]);
    call.out()[i] = field_add(field_multiply(centred, factor), call.in(2)[c]);
  }
}

}  // namespace

ExactFn find_exact_row(const OpDef& op) {
  if (&op == &softmax_def() || &op == &log_softmax_def() || &op == &hardmax_def()) return softmax;
  if (&op == &layer_normalization_def() || &op == &rms_normalization_def()) return normalize_rows;
  if (&op == &batch_normalization_def()) return batch_normalization;
  return nullptr;
}

}  // namespace autograph
