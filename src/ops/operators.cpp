// The operators of Var: the arithmetic ops under their usual signs, and the part at a position.
#include <limits>

#include "autograph/builder.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "base/check.h"

namespace autograph {

Var Var::operator[](int64_t index) const {
  AG_CHECK_USER(is_valid() && type().is_tensor() && shape().has_rank() && rank() > 0, ShapeError,
                "[index] value: expected a tensor of rank 1 or more, got {}",
                is_valid() ? to_string(type()) : "nothing");
  const Dim& extent = shape()[0];
  AG_CHECK_USER(!extent.is_known() || (index >= -extent.value() && index < extent.value()), ValueError,
                "[index] position: expected {}..{} for {}, got {}", -extent.value(), extent.value() - 1,
                to_string(type()), index);
  const int64_t end = index == -1 ? std::numeric_limits<int64_t>::max() : index + 1;
  return squeeze(slice(*this, {index}, {end}, {0}), {0});
}

Var operator-(const Var& x) { return neg(x); }
Var operator+(const Var& a, const Var& b) { return add(a, b); }
Var operator-(const Var& a, const Var& b) { return sub(a, b); }
Var operator*(const Var& a, const Var& b) { return mul(a, b); }
Var operator/(const Var& a, const Var& b) { return div(a, b); }
Var operator+(const Var& a, Number b) { return add(a, scalar_like(a, b)); }
Var operator-(const Var& a, Number b) { return sub(a, scalar_like(a, b)); }
Var operator*(const Var& a, Number b) { return mul(a, scalar_like(a, b)); }
Var operator/(const Var& a, Number b) { return div(a, scalar_like(a, b)); }
Var operator+(Number a, const Var& b) { return add(scalar_like(b, a), b); }
Var operator-(Number a, const Var& b) { return sub(scalar_like(b, a), b); }
Var operator*(Number a, const Var& b) { return mul(scalar_like(b, a), b); }
Var operator/(Number a, const Var& b) { return div(scalar_like(b, a), b); }

Var& operator+=(Var& a, const Var& b) { return a = a + b; }
Var& operator-=(Var& a, const Var& b) { return a = a - b; }
Var& operator*=(Var& a, const Var& b) { return a = a * b; }
Var& operator/=(Var& a, const Var& b) { return a = a / b; }
Var& operator+=(Var& a, Number b) { return a = a + b; }
Var& operator-=(Var& a, Number b) { return a = a - b; }
Var& operator*=(Var& a, Number b) { return a = a * b; }
Var& operator/=(Var& a, Number b) { return a = a / b; }

Var operator<(const Var& a, const Var& b) { return less(a, b); }
Var operator>(const Var& a, const Var& b) { return greater(a, b); }
Var operator<=(const Var& a, const Var& b) { return less_or_equal(a, b); }
Var operator>=(const Var& a, const Var& b) { return greater_or_equal(a, b); }
Var operator<(const Var& a, Number b) { return less(a, scalar_like(a, b)); }
Var operator>(const Var& a, Number b) { return greater(a, scalar_like(a, b)); }
Var operator<=(const Var& a, Number b) { return less_or_equal(a, scalar_like(a, b)); }
Var operator>=(const Var& a, Number b) { return greater_or_equal(a, scalar_like(a, b)); }
Var operator<(Number a, const Var& b) { return less(scalar_like(b, a), b); }
Var operator>(Number a, const Var& b) { return greater(scalar_like(b, a), b); }
Var operator<=(Number a, const Var& b) { return less_or_equal(scalar_like(b, a), b); }
Var operator>=(Number a, const Var& b) { return greater_or_equal(scalar_like(b, a), b); }

}  // namespace autograph
