#include "prove/verify/proof_axioms.h"

#include <algorithm>

#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

bool same_extent_along(const RuleMatch& match, int64_t axis, std::string_view a, std::string_view b) {
  const Dims left = match.dims(a);
  const Dims right = match.dims(b);
  const auto at = static_cast<size_t>(axis);
  return at < left.size() && at < right.size() && left[at] == right[at];
}

bool pairs_agree(const RuleMatch& match) {
  const int64_t k = match.integer("k");
  return match.dims("a").size() == match.dims("c").size() && same_extent_along(match, k, "a", "c") &&
         same_extent_along(match, k, "b", "d");
}

bool two_pieces_agree(const RuleMatch& match) { return same_dims(match, "a", "x") && same_dims(match, "b", "y"); }

bool three_pieces_agree(const RuleMatch& match) { return two_pieces_agree(match) && same_dims(match, "d", "z"); }

bool v_w_agree(const RuleMatch& match) { return same_dims(match, "v", "w"); }

// Matrix laws are stated for matrices, where axis 0 are the rows.
bool are_matrices(const RuleMatch& match, std::initializer_list<std::string_view> names) {
  return std::all_of(names.begin(), names.end(), [&](std::string_view name) { return match.dims(name).size() == 2; });
}

bool x_y_z_are_matrices(const RuleMatch& match) { return are_matrices(match, {"x", "y", "z"}); }
bool x_v_w_are_matrices(const RuleMatch& match) { return are_matrices(match, {"x", "v", "w"}); }
bool x_y_w_are_matrices(const RuleMatch& match) { return are_matrices(match, {"x", "y", "w"}); }
bool x_y_v_w_are_matrices(const RuleMatch& match) { return are_matrices(match, {"x", "y", "v", "w"}); }

constexpr std::string_view kMatrices = "all are matrices";

const ProofAxiom kAxioms[] = {
    // ---- Numbers: that sums and products commute is known of each op with that trait
    // ---------------------------------------------------------------------------------------------------
    {{.name = "axiom.add_associates",
      .before = "s = add(x, y); t = add(s, z)",
      .after = "s = add(y, z); t = add(x, s)"}},
    {{.name = "axiom.mul_associates",
      .before = "s = mul(x, y); t = mul(s, z)",
      .after = "s = mul(y, z); t = mul(x, s)"}},
    {{.name = "axiom.mul_distributes",
      .before = "s = add(x, y); t = mul(s, z)",
      .after = "p = mul(x, z); q = mul(y, z); t = add(p, q)"}},
    {{.name = "axiom.sub_is_add", .before = "s = sub(x, y)", .after = "n = neg(y); s = add(x, n)"}},
    {{.name = "axiom.neg_twice", .before = "n = neg(x); m = neg(n)", .after = "m = x"}},
    {{.name = "axiom.neg_of_sum",
      .before = "s = add(x, y); n = neg(s)",
      .after = "p = neg(x); q = neg(y); n = add(p, q)"}},
    {{.name = "axiom.neg_of_product", .before = "s = mul(x, y); n = neg(s)", .after = "p = neg(x); n = mul(p, y)"}},
    {{.name = "axiom.div_is_mul", .before = "q = div(x, y)", .after = "r = div(1, y); q = mul(x, r)"}},
    {{.name = "axiom.reciprocal_of_product",
      .before = "s = mul(x, y); r = div(1, s)",
      .after = "p = div(1, x); q = div(1, y); r = mul(p, q)"}},
    {{.name = "axiom.reciprocal_of_negative",
      .before = "s = neg(x); r = div(1, s)",
      .after = "p = div(1, x); r = neg(p)"}},
    {{.name = "axiom.twice", .before = "y = add(x, x)", .after = "y = mul(x, 2)"}},
    {{.name = "axiom.times_one", .before = "y = mul(x, 1)", .after = "y = x"}},
    {{.name = "axiom.plus_zero", .before = "y = add(x, 0)", .after = "y = x"}},

    // ---- Matrices --------------------------------------------------------------------------------------------------
    {{.name = "axiom.matmul_associates",
      .before = "s = matmul(x, y); t = matmul(s, z)",
      .after = "s = matmul(y, z); t = matmul(x, s)",
      .guard_doc = kMatrices,
      .guard = x_y_z_are_matrices}},
    {{.name = "axiom.matmul_distributes_left",
      .before = "s = add(v, w); t = matmul(x, s)",
      .after = "p = matmul(x, v); q = matmul(x, w); t = add(p, q)",
      .guard_doc = kMatrices,
      .guard = x_v_w_are_matrices}},
    {{.name = "axiom.matmul_distributes_right",
      .before = "s = add(x, y); t = matmul(s, w)",
      .after = "p = matmul(x, w); q = matmul(y, w); t = add(p, q)",
      .guard_doc = kMatrices,
      .guard = x_y_w_are_matrices}},
    {{.name = "axiom.matmul_of_neg",
      .before = "s = neg(x); t = matmul(s, w)",
      .after = "p = matmul(x, w); t = neg(p)"}},
    {{.name = "axiom.matmul_of_columns",
      .before = "c = concat[axis=1](v, w); y = matmul(x, c)",
      .after = "p = matmul(x, v); q = matmul(x, w); y = concat[axis=1](p, q)",
      .guard_doc = kMatrices,
      .guard = x_v_w_are_matrices}},
    {{.name = "axiom.matmul_of_rows",
      .before = "c = concat[axis=0](x, y); z = matmul(c, w)",
      .after = "p = matmul(x, w); q = matmul(y, w); z = concat[axis=0](p, q)",
      .guard_doc = kMatrices,
      .guard = x_y_w_are_matrices}},
    {{.name = "axiom.matmul_of_blocks",
      .before = "p = matmul(x, v); q = matmul(y, w); z = add(p, q)",
      .after = "c = concat[axis=1](x, y); d = concat[axis=0](v, w); z = matmul(c, d)",
      .guard_doc = kMatrices,
      .guard = x_y_v_w_are_matrices}},
    {{.name = "axiom.matmul_transposed",
      .before = "p = matmul(x, w); t = transpose[perm=[1,0]](p)",
      .after = "a = transpose[perm=[1,0]](w); b = transpose[perm=[1,0]](x); t = matmul(a, b)"}},
    {{.name = "axiom.transpose_twice",
      .before = "p = transpose[perm=[1,0]](x); t = transpose[perm=[1,0]](p)",
      .after = "t = x"}},

    // ---- Convolutions: of images, in as many groups as said
    // -----------------------------------------------------------
    {{.name = "axiom.conv_of_sum",
      .before = "s = add(x, y); z = conv[strides=s, pads=p, dilations=d, group=g](s, w)",
      .after = "a = conv[strides=s, pads=p, dilations=d, group=g](x, w); "
               "b = conv[strides=s, pads=p, dilations=d, group=g](y, w); z = add(a, b)",
      .guard_doc = "x and y have the same extents",
      .guard = x_y_agree},
     "rank x y; 0 x y; 1 x y; 2 x y; 3 x y"},
    {{.name = "axiom.conv_with_sum",
      .before = "t = add(v, w); z = conv[strides=s, pads=p, dilations=d, group=g](x, t)",
      .after = "a = conv[strides=s, pads=p, dilations=d, group=g](x, v); "
               "b = conv[strides=s, pads=p, dilations=d, group=g](x, w); z = add(a, b)",
      .guard_doc = "v and w have the same extents",
      .guard = v_w_agree},
     "rank v w; 0 v w; 1 v w; 2 v w; 3 v w"},
    {{.name = "axiom.conv_of_batches",
      .before = "c = concat[axis=0](x, y); z = conv[strides=s, pads=p, dilations=d, group=g](c, w)",
      .after = "a = conv[strides=s, pads=p, dilations=d, group=g](x, w); "
               "b = conv[strides=s, pads=p, dilations=d, group=g](y, w); z = concat[axis=0](a, b)"}},
    {{.name = "axiom.conv_with_filters",
      .before = "c = concat[axis=0](v, w); z = conv[strides=s, pads=p, dilations=d, group=1](x, c)",
      .after = "a = conv[strides=s, pads=p, dilations=d, group=1](x, v); "
               "b = conv[strides=s, pads=p, dilations=d, group=1](x, w); z = concat[axis=1](a, b)"}},
    {{.name = "axiom.conv_with_filters_and_biases",
      .before = "c = concat[axis=0](v, w); e = concat[axis=0](a, b); "
                "z = conv[strides=s, pads=p, dilations=d, group=1](x, c, e)",
      .after = "f = conv[strides=s, pads=p, dilations=d, group=1](x, v, a); "
               "h = conv[strides=s, pads=p, dilations=d, group=1](x, w, b); z = concat[axis=1](f, h)"},
     "0 v a; 0 w b"},
    {{.name = "axiom.conv_of_channels",
      .before = "a = conv[strides=s, pads=p, dilations=d, group=1](x, v); "
                "b = conv[strides=s, pads=p, dilations=d, group=1](y, w); z = add(a, b)",
      .after = "c = concat[axis=1](x, y); e = concat[axis=1](v, w); "
               "z = conv[strides=s, pads=p, dilations=d, group=1](c, e)"},
     "0 x y; 2 x y; 3 x y; 0 v w; 2 v w; 3 v w"},
    {{.name = "axiom.conv_of_neg",
      .before = "n = neg(x); z = conv[strides=s, pads=p, dilations=d, group=g](n, w)",
      .after = "a = conv[strides=s, pads=p, dilations=d, group=g](x, w); z = neg(a)"}},

    // ---- Joining and cutting
    // -------------------------------------------------------------------------------------------
    {{.name = "axiom.unary_of_concat",
      .before = "c = concat[axis=k](x, y); z = unary<f>(c)",
      .after = "a = unary<f>(x); b = unary<f>(y); z = concat[axis=k](a, b)"}},
    {{.name = "axiom.binary_of_concats",
      .before = "p = concat[axis=k](a, b); q = concat[axis=k](c, d); z = binary<f>(p, q)",
      .after = "r = binary<f>(a, c); s = binary<f>(b, d); z = concat[axis=k](r, s)",
      .guard_doc = "pieces have the same extents",
      .guard = pairs_agree},
     "rank a c; k a c; k b d"},
    {{.name = "axiom.concat_associates",
      .before = "c = concat[axis=k](x, y); d = concat[axis=k](c, z)",
      .after = "d = concat[axis=k](x, y, z)"}},
    {{.name = "axiom.concat_associates_too",
      .before = "c = concat[axis=k](y, z); d = concat[axis=k](x, c)",
      .after = "d = concat[axis=k](x, y, z)"}},
    {{.name = "axiom.split_of_concat",
      .before = "c = concat[axis=k](x, y); a, b = split[axis=k](c)",
      .after = "a = x; b = y",
      .guard_doc = "cut where it was joined",
      .guard = two_pieces_agree},
     "k a x; k b y"},
    {{.name = "axiom.split_of_three",
      .before = "c = concat[axis=k](x, y, z); a, b, d = split[axis=k](c)",
      .after = "a = x; b = y; d = z",
      .guard_doc = "cut where it was joined",
      .guard = three_pieces_agree},
     "k a x; k b y; k d z"},
    {{.name = "axiom.concat_of_split",
      .before = "a, b = split[axis=k](x); y = concat[axis=k](a, b)",
      .after = "y = x"}},
    {{.name = "axiom.unary_of_transpose",
      .before = "t = transpose[perm=p](x); z = unary<f>(t)",
      .after = "a = unary<f>(x); z = transpose[perm=p](a)"}},
    {{.name = "axiom.unary_of_reshape",
      .before = "t = reshape[allowzero=n](x, s); z = unary<f>(t)",
      .after = "a = unary<f>(x); z = reshape[allowzero=n](a, s)"}},
};

}  // namespace

std::span<const ProofAxiom> proof_axioms() { return kAxioms; }

}  // namespace autograph
