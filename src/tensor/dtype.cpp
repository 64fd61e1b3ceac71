#include "autograph/dtype.h"

#include <array>

#include "base/check.h"

namespace autograph {
namespace {

struct DTypeInfo {
  std::string_view name;
  size_t bytes;
  int file_bits;
};

// In the order of the enumeration.
constexpr std::array<DTypeInfo, kNumDTypes> kInfo{{
    {"undefined", 0, 0},  {"f32", 4, 32},    {"f64", 8, 64},
    {"f16", 2, 16},       {"bf16", 2, 16},   {"i8", 1, 8},
    {"i16", 2, 16},       {"i32", 4, 32},    {"i64", 8, 64},
    {"u8", 1, 8},         {"u16", 2, 16},    {"u32", 4, 32},
    {"u64", 8, 64},       {"bool", 1, 8},    {"string", sizeof(std::string), 0},
    {"c64", 8, 64},       {"c128", 16, 128}, {"f8e4m3fn", 1, 8},
    {"f8e4m3fnuz", 1, 8}, {"f8e5m2", 1, 8},  {"f8e5m2fnuz", 1, 8},
    {"f8e8m0", 1, 8},     {"f4e2m1", 1, 4},  {"f6e2m3", 1, 6},
    {"f6e3m2", 1, 6},     {"i4", 1, 4},      {"u4", 1, 4},
    {"i2", 1, 2},         {"u2", 1, 2},
}};

const DTypeInfo& info(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  AG_CHECK(index < kInfo.size(), "dtype {}", index);
  return kInfo[index];
}

}  // namespace

std::string_view to_string(DType dtype) { return info(dtype).name; }

DType dtype_from_string(std::string_view name) {
  for (size_t i = 1; i < kInfo.size(); ++i) {
    if (kInfo[i].name == name) return static_cast<DType>(i);
  }
  return DType::undefined;
}

size_t element_size(DType dtype) { return info(dtype).bytes; }

int file_bits(DType dtype) { return info(dtype).file_bits; }

std::string to_string(DTypeSet set) {
  std::string text;
  for (size_t i = 1; i < kInfo.size(); ++i) {
    if (!set.contains(static_cast<DType>(i))) continue;
    if (!text.empty()) text += '|';
    text += kInfo[i].name;
  }
  return text;
}

}  // namespace autograph
