// Are the gradients of a model right? Compared with differences of its loss, and with what kernels make of them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "autograph/autodiff.h"
#include "autograph/compare_values.h"
#include "autograph/compile.h"

namespace autograph {

/// How gradients are checked.
struct GradientCheckOptions {
  GradientGraphOptions gradients = {};  ///< Of which loss, with respect to what.
  /// How far a derivative may be from the difference, as a share of the terms that it is a sum of.
  double tolerance = 1e-4;
  /// Roughly the time for gradients in f64 and differences. Where it is too short to move every value by itself, values
  /// move in groups of like influence on the loss, and by themselves where a group is wrong. When it is over, all that
  /// is left moves as one group; at least one group is tried, and groups are taken apart for at least a second.
  double seconds = 60;
  /// Called before each step with what has been done of what is to do.
  std::function<void(size_t done, size_t all)> on_progress = nullptr;
};

/// The gradient with respect to one input or weight.
struct GradientDifference {
  std::string name;       ///< Of the input or weight.
  double norm = 0;        ///< Length of the gradient as a vector, in f64.
  double derivative = 0;  ///< Of the loss along the direction in which the value was moved, alone or with its group.
  double difference = 0;  ///< The same by central differences of fourth order.
  double error = 0;       ///< Their distance as a share of the terms of the sum.
  size_t group = 1;       ///< How many values were moved together.
  bool agrees = true;     ///< Is `error` within the tolerance?
  /// False: its group does not agree and was not taken apart in the time, so that this gradient may well be right.
  bool told = true;
  /// The slopes on both sides differ (equal elements of a maximum, relu at 0): no difference can tell what is right
  /// there. `agrees`, `error` and `told` are then those of a place beside it.
  bool at_kink = false;
  /// Is it, or one of its group, shown to be wrong? A group at a kink, which tells no more beside it, shows nothing.
  bool is_wrong() const { return !agrees && (told || !at_kink); }
  Difference compiled;  ///< What the compiled gradient of the model, in its own dtypes, differs from the reference.
};

/// What check_gradients() found.
struct GradientCheck {
  double loss = 0;                         ///< In f64.
  Difference compiled_loss;                ///< What the compiled loss differs from the reference.
  std::vector<GradientDifference> values;  ///< In the order of gradient_graph().
  std::string compared_with;               ///< Truth::how() of the compiled gradients.
  bool is_right() const;                   ///< Nothing is shown to be wrong, neither loss nor gradients.
};

/// Checks the gradients of `model` at `inputs` in two ways. The rules: the gradient graph in f64, run by the reference,
/// against central differences of the loss in f64, along a drawn direction of each value. The kernels: the gradient
/// graph compiled with `options` against the truth (Truth). States are as they are before the first run. A loss with a
/// target ("cross_entropy"...) reads it behind the inputs of the model; where it is not given it is drawn from the
/// seed.
///
/// A step of a difference may cross a kink (relu, a maximum); then shorter steps are tried. Models that draw random
/// numbers without a seed have no differences: the loss is another in every run.
/// Throws what gradient_graph(), compile() and run() throw.
GradientCheck check_gradients(const Graph& model, const std::vector<Datum>& inputs, const CompileOptions& options,
                              const GradientCheckOptions& how = {});

}  // namespace autograph
