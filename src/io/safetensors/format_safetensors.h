// The bytes of a safetensors file.
#pragma once

#include <string>

#include "autograph/tensor_io.h"

namespace autograph::io {

/// What stands in front of the elements of all tensors, which follow one after the other. Throws as
/// write_safetensors().
std::string format_safetensors_header(const SafeTensors& content);

}  // namespace autograph::io
