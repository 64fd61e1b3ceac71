// A call of `fused` read as one op that does the work, the anchor, and a chain of elementwise ops behind it, the
// epilogue: conv, add a residual, relu. A call of the anchor's op alone is the case of an empty epilogue.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "autograph/kernel.h"

namespace autograph {

/// What a node of the body reads: an input of the call, a constant of the body, or the value that runs down the chain.
struct Operand {
  int input = -1;   ///< Which input of the call; -1: none.
  Tensor constant;  ///< Elements, when they are known.
  Type type;        ///< Kind::none when the optional input is not given.
  bool is_chain = false;
};

/// One op of the epilogue. Exactly one operand is the chain.
struct EpilogueOp {
  const OpDef* op = nullptr;
  const Attributes* attributes = nullptr;
  std::vector<Operand> operands;
};

/// The operand of a binary op that is not the chain.
const Operand& other_operand(const EpilogueOp& op);

/// The number in operand `slot`: `otherwise` when it is not given, nothing when it is not known.
std::optional<float> known_number(const EpilogueOp& op, size_t slot, float otherwise);

/// Refers to the attributes of the call it was read from.
class AnchoredCall {
 public:
  /// Reads `call`; null unless its anchor is one of `anchors` and the rest a chain that ends in the only output.
  static std::shared_ptr<const AnchoredCall> read(const KernelCall& call, std::span<const OpDef* const> anchors);

  const OpDef& op() const { return *op_; }
  const Attributes& attributes() const { return *attributes_; }
  /// Operand `slot` of the anchor; of Kind::none when it is not given.
  const Operand& operand(size_t slot) const;
  /// Dims of operand `slot`.
  Dims dims(size_t slot) const { return operand(slot).type.shape().static_dims(); }
  bool has(size_t slot) const { return operand(slot).type.is_tensor(); }
  /// Type of the anchor's output, which is that of the whole: epilogues keep dims.
  const Type& output() const { return output_; }
  const std::vector<EpilogueOp>& epilogue() const { return epilogue_; }
  /// The call of the anchor alone, for functions that know no epilogues. Valid while this object stays where it is.
  KernelCall anchor_call(int threads) const;

 private:
  static std::shared_ptr<const AnchoredCall> read_any(const KernelCall& call);
  bool read_body(const KernelCall& call);
  Operand read_operand(const KernelCall& call, const Graph& body, ValueId value, ValueId chain) const;

  std::shared_ptr<const Graph> body_;  // null when the call is the anchor's own
  const OpDef* op_ = nullptr;
  const Attributes* attributes_ = nullptr;
  std::vector<Operand> operands_;
  std::vector<Type> operand_types_;
  std::vector<Tensor> constants_;
  Type output_;
  std::vector<EpilogueOp> epilogue_;
};

/// The body of a call of `fused` with the types of this call: a body may have been made for other or symbolic dims.
std::shared_ptr<const Graph> typed_body(const KernelCall& call);

/// `call` as a convolution with an epilogue.
std::shared_ptr<const AnchoredCall> read_conv(const KernelCall& call);
/// `call` as a matrix product (matmul or gemm) with an epilogue.
std::shared_ptr<const AnchoredCall> read_product(const KernelCall& call);

}  // namespace autograph
