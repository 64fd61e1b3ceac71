// Working memory of libraries, which want it aligned better than scratch memory is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace autograph::cuda {

inline constexpr size_t kWorkspaceAlignment = 256;

/// Bytes of scratch memory that have a place for a workspace of so many bytes.
inline size_t scratch_for_workspace(size_t bytes) { return bytes > 0 ? bytes + kWorkspaceAlignment : 0; }

/// Where the workspace begins in them.
inline void* workspace_in(void* scratch) {
  const size_t beyond = reinterpret_cast<uintptr_t>(scratch) % kWorkspaceAlignment;
  return static_cast<char*>(scratch) + (kWorkspaceAlignment - beyond) % kWorkspaceAlignment;
}

}  // namespace autograph::cuda
