// NVIDIA's run-time compiler, from a libnvrtc that is looked for when the program runs.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/libraries/abi.h"

namespace autograph::cuda {

/// Any number of threads may compile at once.
class Compiler {
 public:
  /// Looks for one whose code a driver for CUDA `driver_version` takes: of its major version, or an older one.
  explicit Compiler(int driver_version);

  bool is_there() const { return why_not_.empty(); }
  /// What was looked for and where; "" where it is there.
  const std::string& why_not() const { return why_not_; }
  const std::string& path() const { return path_; }
  /// Of CUDA: 13000 for 13.0.
  int version() const { return version_; }
  /// Does it compile for compute capability 9.0 when asked for 90?
  bool knows(int architecture) const;
  /// "sm_75..sm_121".
  std::string architectures() const;

  /// Machine code (CUBIN) of `source` for `architecture` (90). Throws InternalError with the compiler's messages when
  /// it does not compile: sources are generated.
  std::string compile(const std::string& source, int architecture) const;
  /// The options that sources are compiled with, as part of the key of what comes out.
  static std::string options(int architecture);

 private:
  struct Functions {
    AG_NVRTC_FUNCTIONS(AG_CUDA_MEMBER)
  };

  std::string load(void* handle, int driver_version);
  void check(nvrtcResult code, const char* what) const;

  Functions nvrtc_;
  std::string why_not_;
  std::string path_;
  int version_ = 0;
  std::vector<int> architectures_;
};

/// The compiler for the driver of this machine, looked for once. There must be a driver.
const Compiler& compiler();

}  // namespace autograph::cuda
