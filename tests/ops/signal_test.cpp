#include <gtest/gtest.h>

#include "ops/call_op.h"
#include "ops/defs.h"

namespace autograph {
namespace {

TEST(Dft, InverseUndoesTheTransform) {
  const Tensor x = Tensor::of<float>({4, 1}, {1, 2, 3, 5});
  const Tensor y = call_op(dft_def(), {x}, {{"onesided", int64_t{1}}})[0];
  EXPECT_EQ(y.dims(), (Dims{3, 2}));
  EXPECT_NEAR(y.to_f64()[0], 11, 1e-6);
  const Tensor back = call_op(dft_def(), {y}, {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}})[0];
  ASSERT_EQ(back.dims(), x.dims());
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(back.to_f64()[i], x.to_f64()[i], 1e-6);
}

TEST(Dft, RejectsTheAxisOfTheParts) {
  const Tensor x = Tensor::of<float>({2, 1}, {1, 2});
  EXPECT_THROW(call_op(dft_def(), {x, Tensor(), Tensor::scalar<int64_t>(-1)}), ValueError);
}

TEST(HannWindow, IsPeriodicOrSymmetric) {
  const Tensor size = Tensor::scalar<int64_t>(3);
  EXPECT_NEAR(call_op(hann_window_def(), {size})[0].to_f64()[2], 0.75, 1e-6);
  EXPECT_NEAR(call_op(hann_window_def(), {size}, {{"periodic", int64_t{0}}})[0].to_f64()[1], 1.0, 1e-6);
}

TEST(Signal, SamplesOfEveryOpRun) {
  for (const OpDef* op : {&dft_def(), &stft_def(), &hann_window_def(), &hamming_window_def(), &blackman_window_def(),
                          &mel_weight_matrix_def()}) {
    run_samples(*op, 200);
  }
}

}  // namespace
}  // namespace autograph
