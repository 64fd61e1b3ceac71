// The bytes of a .npy file.
#pragma once

#include <string>

#include "autograph/tensor.h"

namespace autograph::io {

/// Format 1.0; throws UnsupportedError for strings.
std::string format_npy(const Tensor& tensor);

}  // namespace autograph::io
