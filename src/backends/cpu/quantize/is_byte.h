#pragma once

#include "autograph/dtype.h"

namespace autograph {

/// Is it the type of quantized elements?
inline bool is_byte(DType dtype) { return dtype == DType::u8 || dtype == DType::i8; }

}  // namespace autograph
