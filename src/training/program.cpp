#include "training/program.h"

#include "base/check.h"

namespace autograph {
namespace {

// [n, 1, 28, 28] as the [n, 784] that the program wants.
Tensor fitted(const Tensor& tensor, const Type& wanted) {
  if (!wanted.is_tensor() || !wanted.shape().has_rank() || wanted.shape().rank() == 0 || tensor.rank() == 0)
    return tensor;
  Dims dims{tensor.dims()[0]};
  int64_t product = dims[0];
  for (int64_t axis = 1; axis < wanted.shape().rank(); ++axis) {
    if (!wanted.shape()[axis].is_known()) return tensor;
    dims.push_back(wanted.shape()[axis].value());
    product *= dims.back();
  }
  return product == tensor.num_elements() ? tensor.reshaped(dims) : tensor;
}

}  // namespace

TrainingProgram::TrainingProgram(Graph graph, const CompileOptions& options)
    : interface_(graph), executable_(compile(std::move(graph), options)) {}

Metrics TrainingProgram::run(const Batch& batch) const {
  std::vector<Datum> inputs;
  for (const ValueId id : interface_.inputs()) {
    inputs.emplace_back(fitted(batch[interface_.value(id).name()], interface_.type(id)));
  }
  const Outputs outputs = executable_.run(inputs);
  Metrics metrics;
  for (size_t k = 0; k < outputs.size(); ++k) {
    metrics[interface_.output_name(k)] = outputs[k].tensor().to_f64().front();
  }
  return metrics;
}

Metrics TrainingProgram::means(DataLoader& data) const {
  Metrics sums;
  int64_t samples = 0;
  while (const auto batch = data.next()) {
    for (const auto& [name, value] : run(*batch)) sums[name] += value * static_cast<double>(batch->size);
    samples += batch->size;
  }
  AG_CHECK_USER(samples > 0, ValueError, "[train] evaluation: expected samples, got none");
  for (auto& [name, sum] : sums) sum /= static_cast<double>(samples);
  return sums;
}

}  // namespace autograph
