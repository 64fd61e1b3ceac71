// Pieces that several ops of ai.onnx.ml share.
#pragma once

#include <string_view>
#include <vector>

#include "io/onnx/contrib/body.h"

namespace autograph::io {

inline constexpr std::string_view kMl = "ai.onnx.ml";

using Reals = std::vector<float>;

/// The attribute `name`; empty when not given.
Reals reals(const ContribCall& call, std::string_view name);
/// `values` as a constant f32 vector.
Var row_of(const ContribCall& call, const Reals& values);
/// Features [rows, columns] in f32; a vector is one row.
Var rows(const ContribCall& call, Var x);
/// Several scores [rows, scores] as the attribute `post_transform` wants them.
Var transformed(const ContribCall& call, Var scores);
/// The names of the classes; 0, 1, ... up to `count` where there are none.
Tensor class_labels(const ContribCall& call, int64_t count);
/// The attributes that hold those names.
std::vector<AttributeSpec> with_class_labels(std::vector<AttributeSpec> more);

}  // namespace autograph::io
