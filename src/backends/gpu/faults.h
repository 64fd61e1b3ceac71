// Faults that kernels find in elements (an index out of range): they write them down and go on, and a wait throws what
// the reference would have thrown.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace autograph::gpu {

/// As kernels write it; both are 0 before.
struct Fault {
  int64_t has_happened = 0;
  int64_t number = 0;
};

/// Kernels that may find a fault, between two waits, or in a captured graph.
inline constexpr size_t kMaxFaults = 1024;

/// What faults mean: message k belongs to fault k.
class FaultMessages {
 public:
  bool empty() const { return messages_.empty(); }
  size_t size() const { return messages_.size(); }
  bool is_full() const { return messages_.size() == kMaxFaults; }
  void clear() { messages_.clear(); }
  /// Adds a message, of which the number of the fault is the end, for the step that is being enqueued. Returns its
  /// number.
  size_t add(const std::string& text);
  /// The first fault that has happened, in words; "" where none has. The others may follow from it.
  std::string first(std::span<const Fault> faults) const;

 private:
  struct Message {
    std::string text;
    std::string place;
  };
  std::vector<Message> messages_;
};

}  // namespace autograph::gpu
