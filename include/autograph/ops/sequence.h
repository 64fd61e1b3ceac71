// Typed builders of the ops on sequences and optionals.
#pragma once

#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// A sequence without elements, of tensors of `dtype`.
Var sequence_empty(Graph& graph, DType dtype = DType::f32);
/// A sequence of tensors of one dtype.
Var sequence_construct(const std::vector<Var>& elements);
/// The element at `position`, one integer; negative ones count from the end.
Var sequence_at(Var sequence, Var position);
/// The sequence with `element` before `position`, or at its end.
Var sequence_insert(Var sequence, Var element, Var position = {});
/// The sequence without the element at `position`, or without the last one.
Var sequence_erase(Var sequence, Var position = {});
/// The number of elements, an i64 scalar.
Var sequence_length(Var sequence);
/// `x` cut along `axis`: `sizes` is one extent, or [n] extents that add up. Without it pieces are slices of extent 1,
/// which lose the axis unless `keep_dims`.
Var split_to_sequence(Var x, Var sizes = {}, int64_t axis = 0, bool keep_dims = true);
/// The elements joined along `axis`, which is a new one with `new_axis`.
Var concat_from_sequence(Var sequence, int64_t axis, bool new_axis = false);
/// Runs `body` on the elements of `sequence`, position by position. It takes (element, elements of the further
/// sequences or whole tensors in `others`..., captured...) and each of its outputs becomes a sequence.
std::vector<Var> sequence_map(Var sequence, const std::vector<Var>& others, const Graph& body,
                              const std::vector<Var>& captured = {});
/// x, a tensor or a sequence, as an optional that holds it.
Var optional_of(Var x);
/// The element of an optional, or `x` itself where it is none; an empty one is an error when it runs.
Var optional_get_element(Var x);
/// Does the optional hold an element? A bool scalar.
Var optional_has_element(Var x);

}  // namespace autograph
