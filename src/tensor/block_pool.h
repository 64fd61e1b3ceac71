// Memory of the host for the elements of tensors. What a thread frees it keeps for what it allocates next: a network
// that runs line by line takes and gives the same sizes again and again, and the system's allocator would give the
// pages of a whole chain of values back and fetch them anew with each step.
#pragma once

#include <cstddef>
#include <memory>

namespace autograph {

/// Blocks of at most this size are kept.
inline constexpr size_t kMaxPooledBytes = size_t{1} << 20;
/// A thread keeps at most so much; when more comes together, all of it goes.
inline constexpr size_t kMaxKeptBytes = size_t{16} << 20;

/// `size` bytes, at most kMaxPooledBytes, at a 64-byte boundary, uninitialised; with the owner's counts beside them, so
/// that a block that was kept costs no allocation at all. Null when there is no memory. Any thread may let go of it.
std::shared_ptr<void> allocate_pooled(size_t size);

/// What the calling thread keeps now.
size_t kept_bytes_of_thread();

}  // namespace autograph
