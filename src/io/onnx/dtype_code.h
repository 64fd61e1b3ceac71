// The numbers by which ONNX files name dtypes.
#pragma once

#include <cstdint>

#include "autograph/dtype.h"

namespace autograph::io {

/// The dtype of an ONNX code; throws FormatError naming `where` for codes that are none. Code 0 is undefined.
DType dtype_from_code(int64_t code, const char* where);

/// The ONNX code of a dtype.
int code_of(DType dtype);

}  // namespace autograph::io
