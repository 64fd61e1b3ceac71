#include "base/did_you_mean.h"

#include <algorithm>
#include <set>

#include "base/printable.h"
#include "base/text/lower_case.h"

namespace autograph {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({replace, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

std::string nearest_name(std::string_view typed, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, typed.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    // Another case is one edit, however many letters it changes.
    const size_t in_one_case = edit_distance(lower_case(typed), lower_case(candidate)) + 1;
    const size_t distance = std::min(edit_distance(typed, candidate), in_one_case);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view typed, const std::vector<std::string>& candidates) {
  const std::string name = nearest_name(typed, candidates);
  return name.empty() ? "" : " (did you mean '" + printable(name) + "'?)";
}

std::string nearest_or_all(std::string_view typed, const std::vector<std::string>& candidates) {
  constexpr size_t kMostListed = 8;
  std::string hint = did_you_mean(typed, candidates);
  const std::set<std::string> names(candidates.begin(), candidates.end());
  if (!hint.empty() || names.size() > kMostListed) return hint;
  for (const std::string& name : names) hint += (hint.empty() ? "" : ", ") + printable(name);
  return hint.empty() ? "" : " (there are: " + hint + ")";
}

}  // namespace autograph
