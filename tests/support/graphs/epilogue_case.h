// A product with a chain of elementwise ops behind it: as a graph, as one call of `fused`, and what must come out.
#pragma once

#include <string>
#include <vector>

#include "autograph/graph.h"
#include "autograph/kernel.h"
#include "base/function_ref.h"
#include "support/graphs/epilogue_ops.h"

namespace autograph {

/// One kind of product: a convolution or a matrix product of some form.
struct ProductKind {
  std::string_view name;
  /// Makes a product with `channels` channels (columns).
  Var (*make)(OperandMaker& operands, int64_t channels);
  /// The axis of its output along which the channels lie.
  size_t channel_axis;
};

/// Every form of convolution and matrix product that has kernels of its own.
std::span<const ProductKind> product_kinds();

/// Convolutions and matrix products of any shape: extents, windows, strides, dilations and groups at random, the number
/// of channels among them.
std::span<const ProductKind> random_product_kinds();

/// A product and the ops behind it.
struct EpilogueCase {
  Graph graph;
  std::vector<Tensor> inputs;

  /// The same for the same arguments; `append` puts the ops behind the product.
  EpilogueCase(const ProductKind& product, int64_t channels, uint64_t seed,
               FunctionRef<Var(Var, OperandMaker&)> append);
  /// `kinds` are indices into epilogue_kinds().
  EpilogueCase(const ProductKind& product, int64_t channels, uint64_t seed, std::span<const size_t> kinds);
};

/// What the reference gives for each element of the output, and how far from it a kernel may be.
struct ExpectedElements {
  Tensor values;
  std::vector<float> bounds;  ///< Not finite where an element says nothing: what lies on the way to it is not finite.
  int64_t num_compared = 0;
};

/// How exactly kernels compute.
struct Exactness {
  float product = 2e-6F;  ///< Of the sum of the magnitudes that a product adds up.
  float op = 2e-6F;       ///< Of what an op behind it adds, or of its result.
};

/// Node by node by the reference. A deviation of the product passes through the ops behind it as they pass it on.
ExpectedElements expected_elements(const EpilogueCase& test, const Exactness& exactness);

/// "" when all elements that say something are within their bounds, else the worst of them.
std::string difference(const Tensor& actual, const ExpectedElements& expected);

/// The nodes of a case as one call, as the pass fuse_epilogues makes it. Must outlive what is prepared from it.
class FusedCase {
 public:
  explicit FusedCase(const EpilogueCase& test);
  KernelCall call(int threads) const;
  /// Runs a candidate on inputs in its layouts; the result row-major. With `in_place` the output is where the kernel
  /// would like it. `complaint` says what went wrong besides the values.
  Tensor run(const KernelCatalog& catalog, const KernelCandidate& candidate, int threads, bool in_place,
             std::string& complaint) const;

 private:
  const Node& node() const { return graph_.node(graph_.nodes().front()); }

  Graph graph_;
  std::vector<Tensor> inputs_;  // of the call
  std::vector<Type> input_types_, output_types_;
  std::vector<Tensor> constants_;
};

}  // namespace autograph
