// Two graphs compared in floats: in each dtype, with ordinary elements and with those that rules stumble over.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autograph/graph.h"
#include "autograph/random.h"

namespace autograph {

/// What the elements of inputs are.
enum class Elements : uint8_t {
  ordinary,  ///< Magnitudes from 0.5 to 1.5.
  infinite,  ///< Zeros of both signs and infinities among them.
  nan,       ///< NaN among them.
};

/// How floats are drawn and compared.
struct FloatComparison {
  std::vector<bool> positive_inputs;  ///< Parallel to the inputs.
  Elements elements = Elements::ordinary;
  double least_epsilon = 0;  ///< Numbers are rounded to this at least, whatever their dtype holds.
};

/// Runs both by the reference on the same inputs and compares what is finite in `before` up to rounding; what is NaN
/// there because an input is must be NaN in `after`, too. "" when they agree, else what differs.
std::string compare_floats(const Graph& before, const Graph& after, const FloatComparison& how, Random& random);

/// Indices into kLeastExtentOfIndices rows or more, for i64 inputs.
Tensor draw_indices(const Dims& dims, Random& random);

/// The graph with f32 inputs and constants in another float dtype; nothing where its ops do not have that.
std::optional<Graph> in_dtype(const Graph& graph, DType dtype);

}  // namespace autograph
