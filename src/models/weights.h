// Seeded parameters for the built-in models: the same values on every machine, whatever the order of drawing.
//
// Element i of parameter P of model M is a pure function of the hash of "M/P" and of i (a counter-based generator),
// made with integer arithmetic and one multiplication, so that no libm or vector unit can change a bit. "Normal" values
// are the sum of four 16-bit uniforms: bell-shaped, exact mean and variance, at most 3.47 standard deviations out.
#pragma once

#include <string>
#include <string_view>

#include "autograph/tensor.h"

namespace autograph {

/// Draws f32 parameters of one model.
class Weights {
 public:
  explicit Weights(std::string_view model) : model_(model) {}

  /// Values of mean `mean` and standard deviation `deviation`.
  Tensor normal(std::string_view parameter, const Dims& dims, float mean, float deviation) const;
  /// Values between `low` and `high`.
  Tensor uniform(std::string_view parameter, const Dims& dims, float low, float high) const;
  /// 64 drawn bits: what the values of `parameter` are made from, for choices that are not weights.
  uint64_t bits(std::string_view parameter, uint64_t index) const;

 private:
  uint64_t key(std::string_view parameter) const;
  std::string model_;
};

/// While it lives, Weights of this thread draw no elements for large tensors: outlines of models (zoo.h).
class UndrawnWeights {
 public:
  UndrawnWeights();
  ~UndrawnWeights();
  UndrawnWeights(const UndrawnWeights&) = delete;
  UndrawnWeights& operator=(const UndrawnWeights&) = delete;
};

}  // namespace autograph
