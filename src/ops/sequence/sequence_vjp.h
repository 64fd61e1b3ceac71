// Gradients of the ops on sequences. What flows into a sequence is a sequence of as many tensors of the same shapes.
#pragma once

#include "autograph/op_def.h"

namespace autograph {

/// Zeros in the shape of a tensor, or of the tensors in a sequence or an optional.
Var zeros_of(const Var& x);
/// The sum of two gradients of one tensor, of one sequence, element by element, or of one optional.
Var sum_of_gradients(const Var& a, const Var& b);

void sequence_construct_vjp(VjpContext& context);
void sequence_at_vjp(VjpContext& context);
void sequence_insert_vjp(VjpContext& context);
void sequence_erase_vjp(VjpContext& context);
void split_to_sequence_vjp(VjpContext& context);
void concat_from_sequence_vjp(VjpContext& context);
void sequence_map_vjp(VjpContext& context);

}  // namespace autograph
