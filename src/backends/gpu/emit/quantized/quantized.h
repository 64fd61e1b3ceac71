// What kernels of quantized numbers share: zero points and scales of operands, and sums that become bytes again.
#pragma once

#include <string>
#include <vector>

#include "backends/gpu/emit/text/writer.h"

namespace autograph::gpu {

/// Is it an integer that is stored as such, of 32 bits at most? Those of 4 and 2 bits are packed.
bool is_plain_integer(DType dtype);

/// A number that is rounded and shifted already, as an element of `to`; NaN is the lowest one.
std::string saturated_integer(DType to, const std::string& shifted);

/// The operands of a product of bytes with sums in integers: of matmul_integer and conv_integer, whose results are the
/// sums, or of qlinear_matmul and qlinear_conv, whose results are bytes again. Scales and zero points are those of the
/// operand, or of its lines: of rows of the left one, of columns or channels of the right one. Refers to the call.
class ByteProduct {
 public:
  /// Sums add up `inner` products.
  ByteProduct(const KernelCall& call, const Target& target, int64_t inner);

  /// Why it cannot be written; "" where it can.
  std::string refusal() const;
  Dims left_dims() const { return call_.input_dims(0); }
  Dims right_dims() const { return call_.input_dims(right_slot(call_)); }
  /// Of sums, which wrap around.
  const std::string& sum_type() const { return sum_type_; }
  std::vector<Parameter> parameters() const;
  /// Elements of both operands without their zero points.
  std::string left(const std::string& at, const std::string& line) const { return shifted(0, at, line); }
  std::string right(const std::string& at, const std::string& line) const {
    return shifted(right_slot(call_), at, line);
  }
  /// Writes the statements that store the sum of these lines as element `at` of the output.
  void store(Writer& writer, const std::string& at, const std::string& left_line, const std::string& right_line,
             const std::string& sum) const;

  /// The input that is multiplied from the right.
  static size_t right_slot(const KernelCall& call);

 private:
  std::string of_line(size_t slot, const std::string& line) const;
  std::string shifted(size_t slot, const std::string& at, const std::string& line) const;

  const KernelCall& call_;
  const Target& target_;
  std::string sum_type_;
};

}  // namespace autograph::gpu
