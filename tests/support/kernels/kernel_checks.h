// Checks of one kernel against the reference, on every instruction set that this CPU has.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/cpu/simd/isa.h"
#include "support/compare.h"
#include "support/kernels/run_kernel.h"

namespace autograph {

/// Runs a test body once for every instruction set, and gives the best one back at the end.
template <class Body>
void on_every_isa(const Body& body) {
  for (const int64_t level : simd::isa_levels()) {
    simd::limit_isa(level);
    SCOPED_TRACE(std::string(simd::isa_name(level)));
    body();
    simd::limit_isa(0);
  }
}

/// Like on_every_isa(), and once more without VNNI where the best one has it.
template <class Body>
void with_and_without_vnni(const Body& body) {
  on_every_isa(body);
  if (!simd::has_wide_vnni()) return;
  simd::forbid_wide_vnni(true);
  SCOPED_TRACE("without VNNI");
  body();
  simd::forbid_wide_vnni(false);
}

inline std::vector<Datum> as_datums(const std::vector<Tensor>& tensors) { return {tensors.begin(), tensors.end()}; }

/// The kernel's outputs equal the reference's; the kernel must take the call.
inline void expect_reference(const KernelDef& def, const KernelCase& test,
                             const FloatTolerance& tolerance = {1e-5, 1e-6}) {
  KernelRun run(def, test);
  ASSERT_EQ(run.refusal(), "");
  run.run();
  EXPECT_EQ(difference(as_datums(run.outputs()), as_datums(test.reference()), tolerance), "");
}

/// A kernel that was prepared for such a call gives the reference's outputs for this one.
inline void expect_right(const Kernel& kernel, const KernelCase& test, const FloatTolerance& tolerance = {1e-4, 1e-4}) {
  const KernelCall call = test.call();
  std::vector<Tensor> outputs;
  std::vector<TensorView> views;
  for (const Type& type : call.outputs) outputs.push_back(Tensor::empty(type.dtype(), type.shape().static_dims()));
  for (const Tensor& output : outputs) views.push_back(output.view());
  const std::unique_ptr<KernelState> state = kernel.new_state();
  Tensor scratch = Tensor::empty(DType::u8, {static_cast<int64_t>(kernel.scratch_bytes())});
  kernel.run({test.inputs(), views, scratch.mutable_raw(), state.get()});
  EXPECT_EQ(difference(as_datums(outputs), as_datums(test.reference()), tolerance), "");
}

}  // namespace autograph
