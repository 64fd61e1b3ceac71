// Values of ONNX test data files: TensorProto, SequenceProto or OptionalProto.
#include <onnx/onnx-data_pb.h>

#include "autograph/tensor_io.h"
#include "base/check.h"
#include "base/rethrow.h"
#include "io/file.h"
#include "io/onnx/import/read_tensor.h"

namespace autograph {
namespace io {
namespace {

constexpr int kMaxDepth = 16;

class ValueReader {
 public:
  explicit ValueReader(const std::string& path) : path_(path), files_("", "", false), tensors_(files_, options_) {}

  Datum read_sequence(const onnx::SequenceProto& proto, int depth = 0) {
    check_depth(depth);
    std::vector<Datum> items;
    switch (proto.elem_type()) {
      case onnx::SequenceProto::TENSOR:
        for (const auto& tensor : proto.tensor_values()) items.emplace_back(tensors_.read(tensor, path_));
        break;
      case onnx::SequenceProto::SPARSE_TENSOR:
        for (const auto& sparse : proto.sparse_tensor_values()) items.emplace_back(tensors_.read_sparse(sparse, path_));
        break;
      case onnx::SequenceProto::SEQUENCE:
        for (const auto& inner : proto.sequence_values()) items.push_back(read_sequence(inner, depth + 1));
        break;
      case onnx::SequenceProto::OPTIONAL:
        for (const auto& inner : proto.optional_values()) items.push_back(read_optional(inner, depth + 1));
        break;
      case onnx::SequenceProto::MAP: throw UnsupportedError(fmt::format("[onnx] '{}': maps are not supported", path_));
      default: break;  // undefined: an empty list
    }
    return items;
  }

  Datum read_optional(const onnx::OptionalProto& proto, int depth = 0) {
    check_depth(depth);
    switch (proto.elem_type()) {
      case onnx::OptionalProto::TENSOR: return tensors_.read(proto.tensor_value(), path_);
      case onnx::OptionalProto::SPARSE_TENSOR: return tensors_.read_sparse(proto.sparse_tensor_value(), path_);
      case onnx::OptionalProto::SEQUENCE: return read_sequence(proto.sequence_value(), depth + 1);
      case onnx::OptionalProto::OPTIONAL: return read_optional(proto.optional_value(), depth + 1);
      case onnx::OptionalProto::MAP: throw UnsupportedError(fmt::format("[onnx] '{}': maps are not supported", path_));
      default: return {};
    }
  }

  Datum read_tensor(const onnx::TensorProto& proto) { return tensors_.read(proto, path_); }

 private:
  void check_depth(int depth) const {
    AG_CHECK_USER(depth < kMaxDepth, FormatError, "[onnx] '{}': values nested deeper than {}", path_, kMaxDepth);
  }
  std::string path_;
  LoadOptions options_;
  ExternalFiles files_;
  TensorReader tensors_;
};

Datum read_value(const std::string& path, const Type& type) {
  const std::string bytes = read_file(path, kMaxProtoBytes);
  ValueReader reader(path);
  if (type.is_sequence()) {
    onnx::SequenceProto proto;
    parse_proto(bytes, proto, path);
    return reader.read_sequence(proto);
  }
  if (type.is_optional()) {
    onnx::OptionalProto proto;
    parse_proto(bytes, proto, path);
    return reader.read_optional(proto);
  }
  onnx::TensorProto proto;
  parse_proto(bytes, proto, path);
  return reader.read_tensor(proto);
}

}  // namespace
}  // namespace io

Datum read_onnx_value(const std::string& path, const Type& type) {
  return with_printable_messages([&] { return io::read_value(path, type); });
}

}  // namespace autograph
