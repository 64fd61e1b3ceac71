// Typed builders of the ops of ai.onnx.ml: what scikit-learn and its like export.
#pragma once

#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// Columns of x (positions in its last dim) by index.
Var array_feature_extractor(Var x, Var indices);
/// 1 where x > threshold, else 0.
Var binarizer(Var x, float threshold = 0);
/// Probabilities [rows, classes] from those of the first of each pair of classes, [rows, pairs].
Var couple_pairs(Var r, int64_t classes);
/// The value that belongs to each element as a key, or `otherwise` (one element).
Var label_encoder(Var x, Tensor keys, Tensor values, Tensor otherwise);
/// (x - offset) * scale in f32; x is [rows, features], the others have one element or one for each feature.
Var scaler(Var x, std::vector<float> offset, std::vector<float> scale);
/// Scores of the rows of x by the leaves that they reach in decision trees, which `attributes` describe.
Var tree_ensemble(Var x, Attributes attributes);

}  // namespace autograph
