// The gradients of control flow: nested graphs are differentiated, and run in the opposite order.
#pragma once

#include "autograph/op_def.h"

namespace autograph {

/// The gradient of the branch that was taken.
void if_vjp(VjpContext& context);

/// A scan from the last step to the first over what each step had for its states, which the forward scan then keeps.
/// States keep their extents from step to step.
void scan_vjp(VjpContext& context);

/// The same; the forward loop tells how many turns there were.
void loop_vjp(VjpContext& context);

}  // namespace autograph
