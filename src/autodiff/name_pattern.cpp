#include "autodiff/name_pattern.h"

#include <algorithm>

namespace autograph {
namespace {

// Back to the last * when something does not fit.
bool fits_one(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, after_star = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

bool fits(std::string_view patterns, std::string_view name) {
  if (patterns == "all" || fits_one(patterns, name)) return true;
  for (size_t begin = 0; begin <= patterns.size();) {
    const size_t end = std::min(patterns.find(',', begin), patterns.size());
    if (fits_one(patterns.substr(begin, end - begin), name)) return true;
    begin = end + 1;
  }
  return false;
}

std::string take_name(std::set<std::string>& taken, const std::string& wanted) {
  std::string name = wanted;
  for (int number = 2; !taken.insert(name).second; ++number) name = wanted + "_" + std::to_string(number);
  return name;
}

}  // namespace autograph
