// TensorProto and SparseTensorProto to Tensor.
#pragma once

#include <string>

#include "autograph/tensor.h"
#include "io/onnx/import/external_data.h"
#include "io/onnx/import/model_bytes.h"
#include "io/onnx/proto.h"

namespace autograph::io {

/// Reads tensors of one model and keeps count of their bytes.
class TensorReader {
 public:
  /// `model`: what the messages were parsed from.
  TensorReader(ExternalFiles& files, const LoadOptions& options, ModelBytes model = {})
      : files_(files), options_(options), model_(std::move(model)) {}

  /// The tensor; `what` names it in messages. Throws FormatError, UnsupportedError, BudgetError or IoError.
  Tensor read(const onnx::TensorProto& proto, const std::string& what);
  /// A sparse tensor, made dense.
  Tensor read_sparse(const onnx::SparseTensorProto& proto, const std::string& what);

 private:
  /// Bytes in memory of `count` elements, taken from the budget.
  void take_budget(DType dtype, int64_t count, const std::string& what);
  Tensor read_typed_fields(const onnx::TensorProto& proto, DType dtype, Dims dims, const std::string& what);

  Tensor read_cut(const CutRange& range, DType dtype, Dims dims, const std::string& what);
  Tensor read_external(const onnx::TensorProto& proto, DType dtype, Dims dims, const std::string& what);

  ExternalFiles& files_;
  const LoadOptions& options_;
  ModelBytes model_;
  int64_t total_bytes_ = 0;
};

/// Bytes that `count` elements take in a file: low-bit elements are packed without gaps, first element in the low bits.
int64_t packed_bytes(DType dtype, int64_t count);

/// Packed little-endian file bytes to a tensor; `bytes` has packed_bytes() bytes. Not for strings.
Tensor unpack(DType dtype, Dims dims, std::string_view bytes);

/// The reverse of unpack().
std::string pack(const Tensor& tensor);

}  // namespace autograph::io
