// How elements of tensors are kept and computed with in source texts. The names are those of dtypes: the texts begin
// with their typedefs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "autograph/dtype.h"
#include "backends/gpu/emit/target.h"

namespace autograph::gpu {

/// The type of an element in memory: "f32"; "u16" for f16 and bf16, "u8" for bool. "" where elements can only be moved.
std::string_view storage_type(DType dtype);

/// The type that an element is computed with: "f32" for the narrow floats. "" as above.
std::string_view compute_type(DType dtype);

/// Bytes of an element of the compute type.
size_t compute_bytes(DType dtype);

/// An integer type of as many bytes as an element has, for kernels that move elements: "u8", ..., "u128". "" for
/// strings.
std::string_view raw_type(DType dtype);

/// Can the target compute with elements of this dtype?
bool can_compute(DType dtype, const Target& target);

/// Is it f16, bf16, f32 or f64?
bool is_float(DType dtype);

/// Is it an integer of 8 to 64 bits, or bool?
bool is_whole(DType dtype);
bool is_signed_whole(DType dtype);

/// The element `at` of `pointer`, in its compute type.
std::string load(DType dtype, std::string_view pointer, std::string_view at);

/// The statement that writes `value`, of the compute type, there.
std::string store(DType dtype, std::string_view pointer, std::string_view at, std::string_view value);

/// `value` of the compute type of `dtype` as a number of the source text.
std::string literal(DType dtype, double value);
std::string literal(DType dtype, int64_t value);

/// `text`, of the compute type of `from`, as the compute type of `to`, as cast has it. Nothing where that takes more
/// than an expression, or another rounding than the reference's.
std::optional<std::string> converted(DType from, DType to, const std::string& text);

/// What every program begins with.
std::string prelude(const Target& target);

}  // namespace autograph::gpu
