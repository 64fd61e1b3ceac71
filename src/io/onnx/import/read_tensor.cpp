#include "io/onnx/import/read_tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/checked_int.h"
#include "io/onnx/dtype_code.h"
#include "tensor/spare_bytes.h"

namespace autograph::io {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and are copied as they are");

// A mapping costs a system call and parts of two pages: smaller tensors are read.
constexpr size_t kMinMappedBytes = size_t{64} << 10;

Dims read_dims(const google::protobuf::RepeatedField<int64_t>& field, const std::string& what) {
  Dims dims(field.begin(), field.end());
  int64_t product = 1;
  bool overflow = false;
  for (const int64_t d : dims) {
    AG_CHECK_USER(d >= 0, FormatError, "[onnx] tensor '{}': dims: expected 0 or more, got {}", what, d);
    if (d > 0 && !overflow) overflow = __builtin_mul_overflow(product, d, &product);
  }
  AG_CHECK_USER(!overflow, FormatError, "[onnx] tensor '{}': dims {} overflow 64 bits", what, to_string(dims));
  return dims;
}

void check_count(const std::string& what, const char* field, int64_t expected, int64_t got) {
  AG_CHECK_USER(expected == got, FormatError, "[onnx] tensor '{}': {}: expected {} elements, got {}", what, field,
                expected, got);
}

template <class Field, class Target>
void copy_field(const Field& field, Target* target) {
  for (const auto v : field) *target++ = static_cast<Target>(v);
}

bool is_low_bit(DType dtype) { return file_bits(dtype) > 0 && file_bits(dtype) < 8; }

// Are elements in files what they are in memory?
bool is_as_in_memory(DType dtype) { return dtype != DType::boolean && !is_low_bit(dtype); }

// Fields of int32_data hold the bits of a narrower element in their low end.
Tensor from_int32_data(const onnx::TensorProto& proto, DType dtype, Dims dims, const std::string& what) {
  const auto& field = proto.int32_data();
  const int64_t count = checked_product(dims, "tensor");
  const bool one_each = !is_low_bit(dtype) || file_bits(dtype) == 6;
  check_count(what, "int32_data", one_each ? count : packed_bytes(dtype, count), field.size());
  if (is_low_bit(dtype) && !one_each) {
    std::string bytes;
    for (const int32_t v : field) bytes.push_back(static_cast<char>(v));
    return unpack(dtype, std::move(dims), bytes);
  }
  Tensor tensor = Tensor::empty(dtype, std::move(dims));
  void* data = tensor.mutable_raw();
  if (dtype == DType::boolean) {
    auto* flags = static_cast<uint8_t*>(data);
    for (const int32_t v : field) *flags++ = v != 0;
  } else if (file_bits(dtype) == 6) {
    auto* codes = static_cast<uint8_t*>(data);
    for (const int32_t v : field) *codes++ = static_cast<uint8_t>(v & 0x3F);
  } else {
    switch (element_size(dtype)) {
      case 1: copy_field(field, static_cast<uint8_t*>(data)); break;
      case 2: copy_field(field, static_cast<uint16_t*>(data)); break;
      default: copy_field(field, static_cast<int32_t*>(data)); break;
    }
  }
  return tensor;
}

std::map<std::string, std::string> external_entries(const onnx::TensorProto& proto, const std::string& what) {
  std::map<std::string, std::string> entries;
  for (const auto& entry : proto.external_data()) {
    AG_CHECK_USER(entries.emplace(entry.key(), entry.value()).second, FormatError,
                  "[onnx] external_data of '{}': key '{}' appears twice", what, entry.key());
  }
  return entries;
}

int num_data_fields(const onnx::TensorProto& proto) {
  return (proto.has_raw_data() ? 1 : 0) + (cut_range(proto) ? 1 : 0) + (proto.float_data_size() > 0) +
         (proto.int32_data_size() > 0) + (proto.int64_data_size() > 0) + (proto.string_data_size() > 0) +
         (proto.double_data_size() > 0) + (proto.uint64_data_size() > 0);
}

// packed_bytes() of file content to elements.
void unpack_to(DType dtype, size_t count, std::string_view bytes, uint8_t* out) {
  if (dtype == DType::boolean) {
    for (size_t i = 0; i < count; ++i) out[i] = bytes[i] != 0;
    return;
  }
  if (!is_low_bit(dtype)) {
    if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
    return;
  }
  const auto bits = static_cast<size_t>(file_bits(dtype));
  const unsigned mask = (1U << bits) - 1;
  const bool is_signed = dtype == DType::i4 || dtype == DType::i2;
  const unsigned sign = 1U << (bits - 1);
  for (size_t i = 0; i < count; ++i) {
    const size_t bit = i * bits;
    unsigned code = static_cast<uint8_t>(bytes[bit / 8]);
    if (bit / 8 + 1 < bytes.size()) code |= static_cast<unsigned>(static_cast<uint8_t>(bytes[bit / 8 + 1])) << 8;
    code = code >> (bit % 8) & mask;
    out[i] = static_cast<uint8_t>(is_signed && (code & sign) ? code | ~mask : code);
  }
}

// As unpack_to, from a file; elements that need no conversion are read in place.
void read_elements(const InputFile& file, int64_t offset, DType dtype, int64_t count, void* out) {
  const auto size = static_cast<size_t>(packed_bytes(dtype, count));
  if (is_as_in_memory(dtype)) {
    file.read(offset, out, size);
    return;
  }
  std::string bytes(size, '\0');
  file.read(offset, bytes.data(), size);
  unpack_to(dtype, static_cast<size_t>(count), bytes, static_cast<uint8_t*>(out));
}

// Null unless the elements can be used where they lie in the file.
std::shared_ptr<void> map_elements(const InputFile& file, int64_t offset, DType dtype, int64_t count) {
  const auto size = static_cast<size_t>(packed_bytes(dtype, count));
  const bool is_aligned = offset % static_cast<int64_t>(element_size(dtype)) == 0;
  if (size < kMinMappedBytes || !is_aligned || !is_as_in_memory(dtype)) return nullptr;
  return file.map(offset, size, kSpareBytes);
}

// The elements at `offset`: where they are, or copied once, from the file into the tensor.
Tensor from_file(const InputFile& file, int64_t offset, DType dtype, Dims dims, bool may_map) {
  if (may_map) {
    const std::shared_ptr<void> mapped = map_elements(file, offset, dtype, checked_product(dims, "tensor"));
    if (mapped) return Tensor::wrap(dtype, std::move(dims), mapped.get(), mapped);
  }
  Tensor tensor = Tensor::empty(dtype, std::move(dims));
  read_elements(file, offset, dtype, tensor.num_elements(), tensor.mutable_raw());
  return tensor;
}

}  // namespace

int64_t packed_bytes(DType dtype, int64_t count) {
  const int64_t bits = file_bits(dtype);
  return bits >= 8 ? checked_mul(count, bits / 8, "tensor")
                   : checked_add(checked_mul(count, bits, "tensor"), 7, "tensor") / 8;
}

Tensor unpack(DType dtype, Dims dims, std::string_view bytes) {
  Tensor tensor = Tensor::empty(dtype, std::move(dims));
  unpack_to(dtype, static_cast<size_t>(tensor.num_elements()), bytes, static_cast<uint8_t*>(tensor.mutable_raw()));
  return tensor;
}

std::string pack(const Tensor& tensor) {
  const auto* in = static_cast<const uint8_t*>(tensor.raw());
  const DType dtype = tensor.dtype();
  const auto size = static_cast<size_t>(packed_bytes(dtype, tensor.num_elements()));
  if (!is_low_bit(dtype)) return {reinterpret_cast<const char*>(in), size};
  std::string bytes(size, '\0');
  const auto bits = static_cast<size_t>(file_bits(dtype));
  for (size_t i = 0; i < static_cast<size_t>(tensor.num_elements()); ++i) {
    const unsigned code = (in[i] & ((1U << bits) - 1)) << (i * bits % 8);
    const size_t at = i * bits / 8;
    bytes[at] = static_cast<char>(static_cast<uint8_t>(bytes[at]) | (code & 0xFF));
    if (code >> 8) bytes[at + 1] = static_cast<char>(static_cast<uint8_t>(bytes[at + 1]) | code >> 8);
  }
  return bytes;
}

void TensorReader::take_budget(DType dtype, int64_t count, const std::string& what) {
  const auto bytes = find_product(count, static_cast<int64_t>(element_size(dtype)));
  AG_CHECK_USER(bytes && *bytes <= options_.max_tensor_bytes, BudgetError,
                "[onnx] tensor '{}': {} elements of {} exceed the budget of {} bytes for a tensor", what, count,
                to_string(dtype), options_.max_tensor_bytes);
  AG_CHECK_USER(*bytes <= options_.max_total_bytes - total_bytes_, BudgetError,
                "[onnx] tensor '{}': with its {} bytes all tensors exceed the budget of {} bytes", what, *bytes,
                options_.max_total_bytes);
  total_bytes_ += *bytes;
}

Tensor TensorReader::read_typed_fields(const onnx::TensorProto& proto, DType dtype, Dims dims,
                                       const std::string& what) {
  const int64_t count = checked_product(dims, "tensor");
  const auto fill = [&](const auto& field, const char* name, auto* type, int64_t per_element = 1) {
    check_count(what, name, count * per_element, field.size());
    Tensor tensor = Tensor::empty(dtype, dims);
    copy_field(field, static_cast<decltype(type)>(tensor.mutable_raw()));
    return tensor;
  };
  switch (dtype) {
    case DType::f32: return fill(proto.float_data(), "float_data", static_cast<float*>(nullptr));
    case DType::c64: return fill(proto.float_data(), "float_data", static_cast<float*>(nullptr), 2);
    case DType::f64: return fill(proto.double_data(), "double_data", static_cast<double*>(nullptr));
    case DType::c128: return fill(proto.double_data(), "double_data", static_cast<double*>(nullptr), 2);
    case DType::i64: return fill(proto.int64_data(), "int64_data", static_cast<int64_t*>(nullptr));
    case DType::u32: return fill(proto.uint64_data(), "uint64_data", static_cast<uint32_t*>(nullptr));
    case DType::u64: return fill(proto.uint64_data(), "uint64_data", static_cast<uint64_t*>(nullptr));
    case DType::string: {
      check_count(what, "string_data", count, proto.string_data_size());
      Tensor tensor = Tensor::empty(dtype, dims);
      std::copy(proto.string_data().begin(), proto.string_data().end(), tensor.mutable_data<std::string>());
      return tensor;
    }
    default: return from_int32_data(proto, dtype, std::move(dims), what);
  }
}

Tensor TensorReader::read(const onnx::TensorProto& proto, const std::string& what) {
  AG_CHECK_USER(!proto.has_segment(), UnsupportedError, "[onnx] tensor '{}': segments are not supported", what);
  const DType dtype = dtype_from_code(proto.data_type(), "tensor data_type");
  AG_CHECK_USER(dtype != DType::undefined, FormatError, "[onnx] tensor '{}': data_type is missing", what);
  Dims dims = read_dims(proto.dims(), what);
  const int64_t count = checked_product(dims, "tensor");
  take_budget(dtype, count, what);
  const bool external = proto.data_location() == onnx::TensorProto::EXTERNAL;
  const int fields = num_data_fields(proto);
  AG_CHECK_USER(fields <= 1 && !(external && fields > 0), FormatError,
                "[onnx] tensor '{}': elements are given in more than one field", what);
  const std::optional<CutRange> cut = cut_range(proto);
  if (!external && !cut && !proto.has_raw_data()) return read_typed_fields(proto, dtype, std::move(dims), what);
  AG_CHECK_USER(dtype != DType::string, FormatError, "[onnx] tensor '{}': strings need string_data", what);
  if (external) return read_external(proto, dtype, std::move(dims), what);
  const int64_t expected = packed_bytes(dtype, count);
  const int64_t got = cut ? cut->length : static_cast<int64_t>(proto.raw_data().size());
  AG_CHECK_USER(got == expected, FormatError, "[onnx] tensor '{}': raw_data: expected {} bytes for {}{}, got {}", what,
                expected, to_string(dtype), to_string(dims), got);
  if (cut) return read_cut(*cut, dtype, std::move(dims), what);
  return unpack(dtype, std::move(dims), proto.raw_data());
}

Tensor TensorReader::read_cut(const CutRange& range, DType dtype, Dims dims, const std::string& what) {
  const int64_t size = model_.size_bytes();
  const bool inside =
      range.length >= 0 && range.length <= size && range.offset >= 0 && range.offset <= size - range.length;
  AG_CHECK_USER(inside, FormatError, "[onnx] tensor '{}': raw_data: a forged mark names {} bytes from {} of {}", what,
                range.length, range.offset, size);
  if (model_.file) return from_file(*model_.file, range.offset, dtype, std::move(dims), options_.map_weights);
  return unpack(dtype, std::move(dims),
                model_.memory.substr(static_cast<size_t>(range.offset), static_cast<size_t>(range.length)));
}

Tensor TensorReader::read_external(const onnx::TensorProto& proto, DType dtype, Dims dims, const std::string& what) {
  const int64_t expected = packed_bytes(dtype, checked_product(dims, "tensor"));
  const ExternalRange range = parse_external_range(external_entries(proto, what), what);
  const ExternalBytes bytes = files_.find(range, expected, what);
  return from_file(*bytes.file, bytes.offset, dtype, std::move(dims), options_.map_weights);
}

Tensor TensorReader::read_sparse(const onnx::SparseTensorProto& proto, const std::string& what) {
  const Tensor values = read(proto.values(), what);
  const Tensor indices = read(proto.indices(), what + " (indices)");
  const Dims dims = read_dims(proto.dims(), what);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t count = checked_product(dims, "tensor");
  const bool linear = indices.rank() == 1;
  AG_CHECK_USER(values.rank() == 1 && indices.dtype() == DType::i64 && (linear || indices.rank() == 2), FormatError,
                "[onnx] sparse tensor '{}': expected values of rank 1 and i64 indices of rank 1 or 2", what);
  const int64_t entries = values.num_elements();
  AG_CHECK_USER(indices.dims() == (linear ? Dims{entries} : Dims{entries, rank}), FormatError,
                "[onnx] sparse tensor '{}': indices of shape {} do not fit {} values of a rank {} tensor", what,
                to_string(indices.dims()), entries, rank);
  AG_CHECK_USER(values.dtype() != DType::string, UnsupportedError, "[onnx] sparse tensor '{}': strings", what);
  take_budget(values.dtype(), count, what);
  Tensor dense = Tensor::zeros(values.dtype(), dims);
  const auto* index = indices.data<int64_t>();
  const size_t size = element_size(values.dtype());
  for (int64_t i = 0; i < entries; ++i) {
    int64_t at = 0;
    for (int64_t axis = 0; axis < (linear ? 1 : rank); ++axis) {
      const int64_t extent = linear ? count : dims[static_cast<size_t>(axis)];
      const int64_t part = *index++;
      AG_CHECK_USER(part >= 0 && part < extent, FormatError,
                    "[onnx] sparse tensor '{}': index {} is out of range 0..{}", what, part, extent - 1);
      at = at * extent + part;
    }
    std::memcpy(static_cast<char*>(dense.mutable_raw()) + static_cast<size_t>(at) * size,
                static_cast<const char*>(values.raw()) + static_cast<size_t>(i) * size, size);
  }
  return dense;
}

}  // namespace autograph::io
