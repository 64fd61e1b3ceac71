// The activation functions that ONNX names in the attributes of recurrent ops.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/builder.h"
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

/// The same as nodes of a graph.
Var apply_activation(std::string_view name, const ActivationParameters& parameters, const Var& x);

/// A function with its parameters.
struct NamedActivation {
  std::string name;
  ActivationParameters parameters;
};

/// The functions of all directions; parameter lists are used up by the functions that take parameters, in order.
std::vector<NamedActivation> recurrent_activations(const Attributes& attributes, const RecurrentKind& kind);

}  // namespace autograph
