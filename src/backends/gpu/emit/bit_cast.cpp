// bit_cast: a copy, but to dtypes of which memory holds less than a byte has bits.
#include "backends/gpu/emit/families.h"

namespace autograph::gpu {
namespace {

// Bytes that no element of the dtype has must not come to be in memory.
bool has_spare_bits(DType dtype) { return dtype == DType::boolean || file_bits(dtype) < 8; }

// Signed integers use all bits, by the extension of their sign.
std::string from_low_bits(DType to, int bits) {
  if (to == DType::boolean) return "v != 0";
  if (to != DType::i4 && to != DType::i2) return "v";
  return fmt::format("v >= {} ? v + {} : v", 1 << (bits - 1), 256 - (1 << bits));
}

}  // namespace

Emitted emit_bit_cast(const KernelCall& call, const Target& target) {
  const DType to = call.outputs[0].dtype();
  if (!has_spare_bits(to)) return emit_moves(call, target);
  const int bits = file_bits(to);
  Writer writer(target);
  cover_operands(writer.index(), call);
  writer.begin_items({input_parameter("x", "u8", 0), output_parameter("y", "u8")}, num_elements(call.output_dims(0)));
  writer.line("const u8 v = x[i] & {};", (1 << bits) - 1);
  writer.line("y[i] = {};", from_low_bits(to, bits));
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
