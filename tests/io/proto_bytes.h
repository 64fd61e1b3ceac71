// Writes protobuf messages by hand, so that tests can build ONNX files that no library would.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace autograph::tests {

/// A base-128 number.
inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

/// Field `number` holding a number.
inline std::string field(int number, int64_t value) {
  return varint(static_cast<uint64_t>(number) << 3) + varint(static_cast<uint64_t>(value));
}

/// Field `number` holding bytes: text or a message.
inline std::string field(int number, const std::string& content) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(content.size()) + content;
}

/// A ValueInfoProto of an f32 tensor; a negative dim is written as it is.
inline std::string value_info(const std::string& name, const std::vector<int64_t>& dims) {
  std::string shape;
  for (const int64_t d : dims) shape += field(1, field(1, d));
  return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)));
}

/// A NodeProto.
inline std::string node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& more = "") {
  std::string bytes;
  for (const std::string& input : inputs) bytes += field(1, input);
  for (const std::string& output : outputs) bytes += field(2, output);
  return bytes + field(4, op) + more;
}

/// A TensorProto of f32; `more` holds the elements.
inline std::string tensor(const std::string& name, const std::vector<int64_t>& dims, const std::string& more) {
  std::string bytes;
  for (const int64_t d : dims) bytes += field(1, d);
  return bytes + field(2, 1) + field(8, name) + more;
}

/// A ModelProto of IR 8 with this GraphProto.
inline std::string model(const std::string& graph, int64_t opset = 17) {
  return field(1, 8) + field(8, field(1, std::string()) + field(2, opset)) + field(7, graph);
}

/// A GraphProto x -> nodes -> y.
inline std::string graph(const std::vector<std::string>& nodes, const std::string& more = "") {
  std::string bytes = field(2, std::string("g"));
  for (const std::string& n : nodes) bytes += field(1, n);
  return bytes + field(11, value_info("x", {2})) + field(12, value_info("y", {2})) + more;
}

}  // namespace autograph::tests
