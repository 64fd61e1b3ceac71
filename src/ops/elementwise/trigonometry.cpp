// Trigonometric and hyperbolic functions and their inverses, in radians. Outside its domain a function gives NaN.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/elementwise/formula/make_elementwise.h"
#include "ops/elementwise/formula/scalar_loops.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

struct Tan {
  explicit Tan(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::tan(x);
  }
};

struct Asin {
  explicit Asin(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::asin(x);
  }
};

struct Acos {
  explicit Acos(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::acos(x);
  }
};

struct Atan {
  explicit Atan(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::atan(x);
  }
};

struct Sinh {
  explicit Sinh(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::sinh(x);
  }
};

struct Cosh {
  explicit Cosh(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::cosh(x);
  }
};

struct Asinh {
  explicit Asinh(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::asinh(x);
  }
};

struct Acosh {
  explicit Acosh(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::acosh(x);
  }
};

struct Atanh {
  explicit Atanh(const Attributes&) {}
  template <class T>
  T operator()(T x) const {
    return std::atanh(x);
  }
};

}  // namespace

Var sin(Var x) { return apply(sin_def(), {x}); }
Var cos(Var x) { return apply(cos_def(), {x}); }
Var tan(Var x) { return apply(tan_def(), {x}); }
Var asin(Var x) { return apply(asin_def(), {x}); }
Var acos(Var x) { return apply(acos_def(), {x}); }
Var atan(Var x) { return apply(atan_def(), {x}); }
Var sinh(Var x) { return apply(sinh_def(), {x}); }
Var cosh(Var x) { return apply(cosh_def(), {x}); }
Var asinh(Var x) { return apply(asinh_def(), {x}); }
Var acosh(Var x) { return apply(acosh_def(), {x}); }
Var atanh(Var x) { return apply(atanh_def(), {x}); }

const OpDef& sin_def() {
  static const OpDef def = make_unary({.name = "sin",
                                       .doc = "y = sin(x), x in radians.",
                                       .onnx = "Sin",
                                       .since = 7,
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Sin, FloatTypes>,
                                       .vjp = [](VjpContext& c) { c.set(0, c.gy(0) * (cos(c.in(0)))); }});
  return def;
}

const OpDef& cos_def() {
  static const OpDef def = make_unary({.name = "cos",
                                       .doc = "y = cos(x), x in radians.",
                                       .onnx = "Cos",
                                       .since = 7,
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Cos, FloatTypes>,
                                       .vjp = [](VjpContext& c) { c.set(0, c.gy(0) * (-sin(c.in(0)))); }});
  return def;
}

const OpDef& tan_def() {
  static const OpDef def = make_unary({.name = "tan",
                                       .doc = "y = tan(x), x in radians.",
                                       .onnx = "Tan",
                                       .since = 7,
                                       .types = dtypes::kFloat,
                                       .scalar = same_type_loop<Tan, 1, FloatTypes>,
                                       .vjp = [](VjpContext& c) { c.set(0, c.gy(0) * (1 + c.out(0) * c.out(0))); },
                                       .sample = sample_unary_of<DType::f32, -1, 1>});
  return def;
}

const OpDef& asin_def() {
  static const OpDef def =
      make_unary({.name = "asin",
                  .doc = "y = arcsine of x, in radians; NaN outside [-1, 1].",
                  .onnx = "Asin",
                  .since = 7,
                  .types = dtypes::kFloat,
                  .scalar = same_type_loop<Asin, 1, FloatTypes>,
                  .vjp = [](VjpContext& c) { c.set(0, times_slope(c.gy(0), reciprocal(sqrt(1 - c.in(0) * c.in(0))))); },
                  .sample = sample_unary_of<DType::f32, -1, 1>});
  return def;
}

const OpDef& acos_def() {
  static const OpDef def = make_unary(
      {.name = "acos",
       .doc = "y = arccosine of x, in radians; NaN outside [-1, 1].",
       .onnx = "Acos",
       .since = 7,
       .types = dtypes::kFloat,
       .scalar = same_type_loop<Acos, 1, FloatTypes>,
       .vjp = [](VjpContext& c) { c.set(0, times_slope(c.gy(0), -reciprocal(sqrt(1 - c.in(0) * c.in(0))))); },
       .sample = sample_unary_of<DType::f32, -1, 1>});
  return def;
}

const OpDef& atan_def() {
  static const OpDef def =
      make_unary({.name = "atan",
                  .doc = "y = arctangent of x, in radians.",
                  .onnx = "Atan",
                  .since = 7,
                  .types = dtypes::kFloat,
                  .scalar = same_type_loop<Atan, 1, FloatTypes>,
                  .vjp = [](VjpContext& c) { c.set(0, c.gy(0) * (reciprocal(1 + c.in(0) * c.in(0)))); }});
  return def;
}

const OpDef& sinh_def() {
  static const OpDef def = make_unary({.name = "sinh",
                                       .doc = "y = sinh(x).",
                                       .onnx = "Sinh",
                                       .since = 9,
                                       .types = dtypes::kFloat,
                                       .scalar = same_type_loop<Sinh, 1, FloatTypes>,
                                       .vjp = [](VjpContext& c) { c.set(0, times_slope(c.gy(0), cosh(c.in(0)))); }});
  return def;
}

const OpDef& cosh_def() {
  static const OpDef def = make_unary({.name = "cosh",
                                       .doc = "y = cosh(x).",
                                       .onnx = "Cosh",
                                       .since = 9,
                                       .types = dtypes::kFloat,
                                       .scalar = same_type_loop<Cosh, 1, FloatTypes>,
                                       .vjp = [](VjpContext& c) { c.set(0, times_slope(c.gy(0), sinh(c.in(0)))); }});
  return def;
}

const OpDef& asinh_def() {
  static const OpDef def =
      make_unary({.name = "asinh",
                  .doc = "y = inverse hyperbolic sine of x.",
                  .onnx = "Asinh",
                  .since = 9,
                  .types = dtypes::kFloat,
                  .scalar = same_type_loop<Asinh, 1, FloatTypes>,
                  .vjp = [](VjpContext& c) { c.set(0, c.gy(0) * (reciprocal(sqrt(1 + c.in(0) * c.in(0))))); }});
  return def;
}

const OpDef& acosh_def() {
  static const OpDef def = make_unary(
      {.name = "acosh",
       .doc = "y = inverse hyperbolic cosine of x; NaN below 1.",
       .onnx = "Acosh",
       .since = 9,
       .types = dtypes::kFloat,
       .scalar = same_type_loop<Acosh, 1, FloatTypes>,
       .vjp = [](VjpContext& c) { c.set(0, times_slope(c.gy(0), reciprocal(sqrt((c.in(0) - 1) * (c.in(0) + 1))))); },
       .sample = sample_unary_of<DType::f32, 1, 4>});
  return def;
}

const OpDef& atanh_def() {
  static const OpDef def =
      make_unary({.name = "atanh",
                  .doc = "y = inverse hyperbolic tangent of x; NaN outside [-1, 1], infinite at the ends.",
                  .onnx = "Atanh",
                  .since = 9,
                  .types = dtypes::kFloat,
                  .scalar = same_type_loop<Atanh, 1, FloatTypes>,
                  .vjp = [](VjpContext& c) { c.set(0, times_slope(c.gy(0), reciprocal(1 - c.in(0) * c.in(0)))); },
                  .sample = sample_unary_of<DType::f32, -1, 1>});
  return def;
}

}  // namespace autograph
