#include "io/onnx/proto.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/unknown_field_set.h>

#include "base/check.h"

namespace autograph::io {
namespace {

// A nested graph takes three levels of messages (attribute, graph, node); the rest leaves room for types.
constexpr int kRecursionLimit = 3 * (kMaxGraphDepth + 2) + 100;

constexpr int kNodeOverload = 8;
constexpr int kFunctionOverload = 13;
constexpr int kFunctionAttributeProto = 11;

}  // namespace

std::optional<std::string> unknown_bytes(const google::protobuf::Message& message, int number) {
  const auto& fields = message.GetReflection()->GetUnknownFields(message);
  std::optional<std::string> bytes;
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto& field = fields.field(i);
    if (field.number() == number && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      bytes = field.length_delimited();
    }
  }
  return bytes;
}

bool try_parse_proto(std::string_view bytes, google::protobuf::Message& message) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(static_cast<int>(kMaxProtoBytes));
  stream.SetRecursionLimit(kRecursionLimit);
  return message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

void parse_proto(std::string_view bytes, google::protobuf::Message& message, std::string_view what) {
  AG_CHECK_USER(static_cast<int64_t>(bytes.size()) <= kMaxProtoBytes, FormatError,
                "[onnx] {}: expected at most {} bytes, got {}", what, kMaxProtoBytes, bytes.size());
  if (!try_parse_proto(bytes, message)) throw_malformed(what, static_cast<int64_t>(bytes.size()));
}

void throw_malformed(std::string_view what, int64_t size) {
  throw FormatError(fmt::format(
      "[onnx] {}: not a valid protobuf message of {} bytes (truncated, nested too deep or not ONNX)", what, size));
}

std::string overload_of(const onnx::NodeProto& node) { return unknown_bytes(node, kNodeOverload).value_or(""); }

std::string overload_of(const onnx::FunctionProto& function) {
  return unknown_bytes(function, kFunctionOverload).value_or("");
}

std::vector<onnx::AttributeProto> attribute_defaults(const onnx::FunctionProto& function) {
  const auto& fields = function.GetReflection()->GetUnknownFields(function);
  std::vector<onnx::AttributeProto> defaults;
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto& field = fields.field(i);
    if (field.number() != kFunctionAttributeProto) continue;
    AG_CHECK_USER(field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED, FormatError,
                  "[onnx] function '{}': malformed attribute_proto", function.name());
    parse_proto(field.length_delimited(), defaults.emplace_back(), "default attribute of function " + function.name());
  }
  return defaults;
}

std::string normal_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

std::string qualified_name(const std::string& domain, const std::string& op_type) {
  const std::string normal = normal_domain(domain);
  return normal.empty() ? op_type : normal + "::" + op_type;
}

}  // namespace autograph::io
