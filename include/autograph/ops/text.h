// Typed builders of the ops on strings. All are UTF-8.
#pragma once

#include <string>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// x followed by y, element by element; they broadcast.
Var string_concat(Var x, Var y);
/// Pieces between `delimiter` (white space when empty), at most `max_splits` + 1 of them unless that is negative:
/// {pieces
/// [..., most of any string], how many of them there are}.
std::vector<Var> string_split(Var x, const std::string& delimiter = "", int64_t max_splits = -1);
/// The strings of x, [n] or [1, n], that are no stop words, in another case. `attributes`: case_change_action (NONE,
/// LOWER, UPPER), is_case_sensitive, stopwords, locale.
Var string_normalizer(Var x, Attributes attributes = {});
/// Does each string match `pattern` as a whole? bool.
Var regex_full_match(Var x, const std::string& pattern);
/// MurmurHash3 of 32 bits over the bytes of each element, a string or a number: u32, or i32 unless `positive`.
Var murmur_hash(Var x, int64_t seed = 0, bool positive = true);
/// Counts of the n-grams of a pool in x, [tokens] or [rows, tokens]; `attributes` are those of the op.
Var tf_idf_vectorizer(Var x, Attributes attributes);

}  // namespace autograph
