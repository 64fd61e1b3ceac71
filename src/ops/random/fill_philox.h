// The elements of philox, any part of them by itself.
#pragma once

#include <cstdint>

#include "autograph/op_def.h"
#include "ops/random/philox.h"

namespace autograph {

/// Parts begin at multiples of so many elements: blocks of words and pairs of normal numbers are not cut.
inline constexpr int64_t kPhiloxPart = 4;

/// Whose numbers a call of philox asks for.
PhiloxStream philox_stream(const Attributes& attributes, const TensorView& seed, const TensorView& step);
/// Fills elements begin .. end - 1 of y (u32, f32 or f64), which are the same whichever other parts are filled. `begin`
/// is a multiple of kPhiloxPart; `end` is, too, or the number of elements of y. Does not throw.
void fill_philox(const PhiloxStream& stream, const Attributes& attributes, const TensorView& y, int64_t begin,
                 int64_t end);
/// Throws BudgetError when y has more elements than a step has numbers.
void check_philox_size(const TensorView& y);

}  // namespace autograph
