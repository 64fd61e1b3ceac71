// The rules of optimisers: from a weight and its gradient to the new weight.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "autograph/train.h"

namespace autograph {

/// The update of one weight.
struct WeightUpdate {
  Var weight;    ///< A float tensor.
  Var gradient;  ///< In its shape and dtype.
  Var rate;      ///< Learning rate, f64 [].
  Var count;     ///< Number of this update, from 1, f64 [].
  /// States that the optimiser has asked for, and what they are afterwards.
  std::vector<std::pair<Var, Var>> remembered = {};

  /// Gives what the optimiser remembers of the weight: a tensor of these dims and `dtype`, filled with `initial`
  /// before the first update.
  std::function<Var(const std::string& kind, const Dims& dims, DType dtype, double initial)> memory = {};

  /// In the shape and dtype of the weight.
  Var remember(const std::string& kind, double initial = 0) const {
    return memory(kind, weight.shape().static_dims(), weight.dtype(), initial);
  }
  /// One number, f32 [], as torch keeps those of its optimisers.
  Var remember_number(const std::string& kind, double initial) const { return memory(kind, {}, DType::f32, initial); }
};

/// The new weight.
Var updated_weight(const Optimizer& optimizer, WeightUpdate& update);

/// The learning rate that the optimiser begins with.
double learning_rate(const Optimizer& optimizer);

/// Throws ValueError where a number is out of its range.
void check_optimizer(const Optimizer& optimizer);

/// Does it update nothing but rows that were read?
bool is_lazy(const Optimizer& optimizer);

}  // namespace autograph
