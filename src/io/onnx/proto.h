// The protobuf messages of ONNX, and what the installed message types do not know.
//
// The message types may be older than the files: fields that they lack survive as unknown fields and are read here.
// No other folder includes protobuf headers.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace autograph::io {

/// The largest file that protobuf can parse.
inline constexpr int64_t kMaxProtoBytes = (int64_t{1} << 31) - 1;

/// Nested graphs deeper than this are refused.
inline constexpr int kMaxGraphDepth = 32;

/// Parses `bytes` into `message`; throws FormatError naming `what` (for example "model") when they are malformed.
void parse_proto(std::string_view bytes, google::protobuf::Message& message, std::string_view what);

/// As above, for at most kMaxProtoBytes; false when the bytes are malformed.
bool try_parse_proto(std::string_view bytes, google::protobuf::Message& message);

/// Throws the FormatError of parse_proto.
[[noreturn]] void throw_malformed(std::string_view what, int64_t size_bytes);

/// The bytes of a field that the message type does not know.
std::optional<std::string> unknown_bytes(const google::protobuf::Message& message, int number);

/// NodeProto.overload and FunctionProto.overload: tells apart model-local functions of one name.
std::string overload_of(const onnx::NodeProto& node);
std::string overload_of(const onnx::FunctionProto& function);

/// FunctionProto.attribute_proto: attributes with default values.
std::vector<onnx::AttributeProto> attribute_defaults(const onnx::FunctionProto& function);

/// The domain with the alias "ai.onnx" written as "".
std::string normal_domain(const std::string& domain);

/// "Conv" or "com.example::Fancy".
std::string qualified_name(const std::string& domain, const std::string& op_type);

}  // namespace autograph::io
