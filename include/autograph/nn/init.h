// How parameters begin: the distributions and fan rules of torch.nn.init.
//
// What is drawn depends on the seed, the path of the parameter and the position of the element alone, so that a layer
// begins with the same weights whatever was built before it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "autograph/tensor.h"

namespace autograph::nn {

/// Of which fan the variance of weights is the inverse.
enum class Fan : uint8_t {
  in,   ///< Elements that one output sums: keeps the variance of activations.
  out,  ///< Outputs that one element reaches: keeps that of gradients.
};

/// The two fans of a weight: dims are [out, in, window...].
struct Fans {
  int64_t in = 0;
  int64_t out = 0;
};

/// Fans as torch.nn.init counts them; throws ShapeError for less than two dims.
Fans fans_of(const Dims& dims);

/// sqrt(2 / (1 + slope^2)): the gain of a leaky relu; sqrt(2) for a relu.
double leaky_relu_gain(double slope);

/// A way to fill a tensor.
class Init {
 public:
  static Init constant(double value);
  static Init zeros() { return constant(0); }
  static Init ones() { return constant(1); }
  static Init uniform(double low, double high);
  static Init normal(double mean = 0, double deviation = 1);
  /// Normal, drawn again where it falls outside [low, high].
  static Init truncated_normal(double mean = 0, double deviation = 1, double low = -2, double high = 2);
  /// Glorot and Bengio 2010: variance gain^2 * 2 / (fan in + fan out).
  static Init xavier_uniform(double gain = 1);
  static Init xavier_normal(double gain = 1);
  /// He et al. 2015: variance gain^2 / fan, with the gain of a leaky relu of this slope.
  static Init kaiming_uniform(double slope = 0, Fan fan = Fan::in);
  static Init kaiming_normal(double slope = 0, Fan fan = Fan::in);
  /// Rows (of the tensor as [first extent, all others]) of length `gain` at right angles to each other, or columns
  /// where there are more rows (Saxe et al. 2013).
  static Init orthogonal(double gain = 1);
  /// Lets channel i of an input through to channel i: 1 in the middle of the window, else 0. Of two dims, [out, in], it
  /// is torch's eye_.
  static Init dirac();
  /// Of two dims: a share `sparsity` of the elements of each column is 0, the others are normal (Martens 2010).
  static Init sparse(double sparsity, double deviation = 0.01);
  /// The same, with zeros at this place of the first dim.
  Init with_row_of_zeros(int64_t row) const;

  /// An f32 tensor filled so; the same for the same seed and path. Throws ShapeError where fans are needed and `dims`
  /// has none.
  Tensor draw(const Dims& dims, uint64_t seed, std::string_view path) const;

 private:
  class Draws;
  using Fill = std::function<double(Draws&)>;
  using Maker = std::function<Fill(const Dims&)>;
  using Streams = std::function<Draws(uint64_t element)>;
  using Finish = std::function<void(Tensor&, const Streams&)>;
  explicit Init(Maker maker) : maker_(std::move(maker)) {}
  Init finished_by(Finish finish) const;
  static Init uniform_of(std::function<double(const Dims&)> bound);
  static Init normal_of(std::function<double(const Dims&)> deviation);
  Maker maker_;
  Finish finish_;  // what it takes all elements for; none: nothing
};

}  // namespace autograph::nn
