// Maximum matching of bipartite graphs (Hopcroft and Karp, 1973).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace autograph {

/// No partner.
inline constexpr uint32_t kUnmatched = std::numeric_limits<uint32_t>::max();

/// The partner of each left vertex, or kUnmatched, with as many pairs as possible. `edges[l]` are the right vertices
/// that l may be paired with, each below `num_right`. The same for the same input. O(edges * sqrt(vertices)).
std::vector<uint32_t> maximum_matching(const std::vector<std::vector<uint32_t>>& edges, size_t num_right);

}  // namespace autograph
