// A call of an op cut down to what some elements of its first output need.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "accuracy/selection.h"
#include "autograph/op_def.h"

namespace autograph {

/// A smaller call: the same op on parts of its inputs.
struct CroppedCall {
  std::vector<Selection> inputs;  ///< Of each input; empty for those that are not given or of rank 0.
  Attributes attributes;
  Selection made;  ///< What it computes of output 0: what was wanted, and what comes with it.
};

/// A call with static types. `known`: elements of inputs that are known, else absent; parallel to the inputs.
struct WholeCall {
  const OpDef& op;
  const Attributes& attributes;
  std::span<const Type> inputs;
  std::span<const Type> outputs;
  std::span<const Tensor> known;

  bool has(size_t slot) const { return slot < inputs.size() && inputs[slot].is_tensor(); }
  Dims dims(size_t slot) const { return has(slot) ? inputs[slot].shape().static_dims() : Dims(); }
};

/// The call that computes `wanted` of output 0; nothing for ops that can only be computed as a whole.
std::optional<CroppedCall> crop_call(const WholeCall& call, const Selection& wanted);

/// The first axis of output 0 over which windows slide: 2 for convolutions and pools, else the rank.
size_t first_window_axis(const WholeCall& call);

}  // namespace autograph
