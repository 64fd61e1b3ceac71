// The equation of einsum, "ij,jk->ik": parsing, and matching its labels with operands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/shape.h"

namespace autograph {

/// A parsed equation. Terms are strings of letters, in which '.' stands for the ellipsis.
struct EinsumEquation {
  std::vector<std::string> inputs;
  std::string output;
};

/// Parses an equation; without "->" the output is the ellipsis and the labels that occur once, in alphabetical order
/// (upper case first). Throws ValueError saying what is wrong.
EinsumEquation parse_einsum(std::string_view text);

/// A label of a dim: a letter, or a dim of the ellipsis counted from its right end.
using EinsumLabel = int;

/// One label per dim of an operand of that rank; dims of the ellipsis become labels of their own. Throws ShapeError
/// when the rank does not fit the term.
std::vector<EinsumLabel> expand_labels(const std::string& term, int64_t rank);

/// The labels of the output when the ellipsis stands for `ellipsis_rank` dims.
std::vector<EinsumLabel> expand_output(const std::string& term, int64_t ellipsis_rank);

}  // namespace autograph
