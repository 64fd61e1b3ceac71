// Where intermediate tensors lie in one arena: offsets such that no two tensors that are alive at once overlap.
//
// With one stream the steps have a total order and a lifetime is an interval of steps. With several streams "ends
// before the other begins" is a partial order: the other forms of plan_memory take any such relation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace autograph {

/// A tensor and the steps during which its bytes matter, both inclusive.
struct Lifetime {
  size_t bytes = 0;
  uint32_t first_step = 0;  ///< The step that writes it.
  uint32_t last_step = 0;   ///< The last step that reads it; >= first_step.
};

/// The answer: offsets and sizes are multiples of kMemoryAlignment. Tensors of 0 bytes get offset 0 and take no room.
struct MemoryPlan {
  std::vector<size_t> offsets;   ///< Parallel to the tensors asked for.
  size_t peak_bytes = 0;         ///< Size of the arena.
  size_t sum_bytes = 0;          ///< What the tensors would take side by side, rounded up to the alignment.
  size_t lower_bound_bytes = 0;  ///< No plan can be smaller; for a partial order only the largest single tensor.
};

/// Plans for a total order of steps. Prefers memory that was freed most recently (it is still in cache) as long as that
/// costs no more than 1/16 of the best peak found; O(n log n) plus, for up to 4,096 tensors, one O(n^2) attempt.
MemoryPlan plan_memory(std::span<const Lifetime> tensors);

/// Are tensors `a` and `b` ever alive at the same time? Must be symmetric.
using AliveTogether = std::function<bool(size_t a, size_t b)>;

/// Is tensor `a` gone before any step from `step` on begins, on whatever stream that is?
using IsOver = std::function<bool(size_t a, uint32_t step)>;

/// Plans for a partial order: `tensors` have their steps in one of the orders in which they can run, by which memory
/// freed most recently is preferred as above. O(n^2 log n) without `is_over`; with it n times what is not over for
/// good, with the same result.
MemoryPlan plan_memory(std::span<const Lifetime> tensors, const AliveTogether& alive_together,
                       const IsOver& is_over = nullptr);

/// Plans for any relation of lifetimes: largest tensors first, each at the lowest best-fitting offset. O(n^2).
MemoryPlan plan_memory(std::span<const size_t> bytes, const AliveTogether& alive_together);

}  // namespace autograph
