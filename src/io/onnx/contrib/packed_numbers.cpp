#include "io/onnx/contrib/packed_numbers.h"

namespace autograph::io {

Tensor unpack_numbers(const Tensor& packed, int64_t bits, int64_t count) {
  const int64_t per_byte = 8 / bits;
  const int64_t row_bytes = packed.dims().back();
  const int64_t rows = row_bytes == 0 ? 0 : packed.num_elements() / row_bytes;
  Dims dims = packed.dims();
  dims.back() = count;
  Tensor result = Tensor::empty(DType::u8, dims);
  const auto* from = packed.data<uint8_t>();
  auto* to = result.mutable_data<uint8_t>();
  const auto mask = static_cast<uint8_t>((1 << bits) - 1);
  for (int64_t row = 0; row < rows; ++row, from += row_bytes, to += count) {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<uint8_t>(from[i / per_byte] >> (i % per_byte * bits)) & mask;
    }
  }
  return result;
}

Tensor repack_numbers(const Tensor& packed, int64_t bits, int64_t to_bits) {
  const int64_t per_byte = 8 / to_bits;
  const Tensor numbers = unpack_numbers(packed, bits, packed.dims().back() * (8 / bits));
  Dims dims = packed.dims();
  dims.back() = numbers.dims().back() / per_byte;
  Tensor result = Tensor::zeros(DType::u8, dims);
  const auto* from = numbers.data<uint8_t>();
  auto* to = result.mutable_data<uint8_t>();
  for (int64_t i = 0; i < numbers.num_elements(); ++i) {
    to[i / per_byte] = static_cast<uint8_t>(to[i / per_byte] | from[i] << (i % per_byte * to_bits));
  }
  return result;
}

Tensor floats_of(const Tensor& tensor, const Dims& dims) {
  if (tensor.dtype() == DType::f32) return tensor.reshaped(dims);
  const std::vector<double> values = tensor.to_f64();
  return Tensor::of<float>(dims, std::vector<float>(values.begin(), values.end()));
}

}  // namespace autograph::io
