// The older spellings of tree ensembles in ONNX: TreeEnsembleRegressor and TreeEnsembleClassifier.
#pragma once

#include <vector>

#include "autograph/foreign_node.h"

namespace autograph {

/// As ImportFn: a tree_ensemble, and behind it what the old form does to its scores.
std::vector<ValueId> import_tree_regressor(ForeignNode& node);
std::vector<ValueId> import_tree_classifier(ForeignNode& node);

}  // namespace autograph
