// The OpenCL device of this machine for tests, and the folder where they keep programs.
#pragma once

#include <gtest/gtest.h>

#include "autograph/compile.h"
#include "backends/opencl/opencl_device.h"

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

}  // namespace autograph
