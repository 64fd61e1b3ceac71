// Where in the program that was exported a node was made.
#pragma once

#include <string>

#include "io/onnx/proto.h"

namespace autograph::io {

/// "attention.py:124", the innermost line outside PyTorch of the trace that its dynamo exporter keeps with a node; ""
/// without a trace.
std::string source_place(const onnx::NodeProto& node);

}  // namespace autograph::io
