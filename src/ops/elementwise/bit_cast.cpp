// bit_cast: the bits of each element as another dtype of the same width in ONNX files: f32 as i32, i4 as f4e2m1.
//
// In memory low-bit dtypes take a byte, of which signed integers use all bits (sign extension) and the others the low
// ones; bool holds 0 or 1, so any other byte becomes 1.
#include <cstring>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const DType from = context.dtype(0);
  const DType to = context.attributes().get<DType>("to");
  context.require<TypeError>(
      to != DType::string && to != DType::undefined && file_bits(from) == file_bits(to), "to",
      "expected a dtype as wide as " + std::string(to_string(from)) + ", got " + std::string(to_string(to)));
  context.set_output(0, to, context.shape(0));
}

// Puts the low bits of `byte` into the form that `to` has in memory.
template <class T>
T from_low_bits(uint8_t byte) {
  if constexpr (std::is_same_v<T, bool>) {
    return byte != 0;
  } else if constexpr (kIsSmallInt<T>) {
    return T(static_cast<int>(byte));
  } else {
    return T::from_bits(byte);
  }
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  using Rewritten = TypeList<bool, Int4, UInt4, Int2, UInt2, Float4E2M1, Float6E2M3, Float6E3M2>;
  const int bits = file_bits(x.dtype());
  const bool rewritten = try_dispatch(Rewritten{}, y.dtype(), [&]<class T>(TypeTag<T>) {
    const auto mask = static_cast<uint8_t>((1U << bits) - 1U);
    const auto* in = x.data<unsigned char>();
    T* out = y.mutable_data<T>();
    for (int64_t i = 0; i < x.num_elements(); ++i) out[i] = from_low_bits<T>(static_cast<uint8_t>(in[i] & mask));
  });
  if (!rewritten && x.num_elements() != 0) std::memcpy(y.raw(), x.raw(), x.size_bytes());
}

OpSample sample(Random& random) {
  const bool wide = draw_bool(random);
  const DType from = wide ? DType::i32 : DType::i16;
  const DType to = wide ? DType::f32 : draw_one_of(random, {DType::u16, DType::f16});
  return {.inputs = {draw_tensor(random, from, draw_dims(random), -999, 999)}, .attributes = {{"to", to}}};
}

constexpr DTypeSet kBits = dtypes::kNumeric | dtypes::kBool | dtypes::kComplex | dtypes::kFloat8 | dtypes::kLowBit;

}  // namespace

Var bit_cast(Var x, DType to) { return apply(bit_cast_def(), {x}, {{"to", to}}); }

const OpDef& bit_cast_def() {
  static const OpDef def{
      .name = "bit_cast",
      .doc = "y = the bits of x as dtype `to` of the same width.",
      .inputs = {{"x", "S", "Any shape."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"S", kBits}, {"T", kBits}},
      .attributes = {{.name = "to", .type = AttributeType::dtype, .doc = "The dtype of y.", .required = true}},
      .infer = infer,
      .reference = reference,
      .no_grad = "bits have no gradient",
      .traits = {.elementwise = true},
      .onnx = {{.name = "BitCast", .since = 26}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
