// Typed builders of the loss functions. Shapes: scores [n, classes, d...], labels [n, d...], weights [classes]; the
// loss is a scalar, or has the shape of labels with reduction "none".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "autograph/builder.h"

namespace autograph {

/// -weights[label] * log_prob[label]; reduction is "none", "sum" or "mean".
Var negative_log_likelihood_loss(Var log_prob, Var labels, Var weights = {}, const std::string& reduction = "mean",
                                 std::optional<int64_t> ignore_index = {});
/// The same of log_softmax(scores) along axis 1.
Var softmax_cross_entropy_loss(Var scores, Var labels, Var weights = {}, const std::string& reduction = "mean",
                               std::optional<int64_t> ignore_index = {});

}  // namespace autograph
