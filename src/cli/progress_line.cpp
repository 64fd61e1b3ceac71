#include "cli/progress_line.h"

#include <fmt/core.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/printable.h"

namespace autograph::cli {
namespace {

constexpr size_t kUsualColumns = 80;
constexpr size_t kShortestBar = 8;
constexpr size_t kLongestBar = 30;

// The first `columns` characters, and how many there are.
std::pair<std::string_view, size_t> cut(std::string_view text, size_t columns) {
  size_t at = 0, count = 0;
  for (; at < text.size() && count < columns; ++count) at += std::max<size_t>(1, utf8_length(text.substr(at)));
  return {text.substr(0, at), count};
}

std::string bar(double fraction, size_t length) {
  const auto done = static_cast<size_t>(std::floor(fraction * static_cast<double>(length)));
  return " [" + std::string(done, '#') + std::string(length - done, '-') + "]";
}

}  // namespace

std::string progress_text(std::string_view what, double fraction) {
  if (fraction < 0) return printable(what);
  return fmt::format("{} {:3.0f} %", printable(what), std::min(fraction, 1.0) * 100);
}

std::string progress_line(std::string_view what, double fraction, size_t columns) {
  // Behind a full line terminals would begin another one.
  const size_t room = std::max<size_t>(columns, 2) - 1;
  const std::string text = progress_text(what, fraction);
  const auto [shown, width] = cut(text, room);
  constexpr size_t kFrame = 3;  // " [" and "]"
  if (fraction < 0 || room < width + kFrame + kShortestBar) return std::string(shown);
  return std::string(shown) + bar(std::min(fraction, 1.0), std::min(kLongestBar, room - width - kFrame));
}

size_t terminal_columns(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return size.ws_col;
}

}  // namespace autograph::cli
