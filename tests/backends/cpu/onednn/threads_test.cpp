// Kernels that share their work among threads, on tensors large enough that they do.
#include <gtest/gtest.h>

#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

// Every kernel made for the op that takes the call gives what the reference gives, with one thread and with three.
void expect_reference(const OpDef& op, const OpSample& sample) {
  SCOPED_TRACE(std::string(op.name));
  size_t taken = 0;
  for (const int threads : {1, 3}) {
    const KernelCase test(op, sample, {threads});
    const std::vector<Tensor> expected = test.reference();
    for (const KernelDef& def : cpu_kernels()) {
      if (def.op != op.name || def.variants) continue;
      KernelRun run(def, test);
      if (!run.refusal().empty()) continue;
      ++taken;
      run.run();
      for (size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(difference(Datum(run.outputs()[k]), Datum(expected[k]), {1e-5, 1e-5}), "") << def.name;
      }
    }
  }
  EXPECT_EQ(taken, 2U);
}

Tensor floats(Random& random, Dims dims) { return draw_tensor(random, DType::f32, std::move(dims)); }

TEST(Threads, ReductionsOfRowsColumnsAndBoth) {
  Random random(1);
  for (const OpDef* op : {&reduce_mean_def(), &reduce_sum_def()}) {
    const Tensor x = floats(random, {7, 110, 130});
    for (const std::vector<int64_t>& axes : {std::vector<int64_t>{2}, {0}, {1}, {0, 1}, {1, 2}, {0, 1, 2}}) {
      expect_reference(*op, {{x, Tensor::vector(axes)}});
    }
  }
}

TEST(Threads, GatherOfRowsAndColumns) {
  Random random(2);
  const Tensor x = floats(random, {50, 40, 30});
  const Tensor indices = draw_tensor(random, DType::i64, {9, 11}, -30, 29);
  for (int64_t axis = 0; axis < 3; ++axis) expect_reference(gather_def(), {{x, indices}, {{"axis", axis}}});
}

TEST(Threads, BatchNormalization) {
  Random random(3);
  OpSample sample{.inputs = {floats(random, {2, 33, 41, 29})}, .num_outputs = 1};
  for (int i = 0; i < 4; ++i) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {33}, 0.5, 2));
  expect_reference(batch_normalization_def(), sample);
}

// Concat and split have variants for layouts; the plain way is what is run without one.
TEST(Threads, ConcatAndSplitOfUnequalParts) {
  Random random(4);
  for (int64_t axis = 0; axis < 3; ++axis) {
    OpSample parts{.inputs = {}, .attributes = {{"axis", axis}}};
    Dims dims{20, 50, 70};
    for (const int64_t extent : {1, 33, 14}) {
      dims[static_cast<size_t>(axis)] = extent;
      parts.inputs.emplace_back(floats(random, dims));
    }
    dims[static_cast<size_t>(axis)] = 48;
    const OpSample whole{.inputs = {floats(random, dims), Tensor::vector({1, 33, 14})},
                         .attributes = {{"axis", axis}},
                         .num_outputs = 3};
    for (const auto& [def, op, sample] :
         {std::tuple(concat_kernel(), &concat_def(), parts), std::tuple(split_kernel(), &split_def(), whole)}) {
      const KernelCase test(*op, sample, {3});
      KernelRun run(def, test);
      run.run();
      const std::vector<Tensor> expected = test.reference();
      for (size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(difference(Datum(run.outputs()[k]), Datum(expected[k]), {0, 0}), "") << op->name << " " << k;
      }
    }
  }
}

}  // namespace
}  // namespace autograph
