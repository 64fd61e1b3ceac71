// What the programs in examples/ compute, as functions of eager values that can be captured: for what is to hold of
// each of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograph/capture.h"

namespace autograph {

/// A function, what it is called with, one call after the other, and the variables that it changes.
struct ExampleFunction {
  EagerFunction function;
  std::vector<std::vector<Var>> calls;
  std::vector<Var> variables = {};
};

/// By the name of the program. Each `make` begins anew, with the same weights.
struct Example {
  std::string name;
  std::function<ExampleFunction()> make;
};

/// All that compute something, in the order of their names.
std::vector<Example> example_functions();

}  // namespace autograph
