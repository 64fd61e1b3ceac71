// What a graph gives where everything rounds differently: evidence for agreement.h.
#pragma once

#include <vector>

#include "support/graphs/sample_graph.h"

namespace autograph {

/// Runs on the reference device, without passes.
std::vector<Datum> run_reference(const Graph& graph, const std::vector<Datum>& inputs);

/// Below this a float is as good as 0: kernels may flush what is smaller.
inline constexpr double kNothing = 1e-30;

/// Results of the reference on a graph that is not quite the one that was compiled.
struct MovedRuns {
  /// Inputs, weights and what nodes make moved by about a rounding, and in every other run flushed; whole numbers on
  /// their own stay. Runs that turn out illegal are left out.
  std::vector<std::vector<Datum>> moved;
  /// All half precision replaced by f32, and the results rounded at the end; empty where the graph has none. It tells
  /// what overflows or vanishes in half precision alone.
  std::vector<std::vector<Datum>> wide;
  /// relu, clip and hard_sigmoid, which is a clip, take NaN for less than any number, as kernels of libraries do with
  /// what they compute before; empty where the graph has none of them.
  std::vector<std::vector<Datum>> without_nan;
  /// Convolutions, and gradients of their weights, multiply the zeros of their padding, which is NaN with what is not
  /// finite, where the reference skips them; empty where nothing is padded.
  std::vector<std::vector<Datum>> padded;
  /// Attention in tiles reads 0 for what is not finite, which kernels skip where a mask hides it and the reference
  /// multiplies by 0; empty where nothing is hidden.
  std::vector<std::vector<Datum>> hidden;
};

/// A few runs; each `round` draws others, from the second on more of them, from the third on all elements of a
/// value alike. The others come with the first round alone.
MovedRuns run_moved(const TestGraph& test, int round = 0);

}  // namespace autograph
