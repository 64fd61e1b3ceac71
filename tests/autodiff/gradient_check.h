// Gradients against differences.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "autograph/builder.h"
#include "autograph/op_def.h"

namespace autograph {

/// A call of an op with its floats in f64 where it takes them, as a graph whose float inputs are graph inputs.
struct GradientCase {
  std::shared_ptr<Graph> graph;
  std::vector<Datum> inputs;  ///< For all graph inputs, which are the wanted values.
  std::vector<Var> wanted;    ///< The float inputs.
  std::vector<Var> outputs;   ///< The float outputs.
  bool is_f64 = true;         ///< Does the op take f64?
};

/// The case of `sample`; without outputs or wanted inputs where there is nothing to differentiate. Inputs in `constant`
/// are not differentiated with respect to.
GradientCase make_gradient_case(const OpDef& op, OpSample sample, const std::set<size_t>& constant = {});

/// What vjp, jvp and the gradient of gradients of the case get wrong: "" for nothing. Directions are drawn from
/// `random`; central differences are those of the reference implementations. With `second_order` the gradients are
/// differentiated as well.
std::string check_gradients(const GradientCase& test, Random& random, bool second_order = true);

/// How the compiled gradients of the sums of a case's outputs differ from those of the reference: "" for not at all.
std::string check_compiled_gradients(const GradientCase& test);

/// What a graph of tensors computes, node by node by the reference implementations.
std::vector<Tensor> interpret_tensors(const Graph& graph, const std::vector<Datum>& inputs);

/// `few`, or what AG_RANDOM_GRAPHS says.
int number_of_graphs(int few);

}  // namespace autograph
