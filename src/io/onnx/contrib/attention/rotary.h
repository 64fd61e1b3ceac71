// The rotation of RotaryEmbedding and GroupQueryAttention.
#pragma once

#include "io/onnx/contrib/body.h"

namespace autograph::io {

/// x of rank 4, its heads' elements last, with the first 2 n of each head turned by the angles whose cosines and sines
/// [..., n] broadcast to x: elements i and i + n are a pair, or neighbours when interleaved.
Var rotated(const ContribCall& call, Var x, Var cosines, Var sines, bool interleaved);

}  // namespace autograph::io
