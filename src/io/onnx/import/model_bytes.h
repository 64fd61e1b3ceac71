// A serialized model without its weights: the bytes of large tensors are cut out before protobuf sees them.
//
// Protobuf would copy every weight when it parses; half a gigabyte of them takes longer than all the rest of loading.
// So the wire format is walked first: whatever is not the raw_data of a large tensor is copied into a short message of
// the same structure, and a mark in the tensor's message tells where its elements lie. The tensor reader follows it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "io/file.h"
#include "io/onnx/proto.h"

namespace autograph::io {

/// Elements shorter than this stay in the messages: shapes and axes are read while the graph is built.
inline constexpr int64_t kSmallestCut = 4096;

/// A serialized message: a file, or else memory that somebody keeps.
struct ModelBytes {
  std::shared_ptr<const InputFile> file = {};  ///< Null: `memory` holds the bytes.
  std::string_view memory = {};

  int64_t size_bytes() const { return file ? file->size_bytes() : static_cast<int64_t>(memory.size()); }
};

/// Where the elements of a tensor lie in a ModelBytes.
struct CutRange {
  int64_t offset = 0;
  int64_t length = 0;
};

/// Parses a model whose large raw_data stay where they are. Throws FormatError when it is malformed or something
/// else, IoError.
onnx::ModelProto parse_model(const ModelBytes& bytes);

/// Where the elements of `proto` lie, when they were cut out. A file may hold such a mark of its own making, so the
/// range must be checked against the size of the file before it is read.
std::optional<CutRange> cut_range(const onnx::TensorProto& proto);

}  // namespace autograph::io
