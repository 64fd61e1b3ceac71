// What is computed of a part is what the whole has there.
#include "accuracy/sampled_run.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/random.h"
#include "autograph/verify.h"
#include "ops/sample.h"
#include "support/graphs/sample_graph.h"

namespace autograph {
namespace {

std::vector<ScaledTensor> tensors_of(const std::vector<Datum>& inputs) {
  std::vector<ScaledTensor> tensors;
  for (const Datum& datum : inputs) tensors.push_back({datum.tensor(), {}});
  return tensors;
}

bool is_static(const Graph& graph) {
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (!node.op().scalar && !node.op().reference) return false;
    for (const ValueId v : node.outputs()) {
      const Type& type = graph.type(v);
      if (!type.is_static() || type.dtype() == DType::string || type.shape().num_elements() == 0) return false;
    }
  }
  return true;
}

TEST(SampledRun, GivesTheElementsOfTheWhole) {
  size_t num_cropped = 0;
  for (const OpDef* op : all_ops()) {
    if (!op->sample || op->evaluate || op->traits.random || (!op->scalar && !op->reference)) continue;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Random random(seed);
      const TestGraph test = make_sample_graph(*op, op->sample(random));
      const auto is_tensor = [](const Datum& datum) { return datum.is_tensor(); };
      if (!std::all_of(test.inputs.begin(), test.inputs.end(), is_tensor) || !is_static(test.graph)) continue;
      SampledRun whole(test.graph, tensors_of(test.inputs), {});
      SampledRun part(test.graph, tensors_of(test.inputs), {});
      for (const ValueId output : test.graph.outputs()) {
        const Dims dims = test.graph.type(output).shape().static_dims();
        const ScaledTensor all = whole.compute(output, select_all(dims));
        const Selection wanted = draw_selection(dims, 6, seed % 3, random);
        const ScaledTensor some = part.compute(output, wanted);
        ASSERT_TRUE(some.value.bitwise_equal(select(all.value, wanted))) << op->name << ", seed " << seed;
        num_cropped += part.work(output, wanted) < whole.work(output, select_all(dims)) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(num_cropped, 500U) << "ops with rules compute less than the whole";
}

}  // namespace
}  // namespace autograph
