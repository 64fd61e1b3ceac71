#include "schedule/memory/free_gaps.h"

#include <iterator>

namespace autograph {

std::map<size_t, size_t>::const_iterator FreeGaps::gap_at(size_t begin) const {
  const auto behind = gaps_.upper_bound(begin);
  return behind == gaps_.begin() ? gaps_.end() : std::prev(behind);
}

void FreeGaps::add(size_t begin, size_t end) {
  if (begin == end) return;
  gaps_.emplace(begin, end);
  by_size_.emplace(end - begin, begin);
}

void FreeGaps::remove(std::map<size_t, size_t>::const_iterator gap) {
  by_size_.erase({gap->second - gap->first, gap->first});
  gaps_.erase(gap);
}

size_t FreeGaps::find_best(size_t bytes) const {
  const auto best = by_size_.lower_bound({bytes, 0});
  if (best != by_size_.end()) return best->second;
  const bool has_gap_on_top = !gaps_.empty() && gaps_.rbegin()->second == peak_;
  return has_gap_on_top ? gaps_.rbegin()->first : peak_;
}

bool FreeGaps::is_free(size_t begin, size_t end) const {
  const auto gap = gap_at(begin);
  return gap != gaps_.end() && end <= gap->second;
}

void FreeGaps::take(size_t begin, size_t end) {
  if (end > peak_) give_back(std::exchange(peak_, end), end);
  const auto gap = gap_at(begin);
  const auto [gap_begin, gap_end] = *gap;
  remove(gap);
  add(gap_begin, begin);
  add(end, gap_end);
}

void FreeGaps::give_back(size_t begin, size_t end) {
  const auto behind = gaps_.find(end);
  if (behind != gaps_.end()) {
    end = behind->second;
    remove(behind);
  }
  const auto before = gap_at(begin);
  if (before != gaps_.end() && before->second == begin) {
    begin = before->first;
    remove(before);
  }
  add(begin, end);
}

}  // namespace autograph
