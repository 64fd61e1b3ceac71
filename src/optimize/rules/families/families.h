// The families of rules; each is one file of this folder.
#pragma once

#include <span>

#include "optimize/rules/rule.h"

namespace autograph {

std::span<const Rule> activation_rules();
std::span<const Rule> arithmetic_rules();
std::span<const Rule> concat_rules();
std::span<const Rule> conv_algebra_rules();
std::span<const Rule> conv_merge_rules();
std::span<const Rule> embedding_rules();
std::span<const Rule> group_norm_rules();
std::span<const Rule> layer_norm_rules();
std::span<const Rule> matmul_rules();
std::span<const Rule> mean_rules();
std::span<const Rule> part_rules();
std::span<const Rule> pool_rules();
std::span<const Rule> product_sum_rules();
std::span<const Rule> recurrent_rules();
std::span<const Rule> rms_norm_rules();
std::span<const Rule> simplification_rules();
std::span<const Rule> slice_rules();
std::span<const Rule> softmax_rules();
std::span<const Rule> spread_rules();
std::span<const Rule> squeeze_excite_rules();
std::span<const Rule> stack_rules();
std::span<const Rule> transpose_rules();
std::span<const Rule> twin_rules();

}  // namespace autograph
