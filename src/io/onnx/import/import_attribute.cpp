#include "io/onnx/import/import_attribute.h"

#include <algorithm>

#include "base/check.h"
#include "io/onnx/dtype_code.h"
#include "io/onnx/import/read_type.h"

namespace autograph::io {
namespace {

using Proto = onnx::AttributeProto;

// Files before IR 2 have no kind; it follows from the field that is there.
Proto::AttributeType kind_of(const Proto& proto) {
  if (proto.type() != Proto::UNDEFINED) return proto.type();
  if (proto.has_f()) return Proto::FLOAT;
  if (proto.has_i()) return Proto::INT;
  if (proto.has_s()) return Proto::STRING;
  if (proto.has_t()) return Proto::TENSOR;
  if (proto.has_g()) return Proto::GRAPH;
  if (proto.has_sparse_tensor()) return Proto::SPARSE_TENSOR;
  if (proto.has_tp()) return Proto::TYPE_PROTO;
  if (proto.floats_size() > 0) return Proto::FLOATS;
  if (proto.ints_size() > 0) return Proto::INTS;
  if (proto.strings_size() > 0) return Proto::STRINGS;
  return Proto::UNDEFINED;
}

bool has_content(const Proto& proto) {
  switch (proto.type()) {
    case Proto::FLOAT: return proto.has_f();
    case Proto::INT: return proto.has_i();
    case Proto::STRING: return proto.has_s();
    case Proto::TENSOR: return proto.has_t();
    case Proto::GRAPH: return proto.has_g();
    case Proto::SPARSE_TENSOR: return proto.has_sparse_tensor();
    case Proto::TYPE_PROTO: return proto.has_tp();
    default: return true;  // an empty list is a list
  }
}

}  // namespace

std::vector<Proto> resolve_attributes(const onnx::NodeProto& node, const std::map<std::string, Proto>* arguments,
                                      const std::string& where) {
  std::vector<Proto> resolved;
  for (const Proto& own : node.attribute()) {
    AG_CHECK_USER(!own.name().empty(), FormatError, "[onnx] {}: an attribute has no name", where);
    const Proto* source = &own;
    if (!own.ref_attr_name().empty()) {
      AG_CHECK_USER(arguments, FormatError, "[onnx] {}: attribute '{}' refers to '{}' outside of a function", where,
                    own.name(), own.ref_attr_name());
      const auto it = arguments->find(own.ref_attr_name());
      if (it == arguments->end()) continue;
      source = &it->second;
    }
    Proto& proto = resolved.emplace_back(*source);
    proto.set_name(own.name());
    const auto kind = kind_of(proto);
    AG_CHECK_USER(kind != Proto::UNDEFINED, FormatError, "[onnx] {}: attribute '{}' has no value", where, own.name());
    proto.set_type(kind);
    AG_CHECK_USER(has_content(proto), FormatError, "[onnx] {}: attribute '{}' lacks the value of its kind {}", where,
                  own.name(), static_cast<int>(kind));
  }
  return resolved;
}

std::map<std::string, Proto> bind_arguments(const Function& function, const std::vector<Proto>& given,
                                            const std::string& where) {
  std::map<std::string, Proto> arguments;
  for (const Proto& proto : function.defaults) arguments[proto.name()] = proto;
  const auto& required = function.proto->attribute();
  for (const Proto& proto : given) {
    const bool known = arguments.count(proto.name()) > 0 ||
                       std::find(required.begin(), required.end(), proto.name()) != required.end();
    AG_CHECK_USER(known, FormatError, "[onnx] {}: the function has no attribute '{}'", where, proto.name());
    AG_CHECK_USER(proto.type() != Proto::GRAPH, UnsupportedError,
                  "[onnx] {}: attribute '{}': passing a graph to a function is not supported", where, proto.name());
    arguments[proto.name()] = proto;
  }
  return arguments;
}

std::optional<AttributeValue> convert_attribute(const Proto& proto, const AttributeSpec* spec, TensorReader& tensors,
                                                const std::string& where) {
  switch (proto.type()) {
    case Proto::INT: {
      if (!spec || spec->type != AttributeType::dtype) return AttributeValue(proto.i());
      const DType dtype = dtype_from_code(proto.i(), (where + ": attribute '" + proto.name() + "'").c_str());
      if (dtype == DType::undefined) return std::nullopt;
      return AttributeValue(dtype);
    }
    case Proto::FLOAT: return AttributeValue(proto.f());
    case Proto::STRING: return AttributeValue(proto.s());
    case Proto::TENSOR: return AttributeValue(tensors.read(proto.t(), where + " attribute '" + proto.name() + "'"));
    case Proto::SPARSE_TENSOR:
      return AttributeValue(tensors.read_sparse(proto.sparse_tensor(), where + " attribute '" + proto.name() + "'"));
    case Proto::INTS: return AttributeValue(std::vector<int64_t>(proto.ints().begin(), proto.ints().end()));
    case Proto::FLOATS: return AttributeValue(std::vector<float>(proto.floats().begin(), proto.floats().end()));
    case Proto::STRINGS:
      return AttributeValue(std::vector<std::string>(proto.strings().begin(), proto.strings().end()));
    case Proto::TYPE_PROTO: return AttributeValue(to_string(read_type(proto.tp(), where)));
    default:
      throw UnsupportedError(fmt::format("[onnx] {}: attribute '{}': kind {} is not supported", where, proto.name(),
                                         static_cast<int>(proto.type())));
  }
}

}  // namespace autograph::io
