#include "graph/run_reference.h"

#include "base/check.h"
#include "graph/nested/run_body.h"

namespace autograph {
namespace {

// Elementwise ops: walk the output row by row (the innermost dim at once), each input advancing by its own steps.
void loop_scalar(const OpDef& op, const OpCall& call) {
  const TensorView out = call.outputs[0];
  std::vector<DType> dtypes;
  for (const TensorView& in : call.inputs) dtypes.push_back(in.dtype());
  const ScalarLoop loop = op.scalar(dtypes, out.dtype());
  AG_CHECK(loop, "[{}] no formula for output dtype {}", op.name, to_string(out.dtype()));
  if (out.num_elements() == 0) return;

  const int64_t rank = out.rank();
  const size_t num_inputs = call.inputs.size();
  // strides[k][axis]: elements that input k advances by along `axis` of the output; 0 where it broadcasts.
  std::vector<std::vector<int64_t>> strides(num_inputs, std::vector<int64_t>(static_cast<size_t>(rank), 0));
  for (size_t k = 0; k < num_inputs; ++k) {
    if (!call.inputs[k].is_present()) continue;
    int64_t stride = 1;
    for (int64_t axis = call.inputs[k].rank() - 1; axis >= 0; --axis) {
      const int64_t extent = call.inputs[k].dim(axis);
      const auto out_axis = static_cast<size_t>(axis + rank - call.inputs[k].rank());
      strides[k][out_axis] = extent == 1 ? 0 : stride;
      stride *= extent;
    }
  }
  const int64_t row = rank == 0 ? 1 : out.dim(rank - 1);
  std::vector<int64_t> steps(num_inputs, 0);
  for (size_t k = 0; k < num_inputs && rank > 0; ++k) steps[k] = strides[k].back();
  std::vector<int64_t> index(static_cast<size_t>(rank), 0);
  std::vector<const void*> pointers(num_inputs, nullptr);
  for (int64_t done = 0; done < out.num_elements(); done += row) {
    for (size_t k = 0; k < num_inputs; ++k) {
      if (!call.inputs[k].is_present()) continue;
      int64_t offset = 0;
      for (size_t axis = 0; axis + 1 < index.size(); ++axis) offset += index[axis] * strides[k][axis];
      pointers[k] = call.inputs[k].data<char>() + offset * static_cast<int64_t>(element_size(dtypes[k]));
    }
    loop(call.attributes, pointers, steps,
         out.mutable_data<char>() + done * static_cast<int64_t>(element_size(out.dtype())), row);
    for (int64_t axis = rank - 2; axis >= 0; --axis) {
      if (++index[static_cast<size_t>(axis)] < out.dim(axis)) break;
      index[static_cast<size_t>(axis)] = 0;
    }
  }
}

}  // namespace

void call_reference(const OpDef& op, const OpCall& call) {
  if (op.scalar) {
    loop_scalar(op, call);
  } else if (op.reference) {
    op.reference(call);
  } else {
    AG_CHECK(op.decompose, "[{}] has no reference for static shapes", op.name);
    call_body(op, call);
  }
}

std::vector<Tensor> run_reference(const OpDef& op, const Attributes& attributes, std::span<const Tensor> inputs,
                                  std::span<const Type> output_types) {
  std::vector<Tensor> outputs;
  std::vector<TensorView> input_views;
  std::vector<TensorView> output_views;
  for (const Tensor& input : inputs) input_views.push_back(input.view());
  outputs.reserve(output_types.size());
  for (const Type& type : output_types) {
    outputs.push_back(Tensor::empty(type.dtype(), type.shape().static_dims()));
    output_views.push_back(outputs.back().view());
  }
  call_reference(op, {attributes, input_views, output_views});
  return outputs;
}

}  // namespace autograph
