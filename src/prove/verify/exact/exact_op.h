// How the exact interpreter computes single ops.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "autograph/op_def.h"
#include "prove/verify/exact/exact_interpreter.h"

namespace autograph {

/// One call: inputs as to_exact() gives them (absent = not given), outputs allocated as u64 zeros (or of their integer
/// type).
struct ExactCall {
  const OpDef& op;
  const Attributes& attributes;
  std::span<const Tensor> inputs;
  std::span<Tensor> outputs;
  const ExactOptions& options;

  /// Input `slot`, absent when not given.
  const Tensor& input(size_t slot) const;
  bool has_input(size_t slot) const { return input(slot).is_present(); }
  const uint64_t* in(size_t slot) const { return input(slot).data<uint64_t>(); }
  uint64_t* out(size_t slot = 0) const { return outputs[slot].mutable_data<uint64_t>(); }
};

using ExactFn = void (*)(const ExactCall&);

/// The loops for an op, or null; each of the three knows its own family.
ExactFn find_exact_linear(const OpDef& op);       ///< matmul, gemm, conv.
ExactFn find_exact_window(const OpDef& op);       ///< Pools, global pools, reductions.
ExactFn find_exact_elementwise(const OpDef& op);  ///< add, mul, relu, max ...
ExactFn find_exact_row(const OpDef& op);          ///< Softmax and normalizations.

/// Does it compare numbers, or raise them to powers, so that it is itself only where they are integers?
bool is_exact_on_integers_only(const OpDef& op);

/// An op without properties on whole tensors, or element by element where the op is elementwise.
void call_opaque(const ExactCall& call);

/// The integer that `a` stands for, where numbers are integers; throws UnsupportedError for what can be none of those
/// that come up there: a quotient, an overflow. These have no sign and no order modulo a prime.
int64_t integer_of(uint64_t a);

/// A function without properties of `arguments`, different for each op and attributes but those named in `except`.
class OpaqueFunction {
 public:
  OpaqueFunction(const OpDef& op, const Attributes& attributes, std::span<const std::string_view> except = {});
  uint64_t operator()(std::span<const uint64_t> arguments) const;

 private:
  uint64_t key_;
};

/// For each input the position that output element `i` of `dims` reads, by NumPy's broadcasting.
class BroadcastWalk {
 public:
  BroadcastWalk(std::span<const Tensor> inputs, const Dims& dims);
  int64_t position(size_t input, int64_t i) const { return positions_[input][static_cast<size_t>(i)]; }

 private:
  std::vector<std::vector<int64_t>> positions_;
};

}  // namespace autograph
