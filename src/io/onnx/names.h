// Names in one ONNX graph: which values it takes from outside, and in which order its nodes can be built.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/onnx/proto.h"

namespace autograph::io {

/// Begins the key of the entry of metadata_props that makes a state of an initializer, whose name is the rest of the
/// key. The value names the output that is its new value; "": there is none.
inline constexpr std::string_view kStateMark = "autograph.state.";

/// Names that `graph` uses and does not define, sorted: what it captures from the graphs around it.
std::set<std::string> free_names(const onnx::GraphProto& graph);

/// Names that `node` reads: its inputs and whatever its nested graphs capture.
std::set<std::string> names_read(const onnx::NodeProto& node);

/// Positions of `nodes` so that each comes after those whose outputs it reads: the order of the file when that is
/// sorted, as ONNX demands. Throws FormatError naming nodes on a cycle.
std::vector<int> build_order(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);

}  // namespace autograph::io
