// Elementwise chains: a node, or the body of a fused one, as statements about one element.
#pragma once

#include <string>
#include <vector>

#include "backends/gpu/emit/text/writer.h"

namespace autograph::gpu {

/// A call as a chain of elementwise nodes over the elements of `dims`.
class Chain {
 public:
  /// The node of the call itself; of a fused one the nodes of its body, but a reduction at its end.
  explicit Chain(const KernelCall& call);

  /// "" when all of it can be written for the target.
  const std::string& refusal() const { return refusal_; }
  /// Extents of the elements that are computed: of the outputs, or of what a reduction at the end takes.
  const Dims& dims() const { return dims_; }
  /// The reduction at the end of the body; null: there is none.
  const Node* reduction() const { return reduction_; }
  /// The body, where the call is a fused node.
  const Graph* body() const { return body_; }

  /// Inputs as parameters "x0", "x1", ..., without those that are not given.
  std::vector<Parameter> parameters() const;
  /// Covers positions in all inputs.
  void cover(IndexType& index) const;
  /// Inputs that have the dims and the size of elements of output 0.
  std::vector<uint32_t> in_place_inputs() const;

  /// Writes the statements for element number `i`. Afterwards results are in the variables that it returns: one for
  /// each output, or what the reduction takes. Sets refusal() where a node cannot be written.
  std::vector<std::string> write(Writer& writer, std::string_view i);
  /// Dtype of each of them.
  std::vector<DType> result_dtypes() const;

 private:
  struct Scalar {
    DType dtype = DType::undefined;
    std::string text;
  };

  void look_at_body();
  Scalar load_input(size_t slot, std::string_view i) const;
  Scalar of_value(const std::vector<Scalar>& values, ValueId v);
  std::string write_node(Writer& writer, const OpDef& op, const Attributes& attributes, const std::vector<Scalar>& x,
                         DType output);
  std::vector<std::string> write_body(Writer& writer, std::string_view i);

  const KernelCall& call_;
  const Graph* body_ = nullptr;
  const Node* reduction_ = nullptr;
  std::vector<ValueId> results_;  // of the body
  Dims dims_;
  std::string refusal_;
};

}  // namespace autograph::gpu
