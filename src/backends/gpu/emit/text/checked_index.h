// Indices that come from tensors, on the device: the one place that stands between hostile values and memory.
#pragma once

#include "backends/gpu/emit/text/writer.h"

namespace autograph::gpu {

/// The fault of an index into an axis of `extent`, in the words of the reference.
std::string index_fault(const OpDef& op, int64_t extent);

/// Writes what makes `value` a fault, written to the parameter `faults`, and then `leave` ("return", "continue").
void write_fault(Writer& writer, std::string_view value, std::string_view leave);

/// Declares `name` of type i64: element `at` of `pointer`, an index input of `dtype`, counted from the front. Out of
/// range for `extent` it is a fault, and `leave` is done.
void write_checked_index(Writer& writer, std::string_view name, DType dtype, std::string_view pointer,
                         std::string_view at, int64_t extent, std::string_view leave);

}  // namespace autograph::gpu
