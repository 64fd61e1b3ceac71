#include "backends/cpu/simd/tile_ops.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/tile_ops.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/rows-inl.h"
#include "backends/cpu/simd/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Elements of an operand, one vector at a time.
template <bool kIsScalar>
struct Reader {
  explicit Reader(const TileOperand& operand) : data(operand.data), value(hn::Set(D(), *operand.data)) {}
  HWY_INLINE V load(size_t at) const {
    if constexpr (kIsScalar) return value;
    return hn::LoadU(D(), data + at);
  }
  // The last `count` elements, padded with a 1, which no function dislikes.
  HWY_INLINE V load_some(size_t at, size_t count) const {
    if constexpr (kIsScalar) return value;
    return HWY_NAMESPACE::load_some(D(), data + at, count, hn::Set(D(), 1.0F));
  }

  const float* data;
  V value;
};

template <class F, class... Readers>
HWY_INLINE void loop(const TileCall& call, const F& f, const Readers&... in) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const auto count = static_cast<size_t>(call.count);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(d, in.load(i)...), d, call.y + i);
  if (i == count) return;
  store_some(d, f(d, in.load_some(i, count - i)...), call.y + i, count - i);
}

template <class Make>
void unary(const TileCall& call) {
  const auto f = Make::make(call);
  if (call.operands[0].step != 0) return loop(call, f, Reader<false>(call.operands[0]));
  loop(call, f, Reader<true>(call.operands[0]));
}

template <class Make>
void binary(const TileCall& call) {
  const auto f = Make::make(call);
  const auto& [a, b, c] = call.operands;
  if (a.step != 0 && b.step != 0) return loop(call, f, Reader<false>(a), Reader<false>(b));
  if (a.step != 0) return loop(call, f, Reader<false>(a), Reader<true>(b));
  if (b.step != 0) return loop(call, f, Reader<true>(a), Reader<false>(b));
  loop(call, f, Reader<true>(a), Reader<true>(b));
}

template <class Make>
void ternary(const TileCall& call) {
  const auto f = Make::make(call);
  const auto& [a, b, c] = call.operands;
  const auto with_c = [&](const auto& first, const auto& second) HWY_ATTR {
    if (c.step != 0) return loop(call, f, first, second, Reader<false>(c));
    loop(call, f, first, second, Reader<true>(c));
  };
  if (a.step != 0 && b.step != 0) return with_c(Reader<false>(a), Reader<false>(b));
  if (a.step != 0) return with_c(Reader<false>(a), Reader<true>(b));
  if (b.step != 0) return with_c(Reader<true>(a), Reader<false>(b));
  with_c(Reader<true>(a), Reader<true>(b));
}

// A formula without parameters, and one with parameters p and q as vectors. Functors instead of lambdas, because each
// needs the target's attributes.
#define AG_FORMULA(NAME, ARGUMENTS, ...)                            \
  struct NAME {                                                     \
    static NAME make(const TileCall&) { return {}; }                \
    HWY_INLINE V operator() ARGUMENTS const { return __VA_ARGS__; } \
  };
#define AG_FORMULA_PQ(NAME, ARGUMENTS, ...)                             \
  struct NAME {                                                         \
    static NAME make(const TileCall& call) { return {call.p, call.q}; } \
    HWY_INLINE V operator() ARGUMENTS const {                           \
      [[maybe_unused]] const V p = hn::Set(d, p_value);                 \
      [[maybe_unused]] const V q = hn::Set(d, q_value);                 \
      return __VA_ARGS__;                                               \
    }                                                                   \
    float p_value, q_value;                                             \
  };

HWY_INLINE V truth(D d, hn::Mask<D> mask) { return hn::IfThenElseZero(mask, hn::Set(d, 1.0F)); }
HWY_INLINE V one(D d) { return hn::Set(d, 1.0F); }
HWY_INLINE V max_nan(D, V a, V b) { return hn::IfThenElse(hn::IsNaN(b), b, hn::IfThenElse(hn::Lt(a, b), b, a)); }
HWY_INLINE V min_nan(D, V a, V b) { return hn::IfThenElse(hn::IsNaN(b), b, hn::IfThenElse(hn::Lt(b, a), b, a)); }
HWY_INLINE V sign(D d, V x) {
  const V magnitude = truth(d, hn::Ne(x, hn::Zero(d)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Neg(magnitude), magnitude));
}
HWY_INLINE V negative_part(D d, V x, V otherwise, V negative) {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), negative, otherwise);
}
HWY_INLINE V elu(D d, V x, V alpha) {
  return negative_part(d, x, x, hn::Mul(alpha, expm1_nonpositive(d, at_most(d, hn::Zero(d), x))));
}
HWY_INLINE V sqrt_of_pow(D d, V x) {
  const V infinity = hn::Set(d, kInfinity);
  return hn::IfThenElse(hn::Eq(hn::Abs(x), infinity), infinity, hn::Add(hn::Sqrt(x), hn::Zero(d)));
}
HWY_INLINE V celu(D d, V x, V alpha) {
  const V e = hn::Sub(exp(d, hn::Div(x, alpha)), one(d));
  const V small = expm1_nonpositive(d, at_most(d, hn::Zero(d), hn::Div(x, alpha)));
  const V negative = hn::IfThenElse(hn::Lt(alpha, hn::Zero(d)), e, small);
  return negative_part(d, x, x, hn::Mul(alpha, negative));
}
HWY_INLINE V logical_xor(D d, V a, V b) {
  // Truth values are 0 and 1, so that they differ where their difference is not 0.
  const V difference = hn::Sub(truth(d, hn::Ne(a, hn::Zero(d))), truth(d, hn::Ne(b, hn::Zero(d))));
  return hn::Abs(difference);
}

AG_FORMULA(Copy, (D, V a), a)
AG_FORMULA(Neg, (D, V a), hn::Neg(a))
AG_FORMULA(Abs, (D, V a), hn::Abs(a))
AG_FORMULA(Sign, (D d, V a), sign(d, a))
AG_FORMULA(Reciprocal, (D d, V a), hn::Div(one(d), a))
AG_FORMULA(Sqrt, (D, V a), hn::Sqrt(a))
AG_FORMULA(Square, (D, V a), hn::Mul(a, a))
AG_FORMULA(Cube, (D, V a), hn::Mul(hn::Mul(a, a), a))
AG_FORMULA(SqrtOfPow, (D d, V a), sqrt_of_pow(d, a))
AG_FORMULA(Exp, (D d, V a), exp(d, a))
AG_FORMULA(Log, (D d, V a), log(d, a))
AG_FORMULA(Erf, (D d, V a), erf(d, a))
AG_FORMULA(Floor, (D, V a), hn::Floor(a))
AG_FORMULA(Ceil, (D, V a), hn::Ceil(a))
AG_FORMULA(Round, (D, V a), hn::Round(a))
AG_FORMULA(Relu, (D d, V a), negative_part(d, a, a, hn::Zero(d)))
AG_FORMULA_PQ(LeakyRelu, (D d, V a), negative_part(d, a, a, hn::Mul(p, a)))
AG_FORMULA_PQ(Elu, (D d, V a), elu(d, a, p))
AG_FORMULA_PQ(Selu, (D d, V a), hn::Mul(q, elu(d, a, p)))
AG_FORMULA_PQ(Celu, (D d, V a), celu(d, a, p))
AG_FORMULA_PQ(ThresholdedRelu, (D d, V a), hn::IfThenElseZero(hn::Gt(a, p), a))
AG_FORMULA_PQ(HardSigmoid, (D d, V a), clamp_unit(d, hn::MulAdd(p, a, q)))
AG_FORMULA(HardSwish, (D d, V a), hard_swish(d, a))
AG_FORMULA(Sigmoid, (D d, V a), sigmoid(d, a))
AG_FORMULA(Tanh, (D d, V a), tanh(d, a))
AG_FORMULA(Softplus, (D d, V a), softplus(d, a))
AG_FORMULA(Softsign, (D d, V a), hn::Div(a, hn::Add(one(d), hn::Abs(a))))
AG_FORMULA(Mish, (D d, V a), hn::Mul(a, tanh(d, softplus(d, a))))
AG_FORMULA_PQ(Swish, (D d, V a), swish(d, a, p))
AG_FORMULA(Gelu, (D d, V a), gelu(d, a))
AG_FORMULA(GeluTanh, (D d, V a), gelu_tanh(d, a))
AG_FORMULA_PQ(Scale, (D d, V a), hn::Mul(a, p))
AG_FORMULA_PQ(Dequantize, (D d, V a), hn::Mul(hn::Sub(a, p), q))
AG_FORMULA_PQ(Quantize, (D d, V a), hn::Add(hn::Round(hn::Div(a, p)), q))
// hn::Ne is false for NaN on AVX-512; NaN is not zero.
AG_FORMULA(NotZero, (D d, V a), truth(d, hn::Not(hn::Eq(a, hn::Zero(d)))))
AG_FORMULA(LogicalNot, (D d, V a), truth(d, hn::Eq(a, hn::Zero(d))))
AG_FORMULA(IsNan, (D d, V a), truth(d, hn::IsNaN(a)))
AG_FORMULA(Add, (D, V a, V b), hn::Add(a, b))
AG_FORMULA(Sub, (D, V a, V b), hn::Sub(a, b))
AG_FORMULA(Mul, (D, V a, V b), hn::Mul(a, b))
AG_FORMULA(Div, (D, V a, V b), hn::Div(a, b))
AG_FORMULA(Max, (D d, V a, V b), max_nan(d, a, b))
AG_FORMULA(Min, (D d, V a, V b), min_nan(d, a, b))
AG_FORMULA(Prelu, (D d, V a, V b), negative_part(d, a, a, hn::Mul(a, b)))
AG_FORMULA_PQ(Swiglu, (D d, V a, V b), hn::Mul(swish(d, a, p), b))
AG_FORMULA(Equal, (D d, V a, V b), truth(d, hn::Eq(a, b)))
AG_FORMULA(Less, (D d, V a, V b), truth(d, hn::Lt(a, b)))
AG_FORMULA(LessOrEqual, (D d, V a, V b), truth(d, hn::Le(a, b)))
AG_FORMULA(LogicalAnd, (D d, V a, V b), hn::IfThenElseZero(hn::Ne(a, hn::Zero(d)), truth(d, hn::Ne(b, hn::Zero(d)))))
AG_FORMULA(LogicalOr, (D d, V a, V b), hn::IfThenElse(hn::Ne(a, hn::Zero(d)), one(d), truth(d, hn::Ne(b, hn::Zero(d)))))
AG_FORMULA(LogicalXor, (D d, V a, V b), logical_xor(d, a, b))
AG_FORMULA(Where, (D d, V a, V b, V c), hn::IfThenElse(hn::Ne(a, hn::Zero(d)), b, c))

#undef AG_FORMULA
#undef AG_FORMULA_PQ

// No vector form: powers with exponents that are not known in advance are rare.
void pow_tile(const TileCall& call) {
  const auto& [a, b, c] = call.operands;
  for (int64_t i = 0; i < call.count; ++i) call.y[i] = std::pow(a.data[i * a.step], b.data[i * b.step]);
}

const std::array<TileFunction, kTileOpCount>* functions() {
  static constexpr std::array<TileFunction, kTileOpCount> kFunctions{
      unary<Copy>,         unary<Neg>,         unary<Abs>,
      unary<Sign>,         unary<Reciprocal>,  unary<Sqrt>,
      unary<Square>,       unary<Cube>,        unary<SqrtOfPow>,
      unary<Exp>,          unary<Log>,         unary<Erf>,
      unary<Floor>,        unary<Ceil>,        unary<Round>,
      unary<Relu>,         unary<LeakyRelu>,   unary<Elu>,
      unary<Selu>,         unary<Celu>,        unary<ThresholdedRelu>,
      unary<HardSigmoid>,  unary<HardSwish>,   unary<Sigmoid>,
      unary<Tanh>,         unary<Softplus>,    unary<Softsign>,
      unary<Mish>,         unary<Swish>,       unary<Gelu>,
      unary<GeluTanh>,     unary<Scale>,       unary<Dequantize>,
      unary<Quantize>,     unary<NotZero>,     unary<LogicalNot>,
      unary<IsNan>,        binary<Add>,        binary<Sub>,
      binary<Mul>,         binary<Div>,        binary<Max>,
      binary<Min>,         pow_tile,           binary<Prelu>,
      binary<Swiglu>,      binary<Equal>,      binary<Less>,
      binary<LessOrEqual>, binary<LogicalAnd>, binary<LogicalOr>,
      binary<LogicalXor>,  ternary<Where>};
  return &kFunctions;
}

void widen(const uint8_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

void widen_signed(const int8_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

// NaN compares as false and so becomes the lower end.
template <class Byte>
void saturate(const float* from, Byte* to, int64_t count) {
  constexpr auto kLow = static_cast<float>(std::numeric_limits<Byte>::min());
  constexpr auto kHigh = static_cast<float>(std::numeric_limits<Byte>::max());
  for (int64_t i = 0; i < count; ++i) {
    const float low = from[i] > kLow ? from[i] : kLow;
    to[i] = static_cast<Byte>(static_cast<int32_t>(low < kHigh ? low : kHigh));
  }
}

void narrow_unsigned(const float* from, uint8_t* to, int64_t count) { saturate(from, to, count); }

void narrow_signed(const float* from, int8_t* to, int64_t count) { saturate(from, to, count); }

void narrow(const float* from, uint8_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i] != 0 ? 1 : 0;
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(functions);
HWY_EXPORT(widen);
HWY_EXPORT(widen_signed);
HWY_EXPORT(narrow);
HWY_EXPORT(narrow_unsigned);
HWY_EXPORT(narrow_signed);

const std::array<TileFunction, kTileOpCount>& tile_functions() { return *HWY_DYNAMIC_DISPATCH(functions)(); }

void widen_bytes(const uint8_t* from, float* to, int64_t count) { HWY_DYNAMIC_DISPATCH(widen)(from, to, count); }

void widen_signed_bytes(const int8_t* from, float* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(widen_signed)(from, to, count);
}

void narrow_to_bytes(const float* from, uint8_t* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(narrow_unsigned)(from, to, count);
}

void narrow_to_signed_bytes(const float* from, int8_t* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(narrow_signed)(from, to, count);
}

void narrow_to_bool(const float* from, uint8_t* to, int64_t count) { HWY_DYNAMIC_DISPATCH(narrow)(from, to, count); }

}  // namespace autograph::simd
#endif  // HWY_ONCE
