// Typed builders of normalizations. Shapes: the output has the shape of `x`.
#pragma once

#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// Normalises each channel (dim 1 of x) with given statistics; scale, bias, mean and variance are [channels].
Var batch_normalization(Var x, Var scale, Var bias, Var mean, Var variance, float epsilon = 1e-5f);

/// Gradients {of x, of scale, of bias} of batch normalization with batch statistics, where gy flows into its output.
std::vector<Var> batch_normalization_grad(Var x, Var scale, Var gy, float epsilon = 1e-5f);

/// Normalises each group of neighbouring channels of each instance; scale and bias are [channels].
Var group_normalization(Var x, Var scale, Var bias, int64_t num_groups, float epsilon = 1e-5f);

/// Normalises each channel of each instance; scale and bias are [channels].
Var instance_normalization(Var x, Var scale, Var bias, float epsilon = 1e-5f);

/// Normalises over the dims from `axis` on; scale and bias (may be invalid) broadcast to x.
Var layer_normalization(Var x, Var scale, Var bias = {}, int64_t axis = -1, float epsilon = 1e-5f);

/// Gradients {of x, of scale, of bias} of layer_normalization, where gy flows into its output; scale has the dims of x
/// from `axis` on.
std::vector<Var> layer_normalization_grad(Var x, Var scale, Var gy, int64_t axis = -1, float epsilon = 1e-5f);

/// Divides by the norm along `axis`: sum of magnitudes (p = 1) or Euclidean (p = 2).
Var lp_normalization(Var x, int64_t axis = -1, int64_t p = 2);

/// Subtracts the mean over `axes` and divides by the standard deviation.
Var mean_variance_normalization(Var x, std::vector<int64_t> axes = {0, 2, 3});

/// Divides by the root of the mean square over the dims from `axis` on; scale broadcasts to x.
Var rms_normalization(Var x, Var scale, int64_t axis = -1, float epsilon = 1e-5f);

}  // namespace autograph
