// A whole model as loss and gradients.
#pragma once

#include "autograph/autodiff.h"

namespace autograph {

/// gradient_graph() without the gradients: a model whose only output is "loss".
Graph loss_graph(const Graph& model, const GradientGraphOptions& options);

}  // namespace autograph
