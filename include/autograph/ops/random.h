// Typed builders of the random ops. A seed makes the numbers the same in every run; without one they differ.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "autograph/builder.h"

namespace autograph {

/// Numbers in [low, high) of shape `dims`.
Var random_uniform(Graph& graph, const Dims& dims, float low = 0, float high = 1, std::optional<float> seed = {});
/// Normally distributed numbers of shape `dims`.
Var random_normal(Graph& graph, const Dims& dims, float mean = 0, float scale = 1, std::optional<float> seed = {});
/// Numbers in [low, high) of the shape and dtype of x.
Var random_uniform_like(Var x, float low = 0, float high = 1, std::optional<float> seed = {});
/// Normally distributed numbers of the shape and dtype of x.
Var random_normal_like(Var x, float mean = 0, float scale = 1, std::optional<float> seed = {});
/// 1 with probability x, else 0; the shape and dtype of x.
Var bernoulli(Var x, std::optional<float> seed = {});
/// i32[batch, sample_size] class indices drawn from unnormalised log-probabilities x [batch, classes].
Var multinomial(Var x, int64_t sample_size, std::optional<float> seed = {});
/// In training mode drops elements with probability `ratio` and scales the rest up, else gives x; and the mask (bool).
std::pair<Var, Var> dropout(Var x, Var ratio = {}, Var training_mode = {}, std::optional<int64_t> seed = {});

/// Numbers of shape `shape` (i64[rank]) that `seed`, `step` (i64[]) and the node's id determine, on every device alike:
/// u32 bits, numbers in [0, 1), or normally distributed ones of mean 0 and variance 1.
Var philox_bits(Var shape, Var seed, Var step);
Var philox_uniform(Var shape, Var seed, Var step, DType dtype = DType::f32);
Var philox_normal(Var shape, Var seed, Var step, DType dtype = DType::f32);

}  // namespace autograph
