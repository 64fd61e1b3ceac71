// AttributeProto to AttributeValue.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autograph/op_def.h"
#include "io/onnx/import/functions.h"
#include "io/onnx/import/read_tensor.h"

namespace autograph::io {

/// The attributes of `node` with references to attributes of the enclosing function replaced by `arguments` (null
/// outside functions); references to arguments that were not given are dropped. Every attribute comes out with its
/// kind set. Throws FormatError when kind and content disagree.
std::vector<onnx::AttributeProto> resolve_attributes(const onnx::NodeProto& node,
                                                     const std::map<std::string, onnx::AttributeProto>* arguments,
                                                     const std::string& where);

/// The arguments that a call binds: its attributes, completed by the function's defaults. Throws FormatError on
/// attributes that the function does not have.
std::map<std::string, onnx::AttributeProto> bind_arguments(const Function& function,
                                                           const std::vector<onnx::AttributeProto>& given,
                                                           const std::string& where);

/// The value of an attribute that is no graph; `spec` (may be null) tells that an integer stands for a dtype. Nothing
/// for "no dtype". Types come out as text, for example "seq(f32[?])".
std::optional<AttributeValue> convert_attribute(const onnx::AttributeProto& proto, const AttributeSpec* spec,
                                                TensorReader& tensors, const std::string& where);

}  // namespace autograph::io
