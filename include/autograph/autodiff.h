// Differentiation: gradients as nodes of the same graph, which passes, search and the memory plan then treat as any
// other.
//
//     GraphBuilder graph;
//     const Var x = graph.input("x", DType::f32, {64, 10});
//     const Var w = graph.state("w", Tensor::zeros(DType::f32, {10, 1}));
//     const Var y = matmul(x, w);
//     const Var loss = reduce_mean(y * y, {}, false);
//     const Var dw = grad(loss, {w})[0];
//     graph.update(w, w - 0.1 * dw);
//
// Each op brings its rule (OpDef::vjp), or a body of ops that have one. Rules are made of ops, so that gradients have
// gradients. Nothing is computed that is not asked for: values that do not depend on what is differentiated with
// respect to get no gradients, and what no result needs is taken out of the graph again.
//
// All functions here add nodes to the graph that their arguments belong to; values given by the caller keep their
// meaning. They throw UnsupportedError, which names node and op, where a gradient has to pass an op without a rule,
// and ValueError when an argument is no float tensor or belongs to another graph. A value that the result does not
// depend on has zeros for its gradient.
//
// Where a function has no derivative, its rule gives that of PyTorch: 0 for relu and |x| at 0, an even share for each
// of equal maxima, 0 at the bounds of clip (docs/user/subgradients.md has a table). A gradient of 0 stays 0 however
// steep the function is, so that where(x > 0, sqrt(x), 0) has a gradient of 0 at 0 and not NaN.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// A loss and its gradients.
struct ValueAndGrad {
  Var value;                   ///< The loss.
  std::vector<Var> gradients;  ///< One for each value asked for, in its shape and dtype.
};

/// d loss / d value for each of `wanted`: inputs, states, constants or anything else that the loss depends on. The loss
/// has one element. A value that appears in many places (tied parameters) has the sum of its gradients.
std::vector<Var> grad(const Var& loss, const std::vector<Var>& wanted);

/// The same, with the loss.
ValueAndGrad value_and_grad(const Var& loss, const std::vector<Var>& wanted);

/// Vector-Jacobian product: sum over k of (d outputs[k] / d value)^T output_gradients[k], for each of `wanted`.
/// output_gradients: one for each output, in its shape and dtype; invalid ones stand for zeros.
std::vector<Var> vjp(const std::vector<Var>& outputs, const std::vector<Var>& output_gradients,
                     const std::vector<Var>& wanted);

/// Jacobian-vector product: how each of `outputs` changes when `inputs` change along `tangents` (one for each input, in
/// its shape and dtype).
std::vector<Var> jvp(const std::vector<Var>& outputs, const std::vector<Var>& inputs, const std::vector<Var>& tangents);

/// Hessian-vector product: how the gradients of `loss` with respect to `wanted` change along `directions`.
std::vector<Var> hvp(const Var& loss, const std::vector<Var>& wanted, const std::vector<Var>& directions);

/// d output / d input, [extents of output..., extents of input...]: one turn of a scan for each element of the output.
/// Shapes are known.
Var jacobian(const Var& output, const Var& input);

/// What gradient_graph() makes a loss of, and which gradients it gives.
struct GradientGraphOptions {
  /// The name of an output with one element; or "sum": all elements of all float outputs, each times a fixed weight of
  /// its own, normally distributed; "sum1": the same with weights of 1; "mean": the means of all float outputs, added;
  /// "cross_entropy", "soft_cross_entropy", "token_cross_entropy" and "mse" as TrainingOptions::loss has them.
  std::string loss = "sum";
  /// Names of inputs, weights and states, in which * stands for anything and ? for a character. "all": each input, and
  /// the weights and states that make_trainable() lets learn, not tables, masks and what shapes follow from.
  std::string wanted = "all";
  uint64_t seed = 0;  ///< Of the weights of "sum".
};

/// A model with the inputs of `model` whose outputs are the loss, "loss", and for each float input, weight and state
/// with a name that matches its gradient, "grad/NAME", in this order. States are what they are before the first run.
/// Throws ValueError when no name matches, ShapeError where a loss of "sum" needs extents that are open, and what
/// grad() throws.
Graph gradient_graph(const Graph& model, const GradientGraphOptions& options = {});

}  // namespace autograph
