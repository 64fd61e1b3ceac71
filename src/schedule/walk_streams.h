// Going through streams that wait for each other, each in its own order.
#pragma once

#include <cstddef>
#include <vector>

namespace autograph {

/// Calls `start(item, stream)` on the first items of `streams`, which returns false while the item has to wait, and
/// goes on with the next item when it returns true. Returns whether all streams came to their end.
template <class Item, class Start>
bool walk_streams(const std::vector<std::vector<Item>>& streams, Start start) {
  std::vector<size_t> next(streams.size(), 0);
  size_t num_left = 0;
  for (const auto& stream : streams) num_left += stream.size();
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t s = 0; s < streams.size(); ++s) {
      for (; next[s] < streams[s].size() && start(streams[s][next[s]], s); ++next[s]) {
        moved = true;
        --num_left;
      }
    }
  }
  return num_left == 0;
}

}  // namespace autograph
