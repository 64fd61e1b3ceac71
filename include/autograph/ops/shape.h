// Typed builders of the ops that change shapes and move elements without computing on them.
#pragma once

#include <string>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// The elements of `x` under the shape in `shape` (i64 [n]); -1 is worked out, 0 copies x's extent there.
Var reshape(Var x, Var shape, bool allow_zero = false);
/// As above with a constant shape.
Var reshape(Var x, const std::vector<int64_t>& shape);
/// [product of dims before axis, product of the rest].
Var flatten(Var x, int64_t axis = 1);
/// Drops `axes`, each of extent 1.
Var squeeze(Var x, const std::vector<int64_t>& axes);
/// Inserts extents of 1 at `axes` of the output.
Var unsqueeze(Var x, const std::vector<int64_t>& axes);
/// Output axis k is axis perm[k] of x.
Var transpose(Var x, const std::vector<int64_t>& perm);
/// Joins along `axis`; the other extents are equal.
Var concat(const std::vector<Var>& xs, int64_t axis);
/// Pieces of the given extents along `axis`.
std::vector<Var> split(Var x, const std::vector<int64_t>& sizes, int64_t axis = 0);
/// Pieces of ceil(extent / num_outputs) along `axis`; the last may be smaller.
std::vector<Var> split_evenly(Var x, int64_t num_outputs, int64_t axis = 0);
/// x[starts:ends:steps] along `axes`; no steps: all 1.
Var slice(Var x, const std::vector<int64_t>& starts, const std::vector<int64_t>& ends, const std::vector<int64_t>& axes,
          const std::vector<int64_t>& steps = {});
/// Broadcasts `x` together with `shape`.
Var expand(Var x, const std::vector<int64_t>& shape);
/// Repeats `x` along every axis.
Var tile(Var x, const std::vector<int64_t>& repeats);
/// Adds pads[k] elements before and pads[k + rank] behind axis k. mode: constant, edge, reflect or wrap.
Var pad(Var x, const std::vector<int64_t>& pads, const std::string& mode = "constant", Var constant_value = {});
/// Extents of `x` as i64 [rank].
Var shape(Var x);
/// Number of elements of `x`, an i64 scalar.
Var size(Var x);
/// A tensor of the shape in `shape` (i64 [n]) filled with the one element of `value`.
Var constant_of_shape(Var shape, Tensor value);
/// start, start + delta, ... up to but without limit; scalars in, [n] out.
Var range(Var start, Var limit, Var delta);
/// Ones on diagonal `k`, zeros elsewhere, in the shape of the matrix `x`.
Var eye_like(Var x, int64_t k = 0);
/// Upper triangle of the matrices in the last two dims: column - row >= k.
Var triu(Var x, int64_t k = 0);
/// Lower triangle of the matrices in the last two dims: column - row <= k.
Var tril(Var x, int64_t k = 0);
/// Cuts or zero-pads `axes` around their centre to the extents in `shape`.
Var center_crop_pad(Var x, const std::vector<int64_t>& shape, const std::vector<int64_t>& axes);
/// [n,c*b*b,h,w] -> [n,c,h*b,w*b]; mode DCR or CRD.
Var depth_to_space(Var x, int64_t blocksize, const std::string& mode = "DCR");
/// [n,c,h*b,w*b] -> [n,c*b*b,h,w]; mode DCR or CRD.
Var space_to_depth(Var x, int64_t blocksize, const std::string& mode = "DCR");
/// Reverses the first lengths[b] (i64 [batch]) steps of batch entry b.
Var reverse_sequence(Var x, Var lengths, int64_t batch_axis = 1, int64_t time_axis = 0);

}  // namespace autograph
