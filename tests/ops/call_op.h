// Runs one op on tensors through the same steps as the engine: complete attributes, infer, reference.
#pragma once

#include <vector>

#include "autograph/op_def.h"
#include "autograph/random.h"
#include "graph/infer_node.h"
#include "graph/run_reference.h"
#include "graph/schema.h"

namespace autograph {

/// Output types of `op` on these inputs (absent tensors = not given), whose elements are known.
inline std::vector<Type> infer_op(const OpDef& op, const std::vector<Tensor>& inputs, Attributes& attributes,
                                  int num_outputs = -1) {
  complete_attributes(op, attributes, "");
  std::vector<Type> types;
  for (const Tensor& input : inputs) types.push_back(input.is_present() ? input.type() : Type());
  return infer_call(op, types, inputs, attributes, resolve_num_outputs(op, num_outputs, ""), "");
}

/// All outputs of `op` on these inputs.
inline std::vector<Tensor> call_op(const OpDef& op, const std::vector<Tensor>& inputs, Attributes attributes = {},
                                   int num_outputs = -1) {
  const std::vector<Type> types = infer_op(op, inputs, attributes, num_outputs);
  return run_reference(op, attributes, inputs, types);
}

/// 0, 1, 2, ... as f32.
inline Tensor iota_f32(const Dims& dims) {
  Tensor tensor = Tensor::zeros(DType::f32, dims);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.mutable_data<float>()[i] = static_cast<float>(i);
  return tensor;
}

/// Infers and runs `count` samples of `op`; what they compute is for the conformance tests to judge.
inline void run_samples(const OpDef& op, int count) {
  Random random(7);
  for (int i = 0; i < count; ++i) {
    const OpSample sample = op.sample(random);
    std::vector<Tensor> inputs;
    for (const Datum& datum : sample.inputs) inputs.push_back(datum.is_present() ? datum.tensor() : Tensor());
    call_op(op, inputs, sample.attributes, sample.num_outputs);
  }
}

}  // namespace autograph
