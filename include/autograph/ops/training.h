// Typed builders of the optimisers of ai.onnx.preview.training.
#pragma once

#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// One step: `tensors` are all weights, then all gradients, then all states (states gather squared gradients); gives
/// all new weights, then all new states. `rate` and `step` (i64) have one element.
std::vector<Var> adagrad(Var rate, Var step, const std::vector<Var>& tensors, Attributes attributes = {});
/// One step: `tensors` are all weights, then all gradients, then all states (two states each, averages of gradients and
/// of their squares); gives all new weights, then all new states. `rate` and `step` (i64) have one element.
std::vector<Var> adam(Var rate, Var step, const std::vector<Var>& tensors, Attributes attributes = {});
/// One step: `tensors` are all weights, then all gradients, then all states (states are averages of gradients); gives
/// all new weights, then all new states. `rate` and `step` (i64) have one element.
std::vector<Var> momentum(Var rate, Var step, const std::vector<Var>& tensors, Attributes attributes);

}  // namespace autograph
