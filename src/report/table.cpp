#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/printable.h"

namespace autograph {
namespace {

// Code points, as good as columns for the names that occur.
size_t display_width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string scaled(double value, double step, std::initializer_list<std::string_view> prefixes, std::string_view unit) {
  auto prefix = prefixes.begin();
  while (std::fabs(value) >= step && prefix + 1 != prefixes.end()) {
    value /= step;
    ++prefix;
  }
  const std::string number = prefix == prefixes.begin() ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
  const std::string suffix = fmt::format("{}{}", *prefix, unit);
  return suffix.empty() ? number : number + " " + suffix;
}

}  // namespace

std::string Table::to_string(bool escapes) const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(display_width(column.title));
  std::vector<std::vector<std::string>> rows = rows_;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = printable(cell);
    for (size_t i = 0; i < std::min(row.size(), widths.size()); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  const auto line = [&](const auto& cell_at) {
    std::string text;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string cell = cell_at(i);
      const std::string padding(widths[i] - std::min(widths[i], display_width(cell)), ' ');
      if (i > 0) text += "  ";
      text += columns_[i].number ? padding + cell : cell + padding;
    }
    return text.substr(0, text.find_last_not_of(' ') + 1);
  };
  const std::string head = line([&](size_t i) { return columns_[i].title; });
  std::string text = escapes ? "\033[1m" + head + "\033[0m\n" : head + "\n";
  for (const auto& row : rows) {
    text += line([&](size_t i) { return i < row.size() ? row[i] : std::string(); }) + "\n";
  }
  return text;
}

std::string pairs_to_string(const std::vector<std::pair<std::string, std::string>>& pairs) {
  size_t width = 0;
  for (const auto& pair : pairs) width = std::max(width, display_width(pair.first));
  std::string text;
  for (const auto& [name, value] : pairs) {
    text += name + std::string(width - display_width(name) + 2, ' ') + printable(value) + "\n";
  }
  return text;
}

std::string human_count(double value, std::string_view unit) {
  return scaled(value, 1000, {"", "K", "M", "G", "T", "P"}, unit);
}

std::string human_bytes(double bytes) { return scaled(bytes, 1024, {"", "Ki", "Mi", "Gi", "Ti"}, "B"); }

std::string human_ms(double ms) {
  return ms >= 1000 ? fmt::format("{:.3g} s", ms / 1000) : fmt::format("{:.3g} ms", ms);
}

}  // namespace autograph
