#include "io/onnx/import/source_place.h"

#include <google/protobuf/unknown_field_set.h>

#include <string_view>

namespace autograph::io {
namespace {

constexpr std::string_view kTrace = "pkg.torch.onnx.stack_trace";
// Of NodeProto.metadata_props, which came with ONNX 1.16; what was compiled with an older one keeps it unread.
constexpr int kMetadata = 9;

template <class Node>
std::string trace_of(const Node& node) {
  onnx::StringStringEntryProto entry;
  const auto is_trace = [&] { return entry.key() == kTrace; };
  if constexpr (requires { node.metadata_props(); }) {
    for (const auto& known : node.metadata_props()) {
      entry = known;
      if (is_trace()) return entry.value();
    }
  } else {
    for (int i = 0; i < node.unknown_fields().field_count(); ++i) {
      const auto& field = node.unknown_fields().field(i);
      if (field.number() != kMetadata || field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
        continue;
      if (entry.ParseFromString(field.length_delimited()) && is_trace()) return entry.value();
    }
  }
  return "";
}

// `File "/lib/attention.py", line 124, in forward` -> "attention.py:124": folders are those of another machine.
std::string place_of(std::string_view path, std::string_view behind) {
  const std::string_view line = behind.substr(0, behind.find_first_not_of("0123456789"));
  return std::string(path.substr(path.find_last_of("/\\") + 1)) + ":" + std::string(line);
}

}  // namespace

// The trace has the outermost line first. Where layers of PyTorch made the node, the line that called them says more.
std::string source_place(const onnx::NodeProto& node) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ", kOwn = "/torch/";
  const std::string trace = trace_of(node);
  std::string_view rest = trace;
  std::string innermost, outside;
  for (size_t at = rest.find(kFile); at != rest.npos; at = rest.find(kFile)) {
    rest.remove_prefix(at + kFile.size());
    const size_t end = rest.find(kLine);
    if (end == rest.npos) break;
    const std::string_view path = rest.substr(0, end);
    innermost = place_of(path, rest.substr(end + kLine.size()));
    if (path.find(kOwn) == path.npos) outside = innermost;
  }
  return outside.empty() ? innermost : outside;
}

}  // namespace autograph::io
