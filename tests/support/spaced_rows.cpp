#include "support/spaced_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace autograph {
namespace {

constexpr size_t kGap = 5 * sizeof(float);

bool is_untouched(const char* begin, size_t bytes) {
  return std::all_of(begin, begin + bytes, [](char byte) { return byte == '\xFF'; });
}

}  // namespace

std::string spaced_rows_complaint(const Kernel& kernel, const KernelArgs& args, size_t output_bytes) {
  const size_t row = kernel.spaced_row_bytes();
  if (row == 0 || args.outputs.size() != 1) return "";
  if (output_bytes % row != 0) return fmt::format("rows of {} bytes in {} bytes", row, output_bytes);
  const size_t stride = row + kGap;
  Tensor memory = Tensor::empty(DType::u8, {static_cast<int64_t>(output_bytes / row * stride)});
  std::memset(memory.mutable_raw(), 0xFF, memory.size_bytes());
  const TensorView output(args.outputs[0].dtype(), args.outputs[0].dims(), memory.mutable_raw());
  KernelArgs spaced = args;
  spaced.outputs = {&output, 1};
  spaced.row_stride = stride;
  kernel.run(spaced);
  const char* expected = static_cast<const char*>(args.outputs[0].raw());
  const char* actual = static_cast<const char*>(memory.raw());
  for (size_t r = 0; r < output_bytes / row; ++r, expected += row, actual += stride) {
    if (std::memcmp(expected, actual, row) != 0) return fmt::format("row {} differs where rows lie apart", r);
    if (!is_untouched(actual + row, kGap)) return fmt::format("wrote behind row {}", r);
  }
  return "";
}

}  // namespace autograph
