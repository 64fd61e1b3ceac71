// What a file is that was taken for an ONNX model: people have the weights of PyTorch, or a download that failed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace autograph::io {

/// Bytes from the beginning of a file that tell what it is.
inline constexpr size_t kTellingBytes = 512;

/// "a zip archive, as PyTorch saves weights (torch.onnx.export writes ONNX)", by the first bytes; "" where they tell
/// nothing, as those of a model cut short do.
std::string other_format(std::string_view beginning);

}  // namespace autograph::io
