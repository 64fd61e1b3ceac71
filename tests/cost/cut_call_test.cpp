#include "cost/cut_call.h"

#include <gtest/gtest.h>

#include "autograph/op_def.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

int64_t outputs_of(const KernelCall& call) { return call.outputs[0].shape().num_elements().value(); }

TEST(CutCall, HalvesEqualExtentsTogetherThoseOfTheFirstInputFirst) {
  Random random(1);
  const KernelCase test(
      matmul_def(), {.inputs = {draw_tensor(random, DType::f32, {9, 64}), draw_tensor(random, DType::f32, {64, 20})}},
      {.constant_weights = true});
  const KernelCall call = test.call();
  const auto cut = CutCall::of(call, [](const KernelCall& cut) { return cut.inputs[0].shape().num_elements() <= 10; });
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->call().input_dims(0), (Dims{2, 4})) << "the batch, then what is added up";
  EXPECT_EQ(cut->call().input_dims(1), (Dims{4, 20}));
  EXPECT_EQ(cut->call().output_dims(0), (Dims{2, 20}));
  EXPECT_EQ(cut->call().constant(1)->dims(), (Dims{4, 20})) << "constants are cut, too";
  EXPECT_EQ(cut->call().constant(1)->data<float>()[0], call.constant(1)->data<float>()[0]);
}

TEST(CutCall, LeavesAloneWhatIsSmall) {
  const KernelCase test(relu_def(), {.inputs = {Tensor::zeros(DType::f32, {5, 7})}});
  const auto cut = CutCall::of(test.call(), [](const KernelCall&) { return true; });
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->call().input_dims(0), (Dims{5, 7}));
}

TEST(CutCall, GivesNothingWhereAConstantSaysHowLargeAllIs) {
  const KernelCase test(expand_def(), {.inputs = {Tensor::zeros(DType::f32, {8, 1}), Tensor::vector({8, 9})}});
  EXPECT_FALSE(CutCall::of(test.call(), [](const KernelCall& cut) { return outputs_of(cut) <= 4; }));
}

}  // namespace
}  // namespace autograph
