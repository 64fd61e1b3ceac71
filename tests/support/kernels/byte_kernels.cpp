#include "support/kernels/byte_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/simd/kernels.h"
#include "ops/defs.h"
#include "support/graphs/quantized_graphs.h"

namespace autograph {
namespace {

Tensor turned(const TensorView& from, const Type& type, Layout source, Layout target) {
  Tensor to = Tensor::empty(type.dtype(), type.shape().static_dims());
  if (source == target) {
    std::memcpy(to.mutable_raw(), from.raw(), to.size_bytes());
    return to;
  }
  const TensorView view = to.view();
  simd::reorder_by_transpose({type, source, target, 1})->run({.inputs = {&from, 1}, .outputs = {&view, 1}});
  return to;
}

// Bytes behind an output that no kernel may write.
constexpr int64_t kGuard = 64;

// What `kernel` gives in the layouts of a variant, in row-major order.
Tensor run_in_layouts(const Kernel& kernel, const KernelCase& test, const KernelVariant& variant) {
  const KernelCall call = test.call();
  std::vector<Tensor> inputs;
  std::vector<TensorView> views;
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    inputs.push_back(turned(test.inputs()[k], call.inputs[k], Layout::row_major, variant.input(k)));
    views.push_back(inputs.back().view());
  }
  const Type& y = call.outputs[0];
  const auto bytes = static_cast<int64_t>(element_size(y.dtype())) * *y.shape().num_elements();
  Tensor memory = Tensor::empty(DType::u8, {bytes + kGuard});
  std::memset(memory.mutable_raw(), 0xA5, memory.size_bytes());
  const Dims dims = call.output_dims(0);  // which the view refers to
  const TensorView output(y.dtype(), dims, memory.mutable_raw());
  Tensor scratch = Tensor::empty(DType::u8, {static_cast<int64_t>(kernel.scratch_bytes())});
  kernel.run({.inputs = views, .outputs = {&output, 1}, .scratch = scratch.mutable_raw()});
  const auto guard = memory.elements<uint8_t>().last(kGuard);
  EXPECT_TRUE(std::all_of(guard.begin(), guard.end(), [](uint8_t byte) { return byte == 0xA5; }));
  return turned(output, y, variant.output(0), Layout::row_major);
}

bool is_checked(const KernelVariant& variant) {
  return variant.is_row_major() || variant.output(0) == Layout::channels_last;
}

}  // namespace

OpSample call_with_bytes(const Graph& graph, Random& random) {
  const std::vector<Datum> bytes = random_bytes(graph, random);
  const Node& node = graph.node(graph.topological_order().back());
  OpSample sample{.inputs = {}, .attributes = node.attributes()};
  for (const ValueId v : node.inputs()) {
    const Value& value = graph.value(v);
    sample.inputs.emplace_back(value.is_constant() ? Datum(value.constant()) : bytes[value.slot()]);
  }
  sample.num_outputs = 1;
  return sample;
}

void expect_every_form_of_bytes(const KernelDef& def, const OpSample& sample, const KernelSetup& setup) {
  const KernelCase test(fused_def(), sample, setup);
  KernelCall call = test.call();
  const std::string refusal = def.why_not(call);
  ASSERT_TRUE(refusal.empty() || refusal == "convolutions of floats are faster here") << refusal;
  const Tensor expected = test.reference()[0];
  for (const KernelVariant& variant : def.variants(call)) {
    if (!is_checked(variant)) continue;
    call.variant = &variant;
    const Prepared prepared = def.prepare(call);
    ASSERT_EQ(prepared.refusal, "");
    EXPECT_EQ(more_than_a_step(run_in_layouts(*prepared.kernel, test, variant), expected), "")
        << to_string(variant.output(0));
  }
}

}  // namespace autograph
