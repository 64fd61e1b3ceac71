// Attributes by what they mean rather than by how they are written, so that rules compare and copy the same things:
//
//   strides, dilations, pads     filled in when they are not given; pads that auto_pad stands for are worked out
//   auto_pad                     "NOTSET", once pads say it
//   axis                         counted from the front
//   perm                         filled in when it is not given
//   kernel_shape of conv         not looked at: the weights say it
//   num_outputs of split         not looked at: the outputs say it
#pragma once

#include <optional>

#include "autograph/op_def.h"

namespace autograph {

/// How an attribute is to be read.
enum class AttributeRole : uint8_t { plain, ones, pads, auto_pad, axis, perm, ignored };

/// The role of `spec` in `op`.
AttributeRole attribute_role(const OpDef& op, const AttributeSpec& spec);

/// The value that acts; nothing for one that is not given or ignored. Types of inputs must be static.
std::optional<AttributeValue> acting_attribute(const Graph& graph, const Node& node, const AttributeSpec& spec,
                                               AttributeRole role);

/// Does the attribute act like its default?
bool acts_as_default(const Graph& graph, const Node& node, const AttributeSpec& spec, AttributeRole role);

/// Is it `literal`, where an integer may stand for a list of any length?
bool acts_as(const Graph& graph, const Node& node, const AttributeSpec& spec, AttributeRole role,
             const AttributeValue& literal);

}  // namespace autograph
