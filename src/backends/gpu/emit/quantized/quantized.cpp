#include "backends/gpu/emit/quantized/quantized.h"

#include <limits>
#include <span>

#include "backends/gpu/emit/text/product.h"
#include "ops/defs.h"

namespace autograph::gpu {
namespace {

// Names of parameters, by slot.
constexpr const char* kOfSums[] = {"left_bytes", "right_bytes", "left_zeros", "right_zeros"};
constexpr const char* kOfBytes[] = {"left_bytes",  "left_scales", "left_zeros", "right_bytes", "right_scales",
                                    "right_zeros", "scales",      "zeros",      "bias"};
constexpr size_t kLeftScale = 1, kRightScale = 4, kScale = 6, kZero = 7, kBias = 8;

bool gives_bytes(const KernelCall& call) {
  return &call.op == &qlinear_matmul_def() || &call.op == &qlinear_conv_def();
}

std::span<const char* const> names_of(const KernelCall& call) {
  return gives_bytes(call) ? std::span<const char* const>(kOfBytes) : std::span<const char* const>(kOfSums);
}

}  // namespace

bool is_plain_integer(DType dtype) { return is_whole(dtype) && dtype != DType::boolean && element_size(dtype) <= 4; }

std::string saturated_integer(DType to, const std::string& shifted) {
  const int bits = static_cast<int>(element_size(to)) * 8;
  const int high = is_signed_whole(to) ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
  const int low = is_signed_whole(to) ? -(1 << (bits - 1)) : 0;
  return fmt::format("(isnan({0}) || {0} <= {1}.0f ? ({3})({1}) : {0} >= {2}.0f ? ({3}){2} : ({3}){0})", shifted, low,
                     high, compute_type(to));
}

// Products of bytes whose sums leave 32 bits become wrong bytes: results that are sums wrap around themselves.
ByteProduct::ByteProduct(const KernelCall& call, const Target& target, int64_t inner)
    : call_(call), target_(target), sum_type_("u32") {
  constexpr int64_t kLargestProduct = int64_t{255} * 255;
  if (gives_bytes(call) && inner > std::numeric_limits<int32_t>::max() / kLargestProduct) sum_type_ = "u64";
}

size_t ByteProduct::right_slot(const KernelCall& call) { return gives_bytes(call) ? 3 : 1; }

std::string ByteProduct::refusal() const {
  if (!can_multiply(DType::i32, target_)) return "groups of 256 items";
  for (const size_t slot : {size_t{0}, right_slot(call_)}) {
    if (!is_whole(call_.inputs[slot].dtype())) return "operands that are no integers";
  }
  return is_whole(call_.outputs[0].dtype()) ? "" : "results that are no integers";
}

std::vector<Parameter> ByteProduct::parameters() const {
  std::vector<Parameter> list;
  const auto names = names_of(call_);
  for (size_t slot = 0; slot < names.size(); ++slot) {
    if (call_.has_input(slot)) {
      list.push_back(input_parameter(names[slot], storage_type(call_.inputs[slot].dtype()), slot));
    }
  }
  list.push_back(output_parameter("y", storage_type(call_.outputs[0].dtype())));
  return list;
}

std::string ByteProduct::of_line(size_t slot, const std::string& line) const {
  const bool are_many = num_elements(call_.input_dims(slot)) > 1;
  return load(call_.inputs[slot].dtype(), names_of(call_)[slot], are_many ? line : "0");
}

std::string ByteProduct::shifted(size_t slot, const std::string& at, const std::string& line) const {
  const std::string element = fmt::format("(i32){}[{}]", names_of(call_)[slot], at);
  const size_t zero = slot + 2;
  if (!call_.has_input(zero)) return fmt::format("({})({})", sum_type_, element);
  return fmt::format("({})({} - {})", sum_type_, element, of_line(zero, line));
}

// In f64 as the reference, where there is f64: f32 may round what lies next to a half to the other side.
void ByteProduct::store(Writer& writer, const std::string& at, const std::string& left_line,
                        const std::string& right_line, const std::string& sum) const {
  if (!gives_bytes(call_)) return writer.line("y[{}] = (i32)({});", at, sum);
  const char* real = target_.has_f64 ? "f64" : "f32";
  std::string whole = sum_type_ == "u32" ? fmt::format("(i64)(i32){}", sum) : fmt::format("(i64){}", sum);
  if (call_.has_input(kBias)) whole = fmt::format("({} + bias[{}])", whole, right_line);
  writer.line("const {0} scale = ({0}){1} * {2} / {3};", real, of_line(kLeftScale, left_line),
              of_line(kRightScale, right_line), of_line(kScale, "0"));
  writer.line("const {0} shifted = rint(({0}){1} * scale) + {2};", real, whole, of_line(kZero, "0"));
  writer.line("y[{}] = {};", at, saturated_integer(call_.outputs[0].dtype(), "shifted"));
}

}  // namespace autograph::gpu
