// Losses of whole models.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// Values by the names that users know.
using NamedValues = std::vector<std::pair<std::string, Var>>;

/// Is it a tensor of floats?
bool is_float(const Type& type);

/// Which loss; see GradientGraphOptions and TrainingOptions.
struct LossChoice {
  std::string loss;
  std::string output;  ///< Of which output those with a target are; "": the first.
  uint64_t seed = 0;   ///< Of the weights of "sum".
};

/// Adds the loss to the graph of `outputs`, the model's float outputs. Throws ValueError or ShapeError, with `where` in
/// front, when it does not fit them.
Var make_loss(const NamedValues& outputs, const LossChoice& choice, std::string_view where);

}  // namespace autograph
