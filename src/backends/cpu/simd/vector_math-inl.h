// Elementary functions on vectors of f32, for every instruction set that Highway compiles this header for.
//
// All of them propagate NaN and treat infinities and zeros as the C library does. Largest errors, in units of the last
// place, over arguments of every size (tests/backends/simd_kernels_test.cpp checks them on every instruction set):
// exp 2, log 2, erf 2, tanh 6, sigmoid 4, softplus 4, expm1 4. Results below 2^-126 may become 0 or 2^-126.
#if defined(AG_SIMD_VECTOR_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_VECTOR_MATH_INL_H
#undef AG_SIMD_VECTOR_MATH_INL_H
#else
#define AG_SIMD_VECTOR_MATH_INL_H
#endif

#include <limits>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Minimum and maximum that give x when x is NaN. x86's instructions give their second operand then.
template <class D, class V>
HWY_INLINE V at_least(D, V bound, V x) {
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::Max(bound, x);
#else
  return hn::IfThenElse(hn::Lt(x, bound), bound, x);
#endif
}
template <class D, class V>
HWY_INLINE V at_most(D, V bound, V x) {
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::Min(bound, x);
#else
  return hn::IfThenElse(hn::Gt(x, bound), bound, x);
#endif
}

// Horner's rule, highest power first.
template <class D, class V>
HWY_INLINE V polynomial(D, V, V highest) {
  return highest;
}
template <class D, class V, class... Rest>
HWY_INLINE V polynomial(D d, V x, V high, float next, Rest... rest) {
  return polynomial(d, x, hn::MulAdd(high, x, hn::Set(d, next)), rest...);
}

// exp(x) = 2^n * e^f with n whole and |f| <= ln(2) / 2. The low bits of `n_bits` hold n.
template <class V, class VI>
struct ReducedExp {
  VI n_bits;
  V f;
};

// The number 1.5 * 2^23: adding it rounds to a whole number, which then stands in the low bits.
constexpr float kRoundingShift = 12582912.0F;

// x must be above -2^22 and below 2^22, or NaN.
template <class D, class V = hn::Vec<D>, class VI = hn::Vec<hn::RebindToSigned<D>>>
HWY_INLINE ReducedExp<V, VI> reduce_exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V shift = hn::Set(d, kRoundingShift);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504F), shift);
  const V n = hn::Sub(shifted, shift);
  V f = hn::NegMulAdd(n, hn::Set(d, 0x1.62e400p-1F), x);
  f = hn::NegMulAdd(n, hn::Set(d, 0x1.7f7d1cp-20F), f);
  return {hn::BitCast(di, shifted), f};
}

// e^f for |f| <= ln(2) / 2.
template <class D, class V>
HWY_INLINE V exp_fraction(D d, V f) {
  return polynomial(d, f, hn::Set(d, 0x1.694000p-10F), 0x1.125edcp-7F, 0x1.555b5ap-5F, 0x1.555450p-3F, 0x1.fffff6p-2F,
                    1.0F, 1.0F);
}

// 2^n for whole n in [-126, 127].
template <class D, class VI>
HWY_INLINE hn::Vec<D> power_of_two(D d, VI n) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::Add(hn::ShiftLeft<23>(n), hn::Set(di, 0x3F800000)));
}

/// e^x for every x.
template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V clamped = at_least(d, hn::Set(d, -104.0F), at_most(d, hn::Set(d, 89.0F), x));
  const auto reduced = reduce_exp(d, clamped);
  // In two steps, because 2^n alone may lie outside the normal numbers.
  const auto n = hn::Sub(reduced.n_bits, hn::Set(di, 0x4B400000));
  const auto half = hn::ShiftRight<1>(n);
  const V y = hn::Mul(exp_fraction(d, reduced.f), power_of_two(d, half));
  return hn::Mul(y, power_of_two(d, hn::Sub(n, half)));
}

/// e^x for x <= 0 or NaN; 0 where the result would be below 2^-126.
template <class D, class V>
HWY_INLINE V exp_nonpositive(D d, V x) {
  const V lowest = hn::Set(d, -87.3F);
  const auto reduced = reduce_exp(d, at_least(d, lowest, x));
  const V y = hn::Mul(exp_fraction(d, reduced.f), power_of_two(d, reduced.n_bits));
  return hn::IfThenZeroElse(hn::Lt(x, lowest), y);
}

/// e^x - 1 for x <= 0 or NaN, exact near 0.
template <class D, class V>
HWY_INLINE V expm1_nonpositive(D d, V x) {
  const auto reduced = reduce_exp(d, at_least(d, hn::Set(d, -40.0F), x));
  const V f = reduced.f;
  const V tail =
      polynomial(d, f, hn::Set(d, 0x1.694000p-10F), 0x1.125edcp-7F, 0x1.555b5ap-5F, 0x1.555450p-3F, 0x1.fffff6p-2F);
  const V fraction = hn::MulAdd(hn::Mul(f, f), tail, f);
  const V scale = power_of_two(d, reduced.n_bits);
  return hn::MulAdd(fraction, scale, hn::Sub(scale, hn::Set(d, 1.0F)));
}

// log(2^e * m) for positive normal numbers given as their bits; `exponent` is added to e.
template <class D, class V>
HWY_INLINE V log_positive(D d, V x, V exponent) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, x);
  // m in [2/3, 4/3)
  const auto e = hn::And(hn::Sub(bits, hn::Set(di, 0x3F2AAAAB)), hn::Set(di, static_cast<int32_t>(0xFF800000)));
  const V m = hn::Sub(hn::BitCast(d, hn::Sub(bits, e)), hn::Set(d, 1.0F));
  const V i = hn::MulAdd(hn::ConvertTo(d, e), hn::Set(d, 0x1.0p-23F), exponent);
  const V s = hn::Mul(m, m);
  const V r = polynomial(d, s, hn::Set(d, -0x1.0ae000p-3F), -0x1.f198b2p-4F, -0x1.55b36cp-3F, -0x1.fffe02p-3F);
  const V t = polynomial(d, s, hn::Set(d, 0x1.208000p-3F), 0x1.1e5740p-3F, 0x1.99d8b2p-3F);
  V y = hn::MulAdd(t, m, r);
  y = polynomial(d, m, y, 0x1.5554fap-2F, -0.5F);
  y = hn::MulAdd(y, s, m);
  return hn::MulAdd(i, hn::Set(d, 0x1.62e430p-1F), y);
}

/// Natural logarithm of every x: -inf at 0, NaN below.
template <class D, class V>
HWY_INLINE V log(D d, V x) {
  const V zero = hn::Zero(d);
  const auto subnormal = hn::Lt(x, hn::Set(d, 0x1.0p-126F));
  const V scaled = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 0x1.0p23F)), x);
  V y = log_positive(d, scaled, hn::IfThenElseZero(subnormal, hn::Set(d, -23.0F)));
  // Infinity and NaN stay as they are, and a number below 0 becomes NaN.
  y = hn::IfThenElse(hn::Lt(x, hn::Set(d, kInfinity)), y, x);
  y = hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), y);
  return hn::IfThenElse(hn::Eq(x, zero), hn::Set(d, -kInfinity), y);
}

/// log(1 + x) for 0 <= x <= 1 or NaN.
template <class D, class V>
HWY_INLINE V log1p_unit(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V sum = hn::Add(one, x);
  const V lost = hn::Sub(x, hn::Sub(sum, one));  // what rounding the sum took away
  // With x = NaN the logarithm may be anything; the last term brings the NaN back.
  return hn::Add(log_positive(d, sum, hn::Zero(d)), hn::Div(lost, sum));
}

// 1 - erf(t) for t > 0.92 as e^r: this is r.
template <class D, class V>
HWY_INLINE V erfc_exponent(D d, V t) {
  const V s = hn::Mul(t, t);
  const V r = hn::MulAdd(hn::Set(d, -0x1.220000p-16F), t, hn::Set(d, 0x1.91cfb2p-12F));
  const V u = hn::MulAdd(hn::Set(d, -0x1.fd1438p-9F), t, hn::Set(d, 0x1.8d6342p-6F));
  const V y = polynomial(d, t, hn::MulAdd(r, s, u), -0x1.b55cb8p-4F, -0x1.450aa0p-1F, -0x1.079d0cp-3F);
  return hn::MulSub(y, t, t);
}

// erf(x) for |x| <= 0.93.
template <class D, class V>
HWY_INLINE V erf_small(D d, V x) {
  const V s = hn::Mul(x, x);
  const V r = polynomial(d, s, hn::Set(d, -0x1.38e000p-11F), 0x1.471a58p-8F, -0x1.b691b2p-6F, 0x1.ce1c44p-4F,
                         -0x1.812700p-2F, 0x1.06eba8p-3F);
  return hn::MulAdd(r, x, x);
}

/// Error function of every x, without a division or a power: x + x r(x^2) up to 1, and beyond 1 - q(|x|)^4, where q is
/// (1 - erf)^(1/4), whose fourth power makes little of its errors. At 3.95 and above nothing is left of q^4. (Least
/// squares, reweighted to a minimax fit.)
template <class D, class V>
HWY_INLINE V erf(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V t = hn::Abs(x);
  const V q =
      polynomial(d, at_most(d, hn::Set(d, 3.95F), t), hn::Set(d, -0x1.742408p-16F), 0x1.726cdcp-13F, 0x1.9b325ep-11F,
                 -0x1.a2c138p-7F, 0x1.676846p-5F, -0x1.1fb160p-6F, -0x1.7e1760p-4F, -0x1.2ca572p-2F, 0x1.008ee6p+0F);
  const V squared = hn::Mul(q, q);
  const V large = hn::NegMulAdd(squared, squared, one);
  const V r = polynomial(d, hn::Mul(x, x), hn::Set(d, -0x1.25640ap-11F), 0x1.41bb1cp-8F, -0x1.b5875ap-6F,
                         0x1.ce070ep-4F, -0x1.812666p-2F, 0x1.06eba2p-3F);
  return hn::IfThenElse(hn::Gt(t, one), hn::CopySign(large, x), hn::MulAdd(r, x, x));
}

constexpr float kErfcBranch = 0.927734375F;

/// 1 - erf(x), without the cancellation that this has for large x.
template <class D, class V>
HWY_INLINE V erfc(D d, V x) {
  const V t = hn::Abs(x);
  const V tail = exp_nonpositive(d, erfc_exponent(d, t));
  const V large = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), tail, hn::Sub(hn::Set(d, 2.0F), tail));
  const V small = hn::Sub(hn::Set(d, 1.0F), erf_small(d, x));
  return hn::IfThenElse(hn::Gt(t, hn::Set(d, kErfcBranch)), large, small);
}

template <class V>
struct Ratio {
  V over, under;
};

/// What tanh() divides: a ratio of two polynomials up to 7.9. From 8.3 on it is 1: else 1 - tanh^2, which slopes
/// multiply by powers of x, would never vanish. `under` is from 0.004 to 1.
template <class D, class V>
HWY_INLINE Ratio<V> tanh_ratio(D d, V x) {
  const V clamped = at_least(d, hn::Set(d, -7.90531110763549805F), at_most(d, hn::Set(d, 7.90531110763549805F), x));
  const V s = hn::Mul(clamped, clamped);
  const V p = polynomial(d, s, hn::Set(d, -2.76076847742355e-16F), 2.00018790482477e-13F, -8.60467152213735e-11F,
                         5.12229709037114e-08F, 1.48572235717979e-05F, 6.37261928875436e-04F, 4.89352455891786e-03F);
  const V q = polynomial(d, s, hn::Set(d, 1.19825839466702e-06F), 1.18534705686654e-04F, 2.26843463243900e-03F,
                         4.89352518554385e-03F);
  const V size = hn::Abs(x), one = hn::Set(d, 1.0F);
  const auto is_one = hn::Gt(size, hn::Set(d, 8.3F)), is_x = hn::Lt(size, hn::Set(d, 0.0004F));
  const V over = hn::IfThenElse(is_one, hn::CopySign(one, x), hn::Mul(clamped, p));
  return {hn::IfThenElse(is_x, x, over), hn::IfThenElse(hn::Or(is_one, is_x), one, q)};
}

/// Hyperbolic tangent of every x.
template <class D, class V>
HWY_INLINE V tanh(D d, V x) {
  const auto [over, under] = tanh_ratio(d, x);
  return hn::Div(over, under);
}

/// 1 + e^-x for every x; infinity from 2^126 on. No number on the way is subnormal: each product with one takes a
/// hundred cycles on processors of Intel.
template <class D, class V>
HWY_INLINE V sigmoid_divisor(D d, V x) {
  const V end = hn::Set(d, 87.3F);
  const auto reduced = reduce_exp(d, at_least(d, hn::Neg(end), at_most(d, end, hn::Neg(x))));
  const V power = hn::Mul(exp_fraction(d, reduced.f), power_of_two(d, reduced.n_bits));
  return hn::IfThenElse(hn::Lt(x, hn::Neg(end)), hn::Set(d, kInfinity), hn::Add(hn::Set(d, 1.0F), power));
}

/// 1 / (1 + e^-x) for every x; 0 where that would be below 2^-126.
template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
  return hn::Div(hn::Set(d, 1.0F), sigmoid_divisor(d, x));
}

/// x / (1 + 2^t) without a division, which takes as long as all the rest, to some units in the last place and |t| / 2
/// more. From t = 126 on it is x * 0: NaN for an infinite x.
template <class D, class V>
HWY_INLINE V fast_logistic_product(D d, V x, V t) {
  const hn::RebindToSigned<D> di;
  const V one = hn::Set(d, 1.0F);
  const V shift = hn::Set(d, kRoundingShift);
  const V bounded = at_least(d, hn::Set(d, -126.0F), at_most(d, hn::Set(d, 126.0F), t));
  const V shifted = hn::Add(bounded, shift);
  const V f = hn::Sub(bounded, hn::Sub(shifted, shift));
  // 2^f for |f| <= 1/2 (least squares, reweighted to a minimax fit), times 2^n by adding n to its exponent: the shift
  // pushes all of `shifted` out but n.
  const V fraction = polynomial(d, f, hn::Set(d, 0x1.5bba14p-10F), 0x1.3cea88p-7F, 0x1.c6b752p-5F, 0x1.ebf9bcp-3F,
                                0x1.62e42ap-1F, 1.0F);
  const auto power = hn::Add(hn::BitCast(di, fraction), hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  const V divisor = hn::Add(hn::BitCast(d, power), one);
  V reciprocal = hn::ApproximateReciprocal(divisor);
  // Each step doubles the number of right bits, of which x86 gives 14 (AVX-512) or 12.
  constexpr int kSteps = HWY_TARGET <= HWY_AVX3 ? 1 : 2;
  for (int i = 0; i < kSteps; ++i) {
    reciprocal = hn::MulAdd(reciprocal, hn::NegMulAdd(divisor, reciprocal, one), reciprocal);
  }
  // What stands there of 2^-126 is 0 on some targets and 2^-126 on others.
  return hn::Mul(x, hn::IfThenZeroElse(hn::Ge(t, hn::Set(d, 126.0F)), reciprocal));
}

constexpr float kLog2E = 1.44269504088896341F;

/// x * sigmoid(alpha * x) without a division.
template <class D, class V>
HWY_INLINE V fast_swish(D d, V x, V alpha) {
  return fast_logistic_product(d, x, hn::Mul(hn::Mul(alpha, hn::Set(d, -kLog2E)), x));
}

/// gelu with an absolute error of up to 1e-7 |x|, without branches: erf(z) / z as one polynomial of z^2, of which t is
/// the part of [0, 3.92^2] mapped to [-1, 1]. Beyond, erf is 1 to that precision, and -1 exactly: else what should
/// vanish would grow with x. (Least squares, reweighted to a minimax fit.)
template <class D, class V>
HWY_INLINE V fast_gelu(D d, V x) {
  const V bound = hn::Set(d, 3.92F);
  const V z = at_least(d, hn::Neg(bound), at_most(d, bound, hn::Mul(x, hn::Set(d, 0.70710678118654752F))));
  const V t = hn::MulSub(hn::Mul(z, z), hn::Set(d, 0x1.0a8e3cp-3F), hn::Set(d, 1.0F));
  const V ratio =
      polynomial(d, t, hn::Set(d, -0x1.9680eap-11F), 0x1.0c23b6p-9F, -0x1.a864ecp-10F, 0x1.1192d4p-9F, -0x1.e31b02p-8F,
                 0x1.cae8b8p-7F, -0x1.4aa3ecp-6F, 0x1.e895e8p-6F, -0x1.63531cp-5F, 0x1.de1298p-5F, -0x1.2f3a48p-4F,
                 0x1.731b6ap-4F, -0x1.bf31f4p-4F, 0x1.129ac6p-3F, -0x1.70dcccp-3F, 0x1.7164fep-2F);
  const V erf = hn::IfThenElse(hn::Lt(z, hn::Set(d, -3.9199F)), hn::Set(d, -1.0F), hn::Mul(z, ratio));
  const V half = hn::Mul(x, hn::Set(d, 0.5F));
  return hn::MulAdd(half, erf, half);
}

/// x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) without a division.
template <class D, class V>
HWY_INLINE V fast_gelu_tanh(D d, V x) {
  constexpr float kSlope = -2 * 0.79788456080286536F * kLog2E;
  const V slope = hn::MulAdd(hn::Mul(x, x), hn::Set(d, kSlope * 0.044715F), hn::Set(d, kSlope));
  return fast_logistic_product(d, x, hn::Mul(x, slope));
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
