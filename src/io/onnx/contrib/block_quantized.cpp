// Contrib ops on weights of 2, 4 or 8 bits with a scale for each block: products (MatMulNBits, MatMulBnb4) and lookups
// (GatherBlockQuantized). Elements are packed along the last axis, the first one in the lowest bits unless said
// otherwise.
#include <algorithm>
#include <array>
#include <optional>

#include "autograph/ops/linear.h"

#include "io/onnx/contrib/body.h"
#include "io/onnx/contrib/packed_numbers.h"
#include "tensor/front_axis.h"

namespace autograph::io {
namespace {

// unpack_numbers() while running.
Var unpack_computed(const ContribCall& call, Var packed, int64_t bits, int64_t count) {
  const int64_t rank = call.rank(packed);
  const Var mask = scalar_like(packed, static_cast<double>((1 << bits) - 1));
  std::vector<Var> parts;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    const Var moved = shift == 0 ? packed : bit_shift(packed, scalar_like(packed, static_cast<double>(shift)), false);
    parts.push_back(unsqueeze(bitwise_and(moved, mask), {rank}));
  }
  std::vector<int64_t> dims(static_cast<size_t>(rank), 0);
  dims.back() = -1;
  return slice(reshape(concat(parts, rank), dims), {0}, {count}, {-1});
}

// The `count` elements of each row of `packed`, as u8.
Var unpacked(const ContribCall& call, Var packed, int64_t bits, int64_t count) {
  const auto tensor = call.known(packed);
  const int64_t per_byte = 8 / bits;
  if (tensor && (tensor->dims().empty() || tensor->dims().back() * per_byte < count)) {
    call.refuse("packed elements", "too few in " + to_string(packed.type()));
  }
  if (bits == 8 && tensor && tensor->dims().back() == count) return packed;
  if (tensor) return call.constant(unpack_numbers(*tensor, bits, count));
  return bits == 8 ? slice(packed, {0}, {count}, {-1}) : unpack_computed(call, packed, bits, count);
}

// ---- MatMulNBits -----------------------------------------------------------------------------------------------

// Zero points as floats of the dtype of the scales, [N, blocks], given so or packed; in the middle where missing.
Var zero_points(const ContribCall& call, int64_t rows, int64_t blocks, int64_t bits) {
  const Var given = call["zero_points"];
  const DType dtype = call["scales"].dtype();
  if (!given.is_valid()) return scalar_like(call["scales"], static_cast<double>(1 << (bits - 1)));
  if (given.dtype() != DType::u8) return reshape(given, std::vector<int64_t>{rows, blocks, 1});
  const Var bytes = unpacked(call, reshape_known(call, given, {rows, -1}), bits, blocks);
  return reshape(cast(bytes, dtype), std::vector<int64_t>{rows, blocks, 1});
}

// Refuses sizes out of which no product can be made.
void check_sizes(const ContribCall& call, int64_t block, int64_t n, int64_t k) {
  constexpr int64_t kLargest = int64_t{1} << 31;
  if (std::min({block, n, k}) < 1 || std::max({block, n, k}) > kLargest) {
    call.refuse("attributes", "expected block_size, N and K from 1 to 2^31");
  }
}

// Zero points as f32 [N, blocks] where they are known; nothing where they are not.
std::optional<Var> known_zero_points(const ContribCall& call, int64_t n, int64_t blocks, int64_t bits) {
  const Var given = call["zero_points"];
  if (!given.is_valid()) return Var();
  const auto tensor = call.known(given);
  if (!tensor) return std::nullopt;
  Tensor numbers = *tensor;
  if (numbers.dtype() == DType::u8 && bits != 8) {
    const int64_t row_bytes = numbers.num_elements() / n;
    if (n * row_bytes != numbers.num_elements() || row_bytes * (8 / bits) < blocks) return std::nullopt;
    numbers = unpack_numbers(numbers.reshaped({n, row_bytes}), bits, blocks);
  }
  if (numbers.num_elements() != n * blocks) return std::nullopt;
  return call.constant(floats_of(numbers, {n, blocks}));
}

// A constant matrix in f32; nothing for what is no constant.
std::optional<Var> known_floats(const ContribCall& call, Var given, const Dims& dims) {
  const auto tensor = call.known(given);
  if (!tensor || tensor->num_elements() != dims[0] * dims[1]) return std::nullopt;
  return call.constant(floats_of(*tensor, dims));
}

// One node, whose kernels keep the weights packed, in f32; nothing for what block_matmul does not know.
std::optional<Var> block_matmul(const ContribCall& call, int64_t n, int64_t k, int64_t block, int64_t bits) {
  const int64_t blocks = (k + block - 1) / block;
  const bool is_usual = (bits == 4 || bits == 8) && block * bits % 8 == 0 && call["A"].dtype() != DType::f64 &&
                        call["B"].dtype() == DType::u8;
  const auto q = call.known(call["B"]);
  const auto scales = known_floats(call, call["scales"], {n, blocks});
  if (!is_usual || !q || !scales || q->num_elements() != n * blocks * (block * bits / 8)) return std::nullopt;
  const auto zero = known_zero_points(call, n, blocks, bits);
  if (!zero) return std::nullopt;
  // From f16 on to bytes: what A may be rounded to.
  const int64_t level = call.attributes().integer("accuracy_level");
  const Var y = apply(
      get_op("block_matmul"),
      {as_dtype(call["A"], DType::f32), call.constant(q->reshaped({n, blocks, block * bits / 8})), *scales, *zero},
      {{"bits", bits}, {"k", k}, {"x_bits", int64_t{level >= 2 ? 16 : 32}}});
  return as_dtype(y, call["A"].dtype());
}

std::vector<Var> matmul_n_bits(ContribCall& call) {
  const Attributes& attributes = call.attributes();
  const int64_t bits = attributes.integer("bits"), block = attributes.integer("block_size");
  const int64_t n = attributes.integer("N"), k = attributes.integer("K");
  call.only("bits", {2, 4, 8});
  call.only("weight_prepacked", {0});
  check_sizes(call, block, n, k);
  if (const Var order = call["g_idx"]; order.is_valid()) call.refuse("input 'g_idx'", "not supported");
  const auto with_bias = [&](Var y) { return call.has("bias") ? add(y, call["bias"]) : y; };
  if (const auto y = block_matmul(call, n, k, block, bits)) return {with_bias(*y)};
  const int64_t blocks = (k + block - 1) / block;
  const Var packed = reshape_known(call, call["B"], {n, -1});
  const Var bytes = unpacked(call, packed, bits, blocks * block);
  const Var scales = reshape(call["scales"], std::vector<int64_t>{n, blocks, 1});
  const Var numbers = reshape(cast(bytes, scales.dtype()), std::vector<int64_t>{n, blocks, block});
  const Var weights = mul(sub(numbers, zero_points(call, n, blocks, bits)), scales);
  Var rows = reshape(weights, std::vector<int64_t>{n, blocks * block});
  if (blocks * block != k) rows = slice(rows, {0}, {k}, {1});
  return {with_bias(matmul(call["A"], transpose(rows, {1, 0})))};
}

// ---- MatMulBnb4 ------------------------------------------------------------------------------------------------

// What numbers of 4 bits stand for, as the quantizer of bitsandbytes has them: a float of two bits of exponent and one
// of mantissa, of which the smallest is 1/192 and the largest 1; or the quantiles of a normal distribution (QLoRA,
// appendix E).
constexpr std::array<float, 16> kFloatCodes{0,     1.0F / 192,  2.0F / 3,  1,  1.0F / 3,  0.5F,  1.0F / 6,  0.25F,
                                            -0.0F, -1.0F / 192, -2.0F / 3, -1, -1.0F / 3, -0.5F, -1.0F / 6, -0.25F};
constexpr std::array<float, 16> kNormalCodes{
    -1,           -0.69619280F, -0.52507305F, -0.39491749F, -0.28444138F, -0.18477343F, -0.09105004F, 0,
    0.079580300F, 0.16093020F,  0.24611230F,  0.33791524F,  0.44070983F,  0.56261700F,  0.72295684F,  1};

// The weights [n, k]; two numbers stand in a byte, the first in the high bits.
Tensor bnb4_weights(const Tensor& packed, const std::vector<double>& largest, const std::array<float, 16>& codes,
                    const Dims& dims, int64_t block) {
  Tensor result = Tensor::empty(DType::f32, dims);
  const auto* const from = packed.data<uint8_t>();
  auto* const to = result.mutable_data<float>();
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const int number = from[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15;
    to[i] = codes[static_cast<size_t>(number)] * static_cast<float>(largest[static_cast<size_t>(i / block)]);
  }
  return result;
}

std::vector<Var> matmul_bnb4(ContribCall& call) {
  const Attributes& attributes = call.attributes();
  const int64_t n = attributes.integer("N"), k = attributes.integer("K"), block = attributes.integer("block_size");
  call.only("quant_type", {0, 1});
  check_sizes(call, block, n, k);
  const auto packed = call.known(call["B"]), largest = call.known(call["absmax"]);
  if (!packed || !largest) call.refuse("inputs 'B' and 'absmax'", "computed ones are not supported");
  if (packed->dtype() != DType::u8 || packed->num_elements() != (n * k + 1) / 2) {
    call.refuse("input 'B'",
                "expected " + std::to_string((n * k + 1) / 2) + " bytes, got " + to_string(packed->type()));
  }
  if (largest->num_elements() != (n * k - 1) / block + 1) {
    call.refuse("input 'absmax'",
                "expected " + std::to_string((n * k - 1) / block + 1) + " numbers, got " + to_string(largest->type()));
  }
  const auto& codes = attributes.integer("quant_type") == 0 ? kFloatCodes : kNormalCodes;
  const Tensor weights = bnb4_weights(*packed, largest->to_f64(), codes, {n, k}, block);
  const Var w = call.constant(weights), x = as_dtype(call["A"], DType::f32);
  const Var y = matmul(x, attributes.flag("transB") ? transpose(w, {1, 0}) : w);
  return {as_dtype(y, call["A"].dtype())};
}

// ---- GatherBlockQuantized --------------------------------------------------------------------------------------

// Rows are looked up first and dequantized then.
std::vector<Var> gather_block_quantized(ContribCall& call) {
  const Attributes& attributes = call.attributes();
  const Var data = call["data"], indices = call["indices"];
  const int64_t rank = call.rank(data);
  const auto from_front = [&](const char* name) { return front_axis(attributes.integer(name), rank); };
  const int64_t gather_axis = from_front("gather_axis"), quantize_axis = from_front("quantize_axis");
  const bool is_packed = data.dtype() == DType::u8 && attributes.integer("bits") != 8;
  call.only("bits", {2, 4, 8});
  if (gather_axis == quantize_axis) call.refuse("attribute 'quantize_axis'", "equal to gather_axis is not supported");
  if (is_packed && quantize_axis != rank - 1)
    call.refuse("attribute 'quantize_axis'", "packed data need the last axis");
  const int64_t bits = attributes.integer("bits");
  // Of packed data the rows that are looked up are unpacked, not the table.
  const auto looked_up = [&](Var v, Var like) {
    Var rows = gather(v, indices, gather_axis);
    if (!is_packed || v.dtype() != DType::u8) return rows;
    const int64_t given = call.extent(v, -1) * (8 / bits);
    const int64_t count = like.is_valid() ? call.extent(like, -1) : given;
    if (count > given) call.refuse("packed elements", "too few in " + to_string(v.type()));
    return unpack_computed(call, rows, bits, count);
  };
  Var zero = call["zero_points"];
  const Var scales = gather(call["scales"], indices, gather_axis);
  const int64_t axis = quantize_axis < gather_axis ? quantize_axis : quantize_axis + call.rank(indices) - 1;
  if (zero.is_valid()) {
    zero = looked_up(zero, call["scales"]);
  } else if (data.dtype() == DType::u8) {
    // Bytes count from the middle, 4-bit dtypes from 0.
    const Var rows = cast(looked_up(data, {}), scales.dtype());
    const Var shifted = cast(sub(rows, scalar_like(rows, static_cast<double>(1 << (bits - 1)))), DType::i8);
    return {apply(get_op("dequantize_linear"), {shifted, scales},
                  {{"axis", axis}, {"block_size", attributes.integer("block_size")}})};
  }
  return {apply(get_op("dequantize_linear"), {looked_up(data, {}), scales, zero},
                {{"axis", axis}, {"block_size", attributes.integer("block_size")}})};
}

}  // namespace

std::vector<ContribOp> contrib_block_quantized() {
  return {
      contrib_op("MatMulNBits", "A, B, scales, zero_points?, g_idx?, bias?", "Y", "block_matmul, matmul, add",
                 matmul_n_bits,
                 {required_attribute("K"), required_attribute("N"), with_default("bits", int64_t{4}),
                  required_attribute("block_size"), with_default("accuracy_level", int64_t{0}),
                  with_default("weight_prepacked", int64_t{0})}),
      contrib_op("MatMulBnb4", "A, B, absmax", "Y", "matmul", matmul_bnb4,
                 {required_attribute("K"), required_attribute("N"), required_attribute("block_size"),
                  required_attribute("quant_type"), with_default("training_mode", int64_t{0}),
                  with_default("transB", int64_t{1})}),
      contrib_op("GatherBlockQuantized", "data, indices, scales, zero_points?", "output", "gather, dequantize_linear",
                 gather_block_quantized,
                 {with_default("bits", int64_t{4}), with_default("block_size", int64_t{128}),
                  with_default("gather_axis", int64_t{0}), with_default("quantize_axis", int64_t{1})}),
  };
}

}  // namespace autograph::io
