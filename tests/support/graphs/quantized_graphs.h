// Graphs of one product or convolution of dequantized tensors, and what exporters put behind it.
#pragma once

#include <string>
#include <vector>

#include "autograph/builder.h"
#include "autograph/random.h"

namespace autograph {

/// A scale, or one for each element of `dims`.
Var draw_scales(Graph& graph, Random& random, double low, double high, Dims dims = {});

/// A dequantized input of the graph, of u8 or i8.
Var quantized_input(Graph& graph, Random& random, const Dims& dims, const std::string& name);

/// Dequantized constants of u8 or i8 whose output channels lie on `axis`, with zero points that leave them fit for i8.
Var quantized_weights(Graph& graph, Random& random, const Dims& dims, int64_t axis);

/// How weights of two dims are given in integers of 2, 4 or 8 bits.
struct NarrowWeights {
  DType dtype = DType::i4;
  bool outputs_first = false;  ///< [outputs, inner]; else [inner, outputs].
  int64_t block = 32;          ///< Along the inner dim; 0: a scale for each output, kOneScale: one for all.
  bool has_zeros = false;
  DType floats = DType::f32;

  static constexpr int64_t kOneScale = -1;
};
/// Dequantized constants, of any numbers that the dtype has.
Var narrow_weights(Graph& graph, Random& random, const NarrowWeights& form, int64_t inner, int64_t outputs);

/// In one to three dims, with groups, and perhaps a bias, a residual and an activation.
Graph random_quantized_conv(Random& random);
/// Rows times one known matrix, as matmul or gemm.
Graph random_quantized_product(Random& random);
/// Stacks on both sides, of which nothing is known.
Graph random_quantized_stacks(Random& random);

/// Any bytes for the inputs of a graph, and small floats.
std::vector<Datum> random_bytes(const Graph& graph, Random& random);

/// "" if these outputs of one quantized node are equal up to one step of a few elements, or up to rounding of floats.
std::string more_than_a_step(const Tensor& actual, const Tensor& expected);

}  // namespace autograph
