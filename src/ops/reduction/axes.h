// Which axes a reduction removes, and the walk over what each output element is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// Infers the output of a reduction with inputs (x, axes) and attributes keepdims and noop_with_empty_axes.
void infer_reduction(InferContext& context);

/// Is it one of reduce_l1, ..., reduce_sum_square?
inline bool is_reduction(const OpDef& op) { return op.infer == infer_reduction; }

/// For each output element, in order, where its input elements are: output o combines x[starts[o] + offsets[i]].
struct ReductionWalk {
  std::vector<int64_t> starts;
  std::vector<int64_t> offsets;
};

/// The walk of a call that infer_reduction has accepted.
ReductionWalk walk_of(const OpCall& call);

}  // namespace autograph
