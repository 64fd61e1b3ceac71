// What is free between blocks in use that do not overlap, by place and by size: every question takes the logarithm of
// the number of gaps. A graph may have tens of thousands of tensors that wait for the same node.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace autograph {

class FreeGaps {
 public:
  /// Where the smallest gap begins that holds `bytes`, the lowest of equal ones; else what is behind all blocks.
  size_t find_best(size_t bytes) const;
  /// Is all of it free? Only below peak().
  bool is_free(size_t begin, size_t end) const;
  /// Begins to use what is free.
  void take(size_t begin, size_t end);
  void give_back(size_t begin, size_t end);
  /// The end of the highest block so far.
  size_t peak() const { return peak_; }

 private:
  void add(size_t begin, size_t end);
  void remove(std::map<size_t, size_t>::const_iterator gap);
  /// The last gap that begins at `begin` or below; end() where there is none.
  std::map<size_t, size_t>::const_iterator gap_at(size_t begin) const;

  std::map<size_t, size_t> gaps_;                // begin and end, all below peak_
  std::set<std::pair<size_t, size_t>> by_size_;  // size and begin
  size_t peak_ = 0;
};

}  // namespace autograph
