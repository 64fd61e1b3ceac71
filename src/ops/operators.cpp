// The operators of Var: the arithmetic ops under their usual signs.
#include "autograph/builder.h"
#include "autograph/ops/elementwise.h"

namespace autograph {

Var operator-(const Var& x) { return neg(x); }
Var operator+(const Var& a, const Var& b) { return add(a, b); }
Var operator-(const Var& a, const Var& b) { return sub(a, b); }
Var operator*(const Var& a, const Var& b) { return mul(a, b); }
Var operator/(const Var& a, const Var& b) { return div(a, b); }
Var operator+(const Var& a, double b) { return add(a, scalar_like(a, b)); }
Var operator-(const Var& a, double b) { return sub(a, scalar_like(a, b)); }
Var operator*(const Var& a, double b) { return mul(a, scalar_like(a, b)); }
Var operator/(const Var& a, double b) { return div(a, scalar_like(a, b)); }
Var operator+(double a, const Var& b) { return add(scalar_like(b, a), b); }
Var operator-(double a, const Var& b) { return sub(scalar_like(b, a), b); }
Var operator*(double a, const Var& b) { return mul(scalar_like(b, a), b); }
Var operator/(double a, const Var& b) { return div(scalar_like(b, a), b); }

}  // namespace autograph
