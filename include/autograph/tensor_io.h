// Reading and writing tensors: NumPy's npy and npz, safetensors, and the TensorProto files of the ONNX test suites.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/tensor.h"

namespace autograph {

/// Named tensors in the order of the file.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// One array from a .npy file (format 1.0 to 3.0, little-endian; Fortran order is transposed). Texts are those of fixed
/// width ('<U5', '|S5'). No pickled objects.
/// Throws FormatError, UnsupportedError or IoError; so do all readers here.
Tensor read_npy(const std::string& path);
/// As read_npy, from memory.
Tensor parse_npy(std::string_view bytes);
/// Writes format 1.0 (bf16 and narrower floats: as raw unsigned integers; strings, which must be UTF-8: as '<U').
void write_npy(const std::string& path, const Tensor& tensor);
/// All arrays of a .npz archive (stored or deflated); BudgetError when they declare more than `max_bytes` together.
NamedTensors read_npz(const std::string& path, int64_t max_bytes = int64_t{64} << 30);
/// Writes an uncompressed archive.
void write_npz(const std::string& path, const NamedTensors& tensors);

/// A safetensors file.
struct SafeTensors {
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;  ///< __metadata__
};
SafeTensors read_safetensors(const std::string& path);
/// The metadata of a safetensors file, without reading its tensors.
std::map<std::string, std::string> read_safetensors_metadata(const std::string& path);
/// As read_safetensors, from memory.
SafeTensors parse_safetensors(std::string_view bytes);
/// Throws ValueError for names and metadata that are no UTF-8, and for names that are taken.
void write_safetensors(const std::string& path, const SafeTensors& content);

/// A value from an ONNX test data file `input_N.pb`: a TensorProto, SequenceProto or OptionalProto, as `type` says.
Datum read_onnx_value(const std::string& path, const Type& type);

}  // namespace autograph
