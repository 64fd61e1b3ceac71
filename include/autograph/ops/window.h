// Typed builders of the ops that slide a window: convolutions and pools. x is [N, C, spatial...] everywhere.
#pragma once

#include "autograph/builder.h"

namespace autograph {

/// How a convolution slides. Empty lists mean the default on every spatial axis.
struct ConvOptions {
  std::vector<int64_t> strides = {};    ///< One per spatial axis; default 1.
  std::vector<int64_t> pads = {};       ///< Begin of each spatial axis, then end of each; default 0.
  std::vector<int64_t> dilations = {};  ///< One per spatial axis; default 1.
  int64_t group = 1;                    ///< Divides the input and output channels.
  std::string auto_pad = "NOTSET";      ///< "SAME_UPPER", "SAME_LOWER" or "VALID" instead of `pads`.
};

/// How a pool slides. Empty lists mean the default on every spatial axis.
struct PoolOptions {
  std::vector<int64_t> kernel;          ///< Extent of the window; one per spatial axis.
  std::vector<int64_t> strides = {};    ///< One per spatial axis; default 1.
  std::vector<int64_t> pads = {};       ///< Begin of each spatial axis, then end of each; default 0.
  std::vector<int64_t> dilations = {};  ///< One per spatial axis; default 1.
  bool ceil_mode = false;               ///< Does a partial last window count?
  bool count_include_pad = false;       ///< average_pool: does padding count in the divisor?
  std::string auto_pad = "NOTSET";      ///< "SAME_UPPER", "SAME_LOWER" or "VALID" instead of `pads`.
};

/// The attributes that all pools share.
Attributes pool_options_attributes(const PoolOptions& options);

/// w is [M, C / group, kernel...], b is [M]; the result is [N, M, spatial...].
Var conv(Var x, Var w, Var b = {}, const ConvOptions& options = {});
/// Largest element of each window: [N, C, spatial...].
Var max_pool(Var x, const PoolOptions& options);
/// Mean of each window: [N, C, spatial...].
Var average_pool(Var x, const PoolOptions& options);
/// Mean over all spatial positions: [N, C, 1...].
Var global_average_pool(Var x);
/// Largest element over all spatial positions: [N, C, 1...].
Var global_max_pool(Var x);
/// (sum |x|^p)^(1/p) over all spatial positions: [N, C, 1...].
Var global_lp_pool(Var x, int64_t p = 2);

}  // namespace autograph
