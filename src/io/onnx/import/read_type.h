// TypeProto to Type.
#pragma once

#include <string>

#include "autograph/shape.h"
#include "io/onnx/proto.h"

namespace autograph::io {

/// The type; Kind::none when the message says nothing. `what` names the value in messages. Throws FormatError or
/// UnsupportedError (maps, sparse tensors, opaque types).
Type read_type(const onnx::TypeProto& proto, const std::string& what);

/// The reverse of read_type().
void write_type(const Type& type, onnx::TypeProto& proto);

}  // namespace autograph::io
