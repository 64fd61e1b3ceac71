// L-BFGS line by line: steps along directions that remember how gradients have changed, for problems whose loss and
// gradient are those of all samples and small enough to be computed many times.
//
//     Lbfgs optimizer({w, b}, {.strong_wolfe = true});
//     for (int i = 0; i < 10; ++i) optimizer.step([&] { return mean(square(matmul(x, w) + b - y)); });
//
// As torch.optim.LBFGS does it (Liu and Nocedal, On the limited memory BFGS method, 1989), with the same numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// torch's, with its defaults.
struct LbfgsOptions {
  double learning_rate = 1;          ///< Of a step along the direction; with `strong_wolfe` the first that is tried.
  int64_t max_iterations = 20;       ///< Directions in a call of step().
  int64_t max_evaluations = 0;       ///< Of the loss in a call of step(); 0: 5/4 of max_iterations.
  double gradient_tolerance = 1e-7;  ///< It is done where no element of the gradient is larger,
  double change_tolerance = 1e-9;    ///< or where weights, or the loss, change by no more.
  int64_t history = 100;             ///< Pairs of steps and changes of the gradient that are remembered.
  bool strong_wolfe = false;         ///< Looks for a step along the direction that meets the strong Wolfe conditions.
};

/// Makes a loss small.
class Lbfgs {
 public:
  /// Throws ValueError where `variables` are none, or one is no variable of f32 or f64, and where an option is out of
  /// its range.
  explicit Lbfgs(std::vector<Var> variables, const LbfgsOptions& options = {});
  ~Lbfgs();
  Lbfgs(Lbfgs&&) noexcept;
  Lbfgs& operator=(Lbfgs&&) noexcept;

  /// Goes on until an option says that it is enough. `loss` computes the loss, one element, from the variables as they
  /// are, the same whenever they are the same; gradients are formed, and forgotten, here. Gives the first loss. What
  /// `loss` throws comes through; where it is NaN or infinite at the start, a ValueError.
  double step(const std::function<Var()>& loss);
  /// How often the loss has been computed.
  int64_t evaluations() const;
  void set_learning_rate(double rate);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace autograph
