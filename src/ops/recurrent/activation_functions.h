// The activation functions that ONNX names in the attributes of recurrent ops.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ops/recurrent/recurrent.h"

namespace autograph {

/// Parameters that a named function takes, with ONNX's defaults; absent: it takes none.
struct ActivationParameters {
  std::optional<double> alpha;
  std::optional<double> beta;
};

/// The parameters of the function named `name` (upper and lower case alike); nothing when there is no such function.
std::optional<ActivationParameters> find_activation(std::string_view name);

/// The function named `name`, which exists, with these parameters.
Activation make_activation(std::string_view name, const ActivationParameters& parameters);

}  // namespace autograph
