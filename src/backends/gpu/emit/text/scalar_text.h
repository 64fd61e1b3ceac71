// What an elementwise node computes from one element of each input, as text.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "autograph/op_def.h"
#include "backends/gpu/emit/text/writer.h"

namespace autograph::gpu {

/// One element of an input: its dtype and an expression of its compute type. DType::undefined where it is not given.
struct ScalarOperand {
  DType dtype = DType::undefined;
  std::string text;
};

/// An expression, of the compute type of `output`, for the element that a node of `op` makes. Functions that it calls
/// are added to `writer`. Nothing where there is none.
std::optional<std::string> scalar_text(Writer& writer, const OpDef& op, const Attributes& attributes,
                                       std::span<const ScalarOperand> operands, DType output);

/// The call of a function, written to `writer`, that computes `op` (one that has a formula) of f32 or f64 operands.
std::optional<std::string> formula_text(Writer& writer, const OpDef& op, const Attributes& attributes,
                                        std::span<const ScalarOperand> operands, DType dtype);

}  // namespace autograph::gpu
