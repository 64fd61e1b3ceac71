// Runs one op on tensors the way the runtime would: schema check, inference, reference.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "graph/infer_node.h"
#include "graph/run_reference.h"
#include "graph/schema.h"

namespace autograph {

/// All outputs of one call; absent tensors are missing optional inputs.
inline std::vector<Tensor> run_op_all(const OpDef& op, const std::vector<Tensor>& inputs, Attributes attributes = {},
                                      int num_outputs = -1) {
  complete_attributes(op, attributes, "");
  std::vector<Type> types;
  for (const Tensor& input : inputs) types.push_back(input.is_present() ? input.type() : Type());
  check_dtypes(op, types, {}, "");
  const size_t count = resolve_num_outputs(op, num_outputs, "");
  const std::vector<Type> outputs = infer_call(op, types, inputs, attributes, count, "");
  return run_reference(op, attributes, inputs, outputs);
}

/// The first output of one call.
inline Tensor run_op(const OpDef& op, const std::vector<Tensor>& inputs, Attributes attributes = {}) {
  return run_op_all(op, inputs, std::move(attributes)).front();
}

/// The elements as a vector, for EXPECT_EQ.
template <class T>
std::vector<T> elements(const Tensor& tensor) {
  return std::vector<T>(tensor.data<T>(), tensor.data<T>() + tensor.num_elements());
}

/// Expects f32 elements within `tolerance` of `expected`.
inline void expect_near(const Tensor& tensor, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> actual = tensor.to_f64();
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << "element " << i;
}

/// The message of the user error that the call raises; "" when it raises none.
inline std::string error_of(const OpDef& op, const std::vector<Tensor>& inputs, Attributes attributes = {},
                            int num_outputs = -1) {
  try {
    run_op_all(op, inputs, std::move(attributes), num_outputs);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace autograph
