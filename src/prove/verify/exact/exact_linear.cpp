// Exact matmul, gemm and conv: loops straight from the formulas.
#include <algorithm>

#include "ops/defs.h"
#include "ops/linear/matmul_shape.h"
#include "ops/window/window_geometry.h"
#include "prove/verify/exact/exact_op.h"
#include "prove/verify/exact/prime_field.h"

namespace autograph {
namespace {

void matmul(const ExactCall& call) {
  const MatmulWalk walk = walk_matmul(call.input(0).view(), call.input(1).view());
  const auto [rows, inner, columns] = walk.size;
  uint64_t* y = call.out();
  for (size_t matrix = 0; matrix < walk.a_matrix.size(); ++matrix) {
    const uint64_t* left = call.in(0) + walk.a_matrix[matrix] * rows * inner;
    const uint64_t* right = call.in(1) + walk.b_matrix[matrix] * inner * columns;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j, ++y) {
        for (int64_t k = 0; k < inner; ++k) {
          *y = field_add(*y, field_multiply(left[i * inner + k], right[k * columns + j]));
        }
      }
    }
  }
}

void gemm(const ExactCall& call) {
  const bool transpose_a = call.attributes.flag("transA");
  const bool transpose_b = call.attributes.flag("transB");
  const Dims& a = call.input(0).dims();
  const Dims& b = call.input(1).dims();
  const Dims& y = call.outputs[0].dims();
  const int64_t inner = transpose_a ? a[0] : a[1];
  const uint64_t alpha = field_of(call.attributes.real("alpha"));
  const uint64_t beta = field_of(call.attributes.real("beta"));
  const BroadcastWalk walk(call.inputs, y);
  for (int64_t i = 0; i < y[0]; ++i) {
    for (int64_t j = 0; j < y[1]; ++j) {
      uint64_t sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        const uint64_t left = call.in(0)[transpose_a ? k * a[1] + i : i * a[1] + k];
        const uint64_t right = call.in(1)[transpose_b ? j * b[1] + k : k * b[1] + j];
        sum = field_add(sum, field_multiply(left, right));
      }
      sum = field_multiply(alpha, sum);
      const int64_t o = i * y[1] + j;
      if (call.has_input(2)) sum = field_add(sum, field_multiply(beta, call.in(2)[walk.position(2, o)]));
      call.out()[o] = sum;
    }
  }
}

// Sum over the kernel positions of channel c: w[...] * x[...], both given by their first element.
uint64_t sum_taps(std::span<const WindowAxis> axes, std::span<const int64_t> at, const uint64_t* x, const uint64_t* w) {
  uint64_t sum = 0;
  for_each_tap(axes, at, [&](int64_t tap, int64_t input) { sum = field_add(sum, field_multiply(x[input], w[tap])); });
  return sum;
}

void conv(const ExactCall& call) {
  const Dims& x = call.input(0).dims();
  const Dims& w = call.input(1).dims();
  const Dims& y = call.outputs[0].dims();
  if (call.outputs[0].num_elements() == 0) return;
  const int64_t group = call.attributes.integer("group");
  const Dims kernel(w.begin() + 2, w.end());
  const auto axes = resolve_windows(window_spec(call.attributes, kernel), std::span(x).subspan(2));
  const int64_t image = call.input(0).num_elements() / std::max<int64_t>(x[0] * x[1], 1);
  const int64_t filter = call.input(1).num_elements() / std::max<int64_t>(w[0] * w[1], 1);
  const Dims positions(y.begin() + 2, y.end());
  uint64_t* out = call.out();
  for (int64_t n = 0; n < y[0]; ++n) {
    for (int64_t m = 0; m < y[1]; ++m) {
      const int64_t first_channel = m / (y[1] / group) * w[1];
      Dims at(positions.size(), 0);
      do {
        uint64_t sum = call.has_input(2) ? call.in(2)[m] : 0;
        for (int64_t c = 0; c < w[1]; ++c) {
          sum = field_add(sum, sum_taps(axes, at, call.in(0) + (n * x[1] + first_channel + c) * image,
                                        call.in(1) + (m * w[1] + c) * filter));
        }
        *out++ = sum;
      } while (next_index(at, positions));
    }
  }
}

}  // namespace

ExactFn find_exact_linear(const OpDef& op) {
  if (&op == &matmul_def()) return matmul;
  if (&op == &gemm_def()) return gemm;
  if (&op == &conv_def()) return conv;
  return nullptr;
}

}  // namespace autograph
