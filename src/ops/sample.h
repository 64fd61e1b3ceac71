// Random tensors for OpDef::sample.
#pragma once

#include "autograph/op_def.h"

namespace autograph {

/// An integer in [low, high].
int64_t draw(Random& random, int64_t low, int64_t high);

/// True with probability 1/2.
bool draw_bool(Random& random);

/// One of the values.
template <class T>
T draw_one_of(Random& random, std::initializer_list<T> values) {
  return values.begin()[draw(random, 0, static_cast<int64_t>(values.size()) - 1)];
}

/// A rank in [min_rank, max_rank] and extents in [1, max_extent].
Dims draw_dims(Random& random, int64_t min_rank = 0, int64_t max_rank = 4, int64_t max_extent = 5);

/// Elements of a real, integer or bool dtype, uniform in [low, high].
Tensor draw_tensor(Random& random, DType dtype, Dims dims, double low = -2.0, double high = 2.0);

/// One f32 input of random shape: enough for most unary ops.
OpSample sample_unary(Random& random);

/// Two f32 inputs whose shapes broadcast.
OpSample sample_binary(Random& random);

/// A shape that broadcasts with `dims`: some leading dims dropped, some extents 1.
Dims draw_broadcastable(Random& random, const Dims& dims);

}  // namespace autograph
