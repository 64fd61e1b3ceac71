// Contrib ops: what ONNX Runtime's optimiser and quantiser write into files. Each is one row of a table, its body
// spelled in our ops while the file is read: nothing behind the importer knows that they exist, and our passes fuse
// the bodies as they fuse every other graph.
//
// One file a family; contrib.cpp joins the tables.
#pragma once

#include <string>
#include <vector>

#include "autograph/builder.h"
#include "autograph/foreign_node.h"
#include "autograph/op_def.h"

namespace autograph::io {

/// One node of a file, seen by the body of its op: inputs and attributes by name.
class ContribCall {
 public:
  explicit ContribCall(ForeignNode& node);

  Graph& graph() const { return node_.graph; }
  const Attributes& attributes() const { return node_.attributes; }
  /// The input of this name; Var() when not given.
  Var operator[](std::string_view name) const;
  bool has(std::string_view name) const { return (*this)[name].is_valid(); }
  /// Inputs from `name` on, all those of a variadic parameter.
  std::vector<Var> all(std::string_view name) const;
  /// Is output `slot` perhaps read?
  bool wants(size_t slot) const { return slot < node_.num_outputs; }

  /// Rank of `v`; throws UnsupportedError while it is unknown.
  int64_t rank(Var v) const;
  /// Extent of `axis` (negative counts from the end); throws UnsupportedError unless it is a number.
  int64_t extent(Var v, int64_t axis) const;
  /// Elements of `v` when it is a constant.
  std::optional<Tensor> known(Var v) const;
  Var constant(Tensor tensor) const { return autograph::constant(graph(), std::move(tensor)); }

  /// Throws UnsupportedError: "[QGemm] what: detail (node "x")".
  [[noreturn]] void refuse(std::string_view what, std::string_view detail) const;
  /// Refuses an integer attribute that is given and not one of `allowed`.
  void only(std::string_view attribute, std::initializer_list<int64_t> allowed) const;
  /// Refuses an input that is given.
  void without(std::string_view input) const;

 private:
  size_t slot_of(std::string_view name) const;
  ForeignNode& node_;
};

/// The op in other ops: one Var per output, Var() for those it cannot give.
using ContribBody = std::vector<Var> (*)(ContribCall&);

/// A row of the table: the schema (names, arities, attributes and the spelling in ONNX) and the body.
struct ContribOp : OpDef {
  ContribBody body = nullptr;
  std::vector<std::string_view> becomes =
      {};                    // our ops that do the work of bodies: none that only move, convert or mask
  bool takes_texts = false;  // else inputs are numbers, whatever the file says
};

inline constexpr std::string_view kMicrosoft = "com.microsoft";

/// A row; inputs and outputs are lists such as "x, scale, zero_point?, more*" (? optional, * variadic). `becomes` is a
/// list, too, with "activation" for all that activated() can give.
ContribOp contrib_op(std::string_view name, std::string_view inputs, std::string_view outputs, std::string_view becomes,
                     ContribBody body, std::vector<AttributeSpec> attributes = {},
                     std::string_view domain = kMicrosoft);

/// Attributes of a row: with a default, or without.
inline AttributeSpec with_default(std::string_view name, AttributeValue value) {
  const AttributeType type = type_of(value);
  return {.name = name, .type = type, .doc = "", .default_value = std::move(value)};
}
inline AttributeSpec optional_attribute(std::string_view name, AttributeType type) {
  return {.name = name, .type = type, .doc = ""};
}
inline AttributeSpec required_attribute(std::string_view name, AttributeType type = AttributeType::integer) {
  return {.name = name, .type = type, .doc = "", .required = true};
}
/// The attributes of one of our ops, and more.
std::vector<AttributeSpec> attributes_of(std::string_view op, std::vector<AttributeSpec> more = {});
/// The attributes of the call that `op` has too.
Attributes shared_attributes(const ContribCall& call, std::string_view op);

/// All rows.
const std::vector<ContribOp>& contrib_ops();

// ---- The families ----------------------------------------------------------------------------------------------

std::vector<ContribOp> contrib_activations();
std::vector<ContribOp> contrib_attention();
std::vector<ContribOp> contrib_block_quantized();
std::vector<ContribOp> contrib_blocked_channels();
std::vector<ContribOp> contrib_channels_last();
std::vector<ContribOp> contrib_classic_models();
std::vector<ContribOp> contrib_experimental();
std::vector<ContribOp> contrib_group_query_attention();
std::vector<ContribOp> contrib_linear_attention();
std::vector<ContribOp> contrib_mixture_of_experts();
std::vector<ContribOp> contrib_normalization();
std::vector<ContribOp> contrib_products();
std::vector<ContribOp> contrib_quantized();
std::vector<ContribOp> contrib_quantized_products();
std::vector<ContribOp> contrib_rotary();
std::vector<ContribOp> contrib_support_vectors();

}  // namespace autograph::io
