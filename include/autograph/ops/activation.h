// Typed builders of the activation functions. Shapes: the output has the shape of `x`.
#pragma once

#include "autograph/builder.h"

namespace autograph {

Var relu(Var x);
Var sigmoid(Var x);
Var tanh(Var x);
/// log(1 + exp(x)).
Var softplus(Var x);
/// x / (1 + |x|).
Var softsign(Var x);
/// x * tanh(softplus(x)).
Var mish(Var x);
/// x * clamp(x / 6 + 1/2, 0, 1).
Var hard_swish(Var x);
/// clamp(alpha * x + beta, 0, 1).
Var hard_sigmoid(Var x, float alpha = 0.2F, float beta = 0.5F);
Var elu(Var x, float alpha = 1.0F);
Var selu(Var x, float alpha = 1.67326319217681884765625F, float gamma = 1.05070102214813232421875F);
Var celu(Var x, float alpha = 1.0F);
Var leaky_relu(Var x, float alpha = 0.01F);
/// x where it is above alpha, else 0.
Var thresholded_relu(Var x, float alpha = 1.0F);
/// Moves large elements towards 0 by `bias`; those within [-lambd, lambd] become 0.
Var shrink(Var x, float bias = 0.0F, float lambd = 0.5F);
/// Exact, or the tanh approximation.
Var gelu(Var x, bool approximate = false);
/// gelu(x + bias); bias: [extent of the last axis].
Var bias_gelu(Var x, Var bias);
/// x * sigmoid(alpha * x).
Var swish(Var x, float alpha = 1.0F);
/// swish(a) * b; equal shapes.
Var swiglu(Var a, Var b, float alpha = 1.0F);
Var softmax(Var x, int64_t axis = -1);
Var log_softmax(Var x, int64_t axis = -1);
/// 1 at the first largest element along `axis`, 0 elsewhere.
Var hardmax(Var x, int64_t axis = -1);

}  // namespace autograph
