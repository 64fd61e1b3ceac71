#include <algorithm>

#include "autograph/run_hashes.h"

namespace autograph {
namespace {

constexpr int64_t kSample = 16;

// Elements of real dtypes alone, the first and the last among them.
std::vector<double> sample_of(const Tensor& tensor) {
  const int64_t count = tensor.num_elements();
  const int64_t kept = std::min(count, kSample);
  std::vector<double> sample;
  for (int64_t i = 0; i < kept; ++i) {
    const int64_t at = kept == 1 ? 0 : i * (count - 1) / (kept - 1);
    char* const element =
        static_cast<char*>(const_cast<void*>(tensor.raw())) + static_cast<size_t>(at) * element_size(tensor.dtype());
    sample.push_back(Tensor::wrap(tensor.dtype(), {1}, element, nullptr).to_f64().front());
  }
  return sample;
}

HashedValue hashed(std::string name, const Tensor& tensor) {
  HashedValue value{std::move(name), to_string(tensor.type()), tensor.content_hash(), statistics_of(tensor.view()), {}};
  if (value.statistics) value.sample = sample_of(tensor);
  return value;
}

HashedNode hashed(const NodeRun& run) {
  HashedNode node{run.name, run.op, run.kernel, {}, {}};
  for (const NodeValue& input : run.inputs) {
    if (input.value.is_tensor()) node.inputs.push_back(input.value.tensor().content_hash());
  }
  for (size_t k = 0; k < run.outputs.size(); ++k) {
    if (run.outputs[k].value.is_tensor())
      node.outputs.push_back(hashed(run.outputs[k].name, run.outputs[k].value.tensor()));
  }
  return node;
}

}  // namespace

RunHasher::RunHasher(RunHashes& run)
    : run_(run), watch_("*", [this](const NodeRun& node) {
        run_.nodes.push_back(hashed(node));
        return WatchNext::go_on;
      }) {}

void RunHasher::add_input(const std::string& name, const Datum& value) {
  if (value.is_tensor()) run_.inputs.push_back(hashed(name, value.tensor().to_host()));
}

}  // namespace autograph
