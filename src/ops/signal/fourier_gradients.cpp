#include "ops/signal/fourier_gradients.h"

#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/signal.h"

namespace autograph {
namespace {

Var transformed(const Var& x, int64_t axis, bool inverse, bool onesided) {
  return dft(x, {}, constant_like(x, Tensor::scalar<int64_t>(axis)), inverse, onesided);
}

}  // namespace

Var fit_axis(const Var& x, int64_t axis, int64_t length) {
  const int64_t extent = x.dim(axis);
  if (extent == length) return x;
  if (extent > length) return slice(x, {0}, {length}, {axis});
  std::vector<int64_t> pads(static_cast<size_t>(2 * x.rank()));
  pads[static_cast<size_t>(x.rank() + axis)] = length - extent;
  return pad(x, pads);
}

Var transform_gradient(const Var& gy, int64_t axis, int64_t length, int64_t parts) {
  const Var g = transformed(fit_axis(gy, axis, length), axis, true, false) * static_cast<double>(length);
  return parts == 2 ? g : slice(g, {0}, {1}, {g.rank() - 1});
}

Var inverse_transform_gradient(const Var& gy, int64_t axis, int64_t length) {
  return transformed(gy, axis, false, false) / static_cast<double>(length);
}

// Every frequency counts twice, for its mirror, but those that are their own: the first, and of an even length the
// last.
Var real_inverse_transform_gradient(const Var& gy, int64_t axis, int64_t length) {
  const int64_t count = length / 2 + 1;
  std::vector<float> factors(static_cast<size_t>(count), 2.0F);
  factors.front() = 1;
  if (length % 2 == 0) factors.back() = 1;
  std::vector<int64_t> dims(static_cast<size_t>(gy.rank()), 1);
  dims[static_cast<size_t>(axis)] = count;
  const Var factor = cast(constant_like(gy, Tensor::of<float>(dims, factors)), gy.dtype());
  return transformed(gy, axis, false, true) * factor / static_cast<double>(length);
}

}  // namespace autograph
