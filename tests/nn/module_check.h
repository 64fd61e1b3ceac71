// Modules as functions of tensors, and their gradients against differences.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograph/nn/module.h"

namespace autograph::nn {

/// Makes something of graph inputs, one for each tensor that is given.
using Make = std::function<std::vector<Var>(const std::vector<Var>& inputs)>;

/// What `make` gives for `inputs`, on the processor.
std::vector<Tensor> evaluate(const std::vector<Tensor>& inputs, const Make& make);

/// What `module(x)` gives.
Tensor evaluate(Module& module, const Tensor& x);

/// Elements in [-1, 1), the same for the same seed.
Tensor drawn(const Dims& dims, uint64_t seed);

/// The slope of a fixed random weighting of what `make` gives along a fixed random direction of all parameters of
/// `module`: by the gradients, and by central differences.
struct Slopes {
  double by_gradient = 0;
  double by_difference = 0;
};
Slopes slopes(Module& module, const std::vector<Tensor>& inputs, const Make& make);

/// Are both nearly the same, and not nothing? "" or what they are.
std::string slope_error(Module& module, const std::vector<Tensor>& inputs, const Make& make);

}  // namespace autograph::nn
