// What the theorem prover is told about ops: equations, in the language of rules.
#pragma once

#include <span>
#include <string_view>

#include "optimize/rules/rule.h"

namespace autograph {

/// An equation that holds whenever both sides are legal and the extents agree.
struct ProofAxiom {
  Rule rule;  ///< before = after; a rule, so that it is tested like one.
  /// "k a c; rank b d": along axis k (a variable or a number) a and c have one extent, b and d are of one rank.
  std::string_view same_extents = "";
};

std::span<const ProofAxiom> proof_axioms();

}  // namespace autograph
