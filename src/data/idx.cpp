// IDX, the format of MNIST: two zero bytes, a byte for the dtype, one for the number of dims, the dims as big-endian
// 32-bit numbers, and the elements, big-endian.
#include <algorithm>
#include <array>
#include <limits>

#include "autograph/data.h"
#include "base/check.h"
#include "base/checked_int.h"
#include "data/byte_source.h"
#include "data/pixel_dataset.h"

namespace autograph {
namespace {

constexpr size_t kMaxRank = 8;
constexpr int64_t kMaxClasses = 1 << 16;

DType dtype_of(uint8_t code) {
  switch (code) {
    case 0x08: return DType::u8;
    case 0x09: return DType::i8;
    case 0x0B: return DType::i16;
    case 0x0C: return DType::i32;
    case 0x0D: return DType::f32;
    case 0x0E: return DType::f64;
    default: return DType::undefined;
  }
}

// The dims; throws before memory is taken for what they claim.
Dims read_dims(ByteSource& file, size_t rank, DType dtype, const DataLimits& limits) {
  std::vector<uint8_t> bytes(4 * rank);
  file.read(bytes.data(), bytes.size(), "dims");
  Dims dims;
  int64_t size = static_cast<int64_t>(element_size(dtype));
  for (size_t axis = 0; axis < rank; ++axis) {
    const uint8_t* at = bytes.data() + 4 * axis;
    dims.push_back((int64_t{at[0]} << 24) | (int64_t{at[1]} << 16) | (int64_t{at[2]} << 8) | int64_t{at[3]});
    const auto product = find_product(size, dims.back());
    AG_CHECK_USER(product, FormatError, "{}: dims: {} elements overflow 64 bits", file.where(), to_string(dims));
    size = *product;
  }
  AG_CHECK_USER(size <= limits.max_bytes, BudgetError, "{}: expected at most {} bytes, got {} for {}{}", file.where(),
                limits.max_bytes, size, to_string(dtype), to_string(dims));
  AG_CHECK_USER(file.may_have(size), FormatError,
                "{}: elements: expected {} bytes for {}{}, got a file that ends early", file.where(), size,
                to_string(dtype), to_string(dims));
  return dims;
}

Tensor read_elements(ByteSource& file, DType dtype, const Dims& dims) {
  Tensor tensor = Tensor::empty(dtype, dims);
  auto* bytes = static_cast<char*>(tensor.mutable_raw());
  if (tensor.size_bytes() > 0) file.read(bytes, tensor.size_bytes(), "elements");
  const size_t width = element_size(dtype);
  for (size_t at = 0; width > 1 && at < tensor.size_bytes(); at += width) std::reverse(bytes + at, bytes + at + width);
  return tensor;
}

// Labels as i64, and how many classes there are.
std::pair<Tensor, int64_t> to_labels(const Tensor& labels, const std::string& path) {
  const std::vector<int64_t> values = labels.to_i64();
  int64_t classes = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    AG_CHECK_USER(values[i] >= 0 && values[i] < kMaxClasses, FormatError,
                  "[idx] '{}': label of sample {}: expected 0 to {}, got {}", path, i, kMaxClasses - 1, values[i]);
    classes = std::max(classes, values[i] + 1);
  }
  return {Tensor::vector(values), classes};
}

}  // namespace

Tensor read_idx(const std::string& path, const DataLimits& limits) {
  ByteSource file("idx", path);
  std::array<uint8_t, 4> magic{};
  file.read(magic.data(), magic.size(), "magic number");
  const DType dtype = dtype_of(magic[2]);
  AG_CHECK_USER(magic[0] == 0 && magic[1] == 0 && dtype != DType::undefined, FormatError,
                "{}: magic number: expected 0 0, a dtype (8, 9 or 11 to 14) and the number of dims, got {} {} {} {}",
                file.where(), magic[0], magic[1], magic[2], magic[3]);
  AG_CHECK_USER(magic[3] >= 1 && magic[3] <= kMaxRank, FormatError, "{}: number of dims: expected 1 to {}, got {}",
                file.where(), kMaxRank, magic[3]);
  const Dims dims = read_dims(file, magic[3], dtype, limits);
  Tensor tensor = read_elements(file, dtype, dims);
  file.expect_end();
  return tensor;
}

DatasetPtr idx_dataset(const std::string& images, const std::string& labels, const DataLimits& limits) {
  const Tensor pixels = read_idx(images, limits);
  AG_CHECK_USER(pixels.dtype() == DType::u8 && pixels.rank() == 3, FormatError,
                "[idx] '{}': expected images u8[samples,rows,columns], got {}", images, to_string(pixels.type()));
  const Tensor numbers = read_idx(labels, limits);
  AG_CHECK_USER(!dtypes::kFloat.contains(numbers.dtype()) && numbers.rank() == 1, FormatError,
                "[idx] '{}': expected labels, integers [samples], got {}", labels, to_string(numbers.type()));
  const Dims& dims = pixels.dims();
  AG_CHECK_USER(numbers.dims()[0] == dims[0], FormatError,
                "[idx] '{}': expected {} labels for the images of '{}', got {}", labels, dims[0], images,
                numbers.dims()[0]);
  const auto [classes, count] = to_labels(numbers, labels);
  return make_pixel_dataset(pixels.reshaped({dims[0], 1, dims[1], dims[2]}), classes, numbered_classes(count));
}

}  // namespace autograph
