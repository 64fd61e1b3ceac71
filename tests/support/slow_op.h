// An op that takes its time, for tests of who waits for whom how long.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "autograph/op_def.h"

namespace autograph {

/// What slow_relu_def() takes at least.
inline constexpr std::chrono::milliseconds kSlow{10};

/// relu of f32 after a sleep of kSlow; its cost says nothing of that.
inline const OpDef& slow_relu_def() {
  static const OpDef def{
      .name = "slow_relu",
      .doc = "y = max(0, x).",
      .inputs = {{"x", "T", "Any shape."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", DTypeSet{DType::f32}}},
      .infer = [](InferContext& context) { context.set_output(0, context.dtype(0), context.shape(0)); },
      .reference =
          [](const OpCall& call) {
            std::this_thread::sleep_for(kSlow);
            const TensorView x = call.input(0);
            for (int64_t i = 0; i < x.num_elements(); ++i) {
              call.output(0).mutable_data<float>()[i] = std::max(0.0F, x.data<float>()[i]);
            }
          }};
  return def;
}

}  // namespace autograph
