// Programs of a CUDA device: machine code that NVRTC made, loaded.
#pragma once

#include <memory>
#include <string>

#include "backends/cuda/libraries/abi.h"
#include "backends/gpu/program_store.h"

namespace autograph::cuda {

class Machine;

/// A program that is loaded.
class Module {
 public:
  /// Throws DeviceError where the device does not take the code.
  Module(const Machine& machine, const std::string& cubin);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Its kernel of this name.
  CUfunction function(const std::string& name) const;

 private:
  const Machine& machine_;
  CUmodule module_ = nullptr;
};

/// The programs of one device. Any number of threads may ask at once.
class ModuleCache {
 public:
  /// Files lie in `folder`: see gpu::ProgramFiles.
  ModuleCache(const Machine& machine, const std::string& folder) : machine_(machine), files_(folder, "cubin") {}
  /// `source` built for the device and loaded. Throws InternalError with the compiler's messages when it does not
  /// compile.
  std::shared_ptr<const Module> get(const std::string& source);
  gpu::ProgramCounts counts() const { return modules_.counts(); }

 private:
  gpu::BuiltProgram<Module> build(const std::string& source, const Hash128& key) const;

  const Machine& machine_;
  gpu::ProgramFiles files_;
  gpu::SharedPrograms<Module> modules_;
};

}  // namespace autograph::cuda
