// Proving a rule from axioms with a theorem prover (Z3).
#pragma once

#include <span>

#include "autograph/prove.h"
#include "optimize/rules/rule.h"
#include "prove/verify/proof_axioms.h"

namespace autograph {

/// Tries to prove from `axioms` that before and after of this match are equal. Tensors and ops are symbols without
/// meaning to the prover: what it proves holds for all elements, and for all shapes for which the same calls are legal.
Proof prove_rule(const RuleMatch& match, double seconds, std::span<const ProofAxiom> axioms = proof_axioms());

}  // namespace autograph
