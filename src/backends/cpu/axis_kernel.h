// Kernels of f32 that compute along one axis and give a tensor of the same dims: rows where the axis is the last one,
// else columns side by side.
#pragma once

#include "autograph/kernel.h"
#include "backends/cpu/axis_blocks.h"
#include "backends/cpu/threads/parallel.h"

namespace autograph {

class AxisKernel : public Kernel {
 public:
  std::vector<uint32_t> in_place_inputs() const override { return {0}; }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[0].data<float>();
    float* y = args.outputs[0].mutable_data<float>();
    for_shares(threads_, blocks_.units(), [&](int64_t begin, int64_t end, int) {
      blocks_.for_strips(begin, end, [&](int64_t block, int64_t column, int64_t count) {
        const int64_t at = block * blocks_.extent * blocks_.inner + column;
        if (blocks_.inner == 1)
          run_row(x + at, y + at);
        else
          run_columns(x + at, y + at, count);
      });
    });
  }

 protected:
  AxisKernel(const KernelCall& call, int64_t axis)
      : blocks_(call.input_dims(0), axis), threads_(useful_threads(call.threads, 2 * blocks_.elements())) {}
  /// blocks().extent elements.
  virtual void run_row(const float* x, float* y) const = 0;
  /// `count` columns of blocks().extent elements that stand blocks().inner apart; `count` is at most
  /// AxisBlocks::kStrip.
  virtual void run_columns(const float* x, float* y, int64_t count) const = 0;
  const AxisBlocks& blocks() const { return blocks_; }

 private:
  const AxisBlocks blocks_;
  const int threads_;
};

}  // namespace autograph
