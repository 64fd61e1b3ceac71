// Products and convolutions with what follows them element by element: conv, add a residual, relu. The op alone is the
// case of nothing behind it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/gpu/emit/text/chain.h"

namespace autograph::gpu {

/// A call of one op, or of a fused body that begins with it. Refers to the call.
class Epilogue {
 public:
  Epilogue(const KernelCall& call, const OpDef& producer);

  /// "" when the body can be read: the rest must be elementwise, over the elements of the producer's output.
  const std::string& refusal() const { return refusal_; }
  /// The producer by itself. Valid while this object is.
  KernelCall producer() const;
  /// Operand `slot` of the producer as a parameter.
  Parameter operand(std::string name, size_t slot) const;
  /// Inputs of the call that are the operands of the producer; kNone where one is not given.
  const std::vector<size_t>& slots() const { return slots_; }
  static constexpr size_t kNone = static_cast<size_t>(-1);
  /// What the nodes behind the producer read beside its output, and the output of the call, "y".
  std::vector<Parameter> parameters() const;
  /// Covers positions in all of them.
  void cover(IndexType& index) const;
  /// Writes the statements that turn `value`, element number `at` of the producer's output, into that of the call, and
  /// store it. Afterwards refusal() tells whether all nodes could be written.
  void store(Writer& writer, const std::string& at, const std::string& value);
  /// Inputs that have the place of the output, but those that the producer reads.
  std::vector<uint32_t> in_place_inputs() const;

 private:
  void read_body();

  const KernelCall& call_;
  const OpDef& op_;
  std::string refusal_;
  std::optional<Chain> chain_;    // none: the op alone
  const Attributes* attributes_;  // of the producer
  std::vector<size_t> slots_;
  std::vector<Type> inputs_, outputs_;
};

}  // namespace autograph::gpu
