// Elementwise chains: a node, or the body of a fused one, as statements about one element.
#pragma once

#include <string>
#include <vector>

#include "backends/gpu/emit/text/writer.h"

namespace autograph::gpu {

/// A call as a chain of elementwise nodes over the elements of `dims`.
class Chain {
 public:
  /// The node of the call itself; of a fused one the nodes of its body, but a reduction at its end, and but a first one
  /// of `producer`, whose result is given to write().
  explicit Chain(const KernelCall& call, const OpDef* producer = nullptr);

  /// "" when all of it can be written for the target.
  const std::string& refusal() const { return refusal_; }
  /// Extents of the elements that are computed: of the outputs, or of what a reduction at the end takes.
  const Dims& dims() const { return dims_; }
  /// The reduction at the end of the body; null: there is none.
  const Node* reduction() const { return reduction_; }
  /// The node that the body begins with, where one was asked for; null: there is none.
  const Node* producer() const { return producer_; }
  /// The body, where the call is a fused node.
  const Graph* body() const { return body_; }

  /// Inputs as parameters "x0", "x1", ..., without those that are not given, or that the producer alone reads.
  std::vector<Parameter> parameters() const;
  /// Covers positions in all inputs.
  void cover(IndexType& index) const;
  /// Inputs that have the dims and the size of elements of output 0.
  std::vector<uint32_t> in_place_inputs() const;

  /// Writes the statements for element number `i`. Afterwards results are in the variables that it returns: one for
  /// each output, or what the reduction takes. `produced` is what the producer made of it. Sets refusal() where a node
  /// cannot be written.
  std::vector<std::string> write(Writer& writer, std::string_view i, const std::string& produced = "");
  /// Reads the elements number `first` to `first` + 3, those below `count`, of all inputs at once; from then on `i` of
  /// write() counts them from 0 on.
  void read_four(Writer& writer, std::string_view first, int64_t count);

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
  std::vector<std::string> write_body(Writer& writer, std::string_view i, const std::string& produced);
  bool reads(size_t slot) const;

  const KernelCall& call_;
  const OpDef* producer_op_;
  const Graph* body_ = nullptr;
  const Node* reduction_ = nullptr;
  const Node* producer_ = nullptr;
  bool has_four_ = false;
  std::vector<bool> is_read_;     // for each input: by a node but the producer
  std::vector<ValueId> results_;  // of the body
  Dims dims_;
  std::string refusal_;
};

/// `name`, of the compute type of `dtype`, as it would be read after it was written.
std::string rounded(DType dtype, const std::string& name);

}  // namespace autograph::gpu
