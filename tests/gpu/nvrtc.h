// NVIDIA's run-time compiler, where it is found: checks that generated CUDA sources compile. No GPU is needed.
#pragma once

#include <string>

namespace autograph {

class Nvrtc {
 public:
  /// Looks for libnvrtc where the loader does, and where programs look for it (VIRTUAL_ENV names a Python environment
  /// that has it), once.
  static const Nvrtc& of_process();
  bool is_there() const { return library_ != nullptr; }
  /// "" when `source` compiles for `architecture` ("sm_80") and its kernels keep all they compute in registers, else
  /// what the compiler says, and the source.
  std::string why_not(const std::string& source, const std::string& architecture) const;

 private:
  Nvrtc();
  template <class Function>
  Function get(const char* name) const;

  void* library_ = nullptr;
};

}  // namespace autograph
