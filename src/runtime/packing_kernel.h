// Kernels that pack what they know, and can do so again when it is something else.
#pragma once

#include <cstdint>
#include <span>

#include "autograph/kernel.h"

namespace autograph {

/// A state as a run finds it. Equal versions of one state have equal elements, wherever they lie.
struct StateContents {
  Tensor tensor;
  uint64_t version = 0;  ///< 0: as the graph has it before the first run.
};

/// A kernel that packs constants whose elements may be others later. What is no such kernel has to be made anew then,
/// which takes longer.
class PackingKernel : public Kernel {
 public:
  /// Packs the elements that inputs of its call have now, of the types that it was prepared for, in place of those that
  /// it knew; absent where they are the same or not known. Call on the threads of its runs while there is none; its
  /// states are of no use any more, nor is the kernel after an exception. False where it made something else of one of
  /// them when it was prepared: nothing has happened, and it has to be made anew.
  virtual bool renew(std::span<const StateContents> inputs, PackedConstants* packed) = 0;
};

}  // namespace autograph
