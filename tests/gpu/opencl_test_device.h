// The OpenCL device of this machine for tests, and the folder where they keep programs.
#pragma once

#include <gtest/gtest.h>

#include "autograph/compile.h"
#include "backends/opencl/opencl_device.h"
#include "support/compare.h"

/// Leaves a test, with a message, where there is no device.
#define AG_NEEDS_OPENCL() \
  if (opencl_device_names().empty()) GTEST_SKIP() << "no OpenCL device here (Debian: pocl-opencl-icd)"

namespace autograph {

inline CompileOptions on_opencl() {
  CompileOptions options;
  options.device = "opencl";
  return options;
}

inline CompileOptions on_reference() {
  CompileOptions options;
  options.device = "reference";
  return options;
}

/// Runs a graph on both; the kernels must be the device's own.
inline std::string difference_on_opencl(const Graph& graph, const std::vector<Datum>& inputs,
                                        const FloatTolerance& tolerance = {}) {
  const Executable there = compile(graph, on_opencl());
  for (const KernelChoice& choice : there.kernel_choices()) {
    if (choice.kernel == "reference") {
      return choice.op + " runs on the host: " + testing::PrintToString(choice.refusals);
    }
  }
  return difference(there.run(inputs), compile(graph, on_reference()).run(inputs), tolerance);
}

}  // namespace autograph
