#include "data/label_column.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/text/read_number.h"
#include "data/pixel_dataset.h"

namespace autograph {
namespace {

constexpr int64_t kMaxClasses = 1 << 16;

std::optional<int64_t> to_class(const std::string& word) {
  const auto value = read_number<int64_t>(word);
  return value && *value >= 0 && *value < kMaxClasses ? value : std::nullopt;
}

}  // namespace

LabelClasses find_classes(const std::vector<std::string>& words) {
  LabelClasses result;
  int64_t count = 0;
  for (const std::string& word : words) {
    const auto value = to_class(word);
    if (!value) break;
    result.labels.push_back(*value);
    count = std::max(count, *value + 1);
  }
  if (result.labels.size() == words.size()) {
    result.names = numbered_classes(count);
    return result;
  }
  std::map<std::string, int64_t> places;
  for (const std::string& word : words) places.emplace(word, 0);
  for (auto& [word, place] : places) {
    place = static_cast<int64_t>(result.names.size());
    result.names.push_back(word);
  }
  result.labels.clear();
  for (const std::string& word : words) result.labels.push_back(places[word]);
  return result;
}

}  // namespace autograph
