#include "schedule/reachability.h"

#include <algorithm>
#include <bit>

namespace autograph {

Reachability::Reachability(const TaskGraph& graph)
    : size_(graph.size()), words_((graph.size() + 63) / 64), bits_(size_ * words_, 0) {
  for (auto task = static_cast<TaskIndex>(size_); task-- > 0;) {
    uint64_t* mine = row(task);
    // Readers come in topological order, so a path to a reader through another one is seen before the reader.
    for (const TaskIndex reader : graph.successors[task]) {
      if (reaches(task, reader)) continue;
      minimum_edges_.emplace_back(task, reader);
      const uint64_t* theirs = row(reader);
      for (size_t w = 0; w < words_; ++w) mine[w] |= theirs[w];
      mine[reader / 64] |= uint64_t{1} << (reader % 64);
    }
  }
  std::sort(minimum_edges_.begin(), minimum_edges_.end());
}

std::vector<bool> Reachability::cut_points() const {
  std::vector<size_t> ordered(size_, 0);  // how many tasks each is ordered with
  for (TaskIndex task = 0; task < size_; ++task) {
    for (size_t w = 0; w < words_; ++w) {
      for (uint64_t word = row(task)[w]; word != 0; word &= word - 1) {
        ++ordered[w * 64 + static_cast<size_t>(std::countr_zero(word))];
        ++ordered[task];
      }
    }
  }
  std::vector<bool> cuts(size_);
  for (size_t task = 0; task < size_; ++task) cuts[task] = ordered[task] + 1 == size_;
  return cuts;
}

}  // namespace autograph
