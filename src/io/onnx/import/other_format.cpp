#include "io/onnx/import/other_format.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "base/printable.h"

namespace autograph::io {
namespace {

struct Format {
  size_t offset;
  std::string_view mark;
  std::string_view name;
};

// From the longest to the shortest mark where one begins with another.
constexpr Format kFormats[] = {
    {0, "version https://git-lfs", "a pointer of Git LFS to a file that is not there yet (git lfs pull fetches it)"},
    {0, "AGPLAN", "a saved plan (its name must end in .agplan)"},
    {0, {"PK\3\4", 4}, "a zip archive, as PyTorch and Keras save weights (torch.onnx.export and tf2onnx write ONNX)"},
    {0, {"\x1f\x8b", 2}, "compressed by gzip (gunzip restores it)"},
    {0, {"\x89HDF", 4}, "an HDF5 file, as Keras saves models (tf2onnx writes ONNX)"},
    {0, {"\x93NUMPY", 6}, "an array of NumPy (--input takes it)"},
    {0, "GGUF", "a GGUF file of llama.cpp"},
    {4, "TFL3", "a model of TensorFlow Lite (tf2onnx --tflite writes ONNX)"},
    {4, "ORTM", "a model in ONNX Runtime's own format (the .onnx file that it was made of is needed)"},
    {0, {"\x80\2", 2}, "a pickle of Python, as PyTorch saved weights (torch.onnx.export writes ONNX)"},
    {0, {"\x80\3", 2}, "a pickle of Python"},
    {0, {"\x80\4", 2}, "a pickle of Python"},
    {0, {"\x80\5", 2}, "a pickle of Python"},
    // Field 1 of a model is a number. Here it holds bytes.
    {0, {"\n", 1}, "another protobuf message, as graphs of TensorFlow (.pb) are (tf2onnx writes ONNX)"},
};

// Eight bytes for the length of a header in JSON, which follows.
bool is_safetensors(std::string_view beginning) {
  if (beginning.size() < 10 || beginning[8] != '{') return false;
  return beginning[5] == 0 && beginning[6] == 0 && beginning[7] == 0;
}

bool is_text(std::string_view beginning) {
  return std::all_of(beginning.begin(), beginning.end(), [](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return byte >= 32 ? byte != 127 : byte == '\t' || byte == '\n' || byte == '\r';
  });
}

std::string_view without_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

}  // namespace

std::string other_format(std::string_view beginning) {
  if (beginning.empty()) return "an empty file";
  // Texts may begin with a line feed, too.
  const bool text = is_text(beginning);
  if (text && without_blanks(beginning).starts_with('<')) {
    return "a page of HTML or XML, as failed downloads and OpenVINO leave";
  }
  if (is_safetensors(beginning)) return "a safetensors file, which has weights but no graph (train --from takes it)";
  for (const Format& format : kFormats) {
    const bool is_one_of_texts = text && format.mark == "\n";
    if (beginning.substr(std::min(format.offset, beginning.size())).starts_with(format.mark) && !is_one_of_texts) {
      return std::string(format.name);
    }
  }
  constexpr size_t kShown = 40;
  return text ? fmt::format("a text that begins with '{}'", printable(beginning.substr(0, kShown))) : "";
}

}  // namespace autograph::io
