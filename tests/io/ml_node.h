// Nodes of ai.onnx.ml for tests, and what they are fed.
#pragma once

#include "io/contrib_node.h"

namespace autograph::tests {

using Numbers = std::vector<double>;

inline ContribNode ml_node(const std::string& op) { return ContribNode(op, "ai.onnx.ml"); }

/// Two rows of two features, unless there are more.
inline Tensor features() { return f32({2, 2}, {1, 2, -3, 0.5}); }

inline void expect_numbers(const Tensor& actual, const Numbers& expected) {
  const Numbers values = actual.to_f64();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-6) << "at " << i;
}

}  // namespace autograph::tests
