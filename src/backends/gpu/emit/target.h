// What kernels are written for: a language, and what the device can do.
#pragma once

#include <cstddef>
#include <cstdint>

namespace autograph::gpu {

/// The language of a source text.
enum class Dialect : uint8_t {
  opencl,  ///< OpenCL C 1.2.
  cuda,    ///< CUDA C++, as NVRTC takes it without any header.
};

struct Target {
  Dialect dialect = Dialect::opencl;
  bool has_f64 = true;
  size_t max_group = 256;                  ///< Work items (threads) of a group, at most.
  size_t local_bytes = size_t{32} * 1024;  ///< Memory that a group shares.
  size_t alternative = 0;                  ///< Of the ways to write a program, by their estimates; see Emitted.
  int processors = 128;                    ///< That run groups at the same time. Processors that are no GPU keep this.
};

}  // namespace autograph::gpu
