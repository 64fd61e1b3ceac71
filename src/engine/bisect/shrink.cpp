#include "engine/bisect/shrink.h"

#include <algorithm>
#include <functional>

namespace autograph {

std::vector<NodeId> smallest_failing(std::vector<NodeId> nodes,
                                     const std::function<bool(const std::vector<NodeId>&)>& fails,
                                     const std::function<bool()>& is_over) {
  for (size_t chunk = std::max<size_t>(nodes.size() / 2, 1);; chunk = std::max<size_t>(chunk / 2, 1)) {
    bool removed = false;
    // From the end: what comes last depends on the rest and goes first.
    for (size_t end = nodes.size(); end > 0 && nodes.size() > 1;) {
      if (is_over()) return nodes;
      const size_t begin = end > chunk ? end - chunk : 0;
      std::vector<NodeId> rest(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(begin));
      rest.insert(rest.end(), nodes.begin() + static_cast<std::ptrdiff_t>(end), nodes.end());
      if (!rest.empty() && fails(rest)) {
        nodes = std::move(rest);
        removed = true;
      }
      end = begin;
    }
    if (chunk == 1 && !removed) return nodes;
  }
}

}  // namespace autograph
