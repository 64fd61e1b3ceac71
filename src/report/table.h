// Plain-text tables for people, and the way numbers look in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace autograph {

/// A column of a table.
struct Column {
  std::string title;    ///< Heading.
  bool number = false;  ///< Aligned at the right.
};

/// Rows under headings, every column as wide as its widest cell. Control characters in cells (a file may name its
/// tensors as it likes) are replaced, so that a table never moves the cursor.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// Adds a row; missing cells are empty.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  /// The text; headings in bold when `escapes`.
  std::string to_string(bool escapes) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// "name   value" lines, the values aligned.
std::string pairs_to_string(const std::vector<std::pair<std::string, std::string>>& pairs);

/// 12345678 -> "12.3 M", with unit: "12.3 MFLOP". Powers of 1000.
std::string human_count(double value, std::string_view unit = "");
/// 1536 -> "1.5 KiB".
std::string human_bytes(double bytes);
/// Milliseconds with three significant digits: "0.0123 ms", "12.3 ms", "1.23 s".
std::string human_ms(double ms);

}  // namespace autograph
