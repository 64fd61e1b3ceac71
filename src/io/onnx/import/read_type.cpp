#include "io/onnx/import/read_type.h"

#include <set>

#include "base/check.h"
#include "io/onnx/dtype_code.h"

namespace autograph::io {
namespace {

constexpr int kMaxTypeDepth = 16;

// Names that exporters write for an extent of which they know nothing, several times in one file for unequal ones.
bool says_nothing(const std::string& name) {
  static const std::set<std::string> names{"", "?", "-1", "None", "none", "unknown", "unk", "*"};
  return names.contains(name);
}

Dim read_dim(const onnx::TensorShapeProto::Dimension& dim, const std::string& what) {
  if (dim.has_dim_value()) {
    // Older exporters write -1 (and some 0 for a batch) where they mean "any"; only the former cannot be an extent.
    AG_CHECK_USER(dim.dim_value() >= -1, FormatError, "[onnx] value '{}': dim: expected 0 or more, got {}", what,
                  dim.dim_value());
    return dim.dim_value() < 0 ? Dim::unknown() : Dim(dim.dim_value());
  }
  return says_nothing(dim.dim_param()) ? Dim::unknown() : Dim::symbol(dim.dim_param());
}

Type read_type_at(const onnx::TypeProto& proto, const std::string& what, int depth) {
  AG_CHECK_USER(depth < kMaxTypeDepth, FormatError, "[onnx] value '{}': its type is nested deeper than {}", what,
                kMaxTypeDepth);
  switch (proto.value_case()) {
    case onnx::TypeProto::kTensorType: {
      const auto& tensor = proto.tensor_type();
      const DType dtype = dtype_from_code(tensor.elem_type(), "elem_type");
      if (dtype == DType::undefined) return {};
      if (!tensor.has_shape()) return {dtype, Shape::unknown()};
      std::vector<Dim> dims;
      for (const auto& dim : tensor.shape().dim()) dims.push_back(read_dim(dim, what));
      return {dtype, Shape(std::move(dims))};
    }
    case onnx::TypeProto::kSequenceType:
      return Type::sequence(read_type_at(proto.sequence_type().elem_type(), what, depth + 1));
    case onnx::TypeProto::kOptionalType:
      return Type::optional(read_type_at(proto.optional_type().elem_type(), what, depth + 1));
    case onnx::TypeProto::kMapType:
      throw UnsupportedError(fmt::format("[onnx] value '{}': map types are not supported", what));
    case onnx::TypeProto::kSparseTensorType:
      throw UnsupportedError(fmt::format("[onnx] value '{}': sparse tensor types are not supported", what));
    case onnx::TypeProto::kOpaqueType:
      throw UnsupportedError(fmt::format("[onnx] value '{}': opaque types are not supported", what));
    case onnx::TypeProto::VALUE_NOT_SET: return {};
  }
  return {};
}

}  // namespace

Type read_type(const onnx::TypeProto& proto, const std::string& what) { return read_type_at(proto, what, 0); }

void write_type(const Type& type, onnx::TypeProto& proto) {
  switch (type.kind()) {
    case Type::Kind::none: return;
    case Type::Kind::sequence: write_type(type.element(), *proto.mutable_sequence_type()->mutable_elem_type()); return;
    case Type::Kind::optional: write_type(type.element(), *proto.mutable_optional_type()->mutable_elem_type()); return;
    case Type::Kind::tensor: break;
  }
  auto& tensor = *proto.mutable_tensor_type();
  tensor.set_elem_type(code_of(type.dtype()));
  if (!type.shape().has_rank()) return;
  auto& shape = *tensor.mutable_shape();
  for (const Dim& dim : type.shape().dims()) {
    auto& out = *shape.add_dim();
    if (dim.is_known())
      out.set_dim_value(dim.value());
    else if (!dim.is_unknown())
      out.set_dim_param(to_string(dim));
  }
}

}  // namespace autograph::io
