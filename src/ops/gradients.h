// What gradient rules are made of.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/builder.h"
#include "autograph/op_def.h"

namespace autograph {

/// The extents of x as i64 [rank]: a constant where they are known.
Var extents_of(const Var& x);

/// The extent of one axis of x, of known rank, as i64 []: a constant where it is known.
Var extent_of(const Var& x, int64_t axis);

/// `value` in the shape and dtype of x.
Var filled_like(const Var& x, double value);

/// The elements of `gradient` in the shape of `like`.
Var reshape_as(const Var& gradient, const Var& like);

/// `gradient` broadcast to the shape of `like`.
Var expand_as(const Var& gradient, const Var& like);

/// `gradient`, whose shape that of `like` broadcasts to, summed back to the shape of `like`; ranks may be unknown.
Var sum_to(const Var& gradient, const Var& like);

/// x in f32 at least, in which elements can be counted.
Var as_wide(const Var& x);

/// gradient / count in the dtype of the gradient, which need not have a number as large as `count`, from as_wide().
Var divided_by_count(const Var& gradient, const Var& count);

/// What each element of x gets of the gradient of y, each element of which is the mean of equally many of x.
Var share_of_mean(const Var& gradient, const Var& x, const Var& y);

/// x with the last two axes changed; the rank is known and at least 2.
Var swap_last_two(const Var& x);

/// gradient * slope, and 0 where no gradient flows, however steep the slope is: no NaN comes from where a function is
/// not defined but its result is not read, either.
Var times_slope(const Var& gradient, const Var& slope);

/// The linear positions 0, 1, 2... of the elements of x in the shape of x, i64.
Var linear_positions(const Var& x);

/// Zeros in the shape of `like` to which `gradient` is added at linear `positions` (i64, same shape as `gradient`).
/// With the positions that an op makes of linear_positions(), the gradient of any op that only moves elements.
Var add_at(const Var& like, const Var& positions, const Var& gradient);

/// The rule of an op that moves elements of input 0 and looks at no other float: add_at() of what the op makes of
/// positions.
void moved_elements_vjp(VjpContext& context);

}  // namespace autograph
