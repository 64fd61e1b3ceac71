// Comma-separated values, RFC 4180: cells between separators, in double quotes where they hold one, a quote (doubled)
// or a line's end. Lines end in \n or \r\n; empty ones are left out.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "autograph/data.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/printable.h"
#include "base/text/read_number.h"
#include "data/label_column.h"
#include "io/file.h"

namespace autograph {
namespace {

constexpr size_t kMaxShown = 40;  // characters of a cell in a message

// Gives one row of cells after the other.
class CsvReader {
 public:
  CsvReader(std::string path, std::string_view text, char separator)
      : path_(std::move(path)), text_(text), separator_(separator) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte order mark, as spreadsheets write it
  }

  /// False at the end of the file.
  bool next(std::vector<std::string>& cells) {
    while (at_ < text_.size()) {
      row_line_ = line_;
      cells.clear();
      do cells.push_back(cell());
      while (!end_of_row());
      if (cells.size() > 1 || !cells.front().empty()) return true;
    }
    return false;
  }
  /// Where the row began that next() gave, from 1.
  int64_t line() const { return row_line_; }
  [[noreturn]] void fail(int64_t line, const std::string& what) const {
    throw FormatError(fmt::format("[csv] '{}', line {}: {}", printable(path_), line, what));
  }

 private:
  std::string cell() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n') ++at_;
    size_t end = at_;
    if (at_ < text_.size() && text_[at_] == '\n' && end > begin && text_[end - 1] == '\r') --end;
    if (at_ == text_.size() && end > begin && text_[end - 1] == '\r') --end;
    return std::string(text_.substr(begin, end - begin));
  }
  std::string quoted() {
    const int64_t first_line = line_;
    std::string content;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        content += text_[at_];
        continue;
      }
      if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        content += text_[++at_];
        continue;
      }
      ++at_;
      const bool ends = at_ == text_.size() || text_[at_] == separator_ || text_[at_] == '\n' || text_[at_] == '\r';
      if (!ends) fail(line_, "expected a separator or the end of the line behind a closing quote");
      return content;
    }
    fail(first_line, "a quote is not closed");
  }
  bool end_of_row() {
    if (at_ < text_.size() && text_[at_] == separator_) {
      ++at_;
      // A separator at the end of the file: one more, empty cell.
      return false;
    }
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    ++line_;
    return true;
  }

  std::string path_;
  std::string_view text_;
  char separator_;
  size_t at_ = 0;
  int64_t line_ = 1;
  int64_t row_line_ = 1;
};

// An empty cell is NaN.
std::optional<float> number_in(std::string_view cell) {
  const size_t begin = std::min(cell.find_first_not_of(" \t"), cell.size());
  const size_t end = cell.find_last_not_of(" \t") + 1;
  std::string_view text = begin < end ? cell.substr(begin, end - begin) : std::string_view();
  if (text.empty()) return std::numeric_limits<float>::quiet_NaN();
  if (text.front() == '+') text.remove_prefix(1);
  const auto value = read_number<double>(text);
  return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
}

float to_number(const CsvReader& reader, std::string_view cell, const std::string& column) {
  if (const auto number = number_in(cell)) return *number;
  reader.fail(reader.line(), fmt::format("column '{}': expected a number, got '{}'", printable(column),
                                         printable(cell.substr(0, kMaxShown))));
}

// Where a word says nothing about a header, as classes may be words: the label of a table without one. npos: nowhere.
size_t column_of_words(const std::vector<std::string>& first, const CsvOptions& options) {
  if (options.regression) return std::string::npos;
  if (options.label.empty()) return first.size() - 1;
  for (size_t i = 0; i < first.size(); ++i) {
    if (options.label == std::to_string(i)) return i;
  }
  return std::string::npos;
}

// Samples are numbers: a word in the first line names a column, unless it is a class as the next line has one.
bool is_header(const std::vector<std::string>& first, const std::vector<std::string>& second,
               const CsvOptions& options) {
  const size_t words_at = column_of_words(first, options);
  for (size_t i = 0; i < first.size(); ++i) {
    if (number_in(first[i])) continue;
    if (i != words_at || (i < second.size() && number_in(second[i]))) return true;
  }
  return false;
}

// Looked at ahead; nothing at the end of the file. What is wrong with it is said when it is read.
std::vector<std::string> second_row(CsvReader reader) {
  std::vector<std::string> cells;
  try {
    if (!reader.next(cells)) cells.clear();
  } catch (const FormatError&) {
    cells.clear();
  }
  return cells;
}

// Columns of the table and which of them is the label.
struct Columns {
  std::vector<std::string> names;
  size_t label = std::string::npos;  // none

  Columns(std::vector<std::string> header, const CsvOptions& options, const std::string& path)
      : names(std::move(header)) {
    if (options.label == "-") return;
    if (options.label.empty()) {
      label = names.size() - 1;
      return;
    }
    label = static_cast<size_t>(std::find(names.begin(), names.end(), options.label) - names.begin());
    AG_CHECK_USER(label < names.size(), ValueError, "[csv] '{}': no column '{}'{}", printable(path),
                  printable(options.label), did_you_mean(options.label, names));
  }
  size_t num_features() const { return names.size() - (label < names.size() ? 1 : 0); }
};

// The table as it grows; never larger than the limit.
struct Table {
  std::vector<float> features;
  std::vector<float> targets;
  std::vector<std::string> words;
  int64_t rows = 0;
  int64_t bytes = 0;

  void add_row(const CsvReader& reader, const std::vector<std::string>& cells, const Columns& columns,
               const CsvOptions& options) {
    if (cells.size() != columns.names.size()) {
      reader.fail(reader.line(), fmt::format("expected {} cells, got {}", columns.names.size(), cells.size()));
    }
    bytes += static_cast<int64_t>(cells.size() * sizeof(float));
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i != columns.label) {
        features.push_back(to_number(reader, cells[i], columns.names[i]));
      } else if (options.regression) {
        targets.push_back(to_number(reader, cells[i], columns.names[i]));
      } else {
        words.push_back(cells[i]);
        bytes += static_cast<int64_t>(sizeof(std::string) + cells[i].size());
      }
    }
    ++rows;
    if (bytes <= options.limits.max_bytes) return;
    throw BudgetError(fmt::format("[csv] line {}: expected at most {} bytes of memory, got more", reader.line(),
                                  options.limits.max_bytes));
  }
};

DatasetPtr to_dataset(const Table& table, const Columns& columns, const CsvOptions& options) {
  NamedTensors tensors;
  std::vector<std::string> class_names;
  if (columns.num_features() > 0) {
    tensors.emplace_back("x", Tensor::of({table.rows, static_cast<int64_t>(columns.num_features())}, table.features));
  }
  if (columns.label < columns.names.size() && options.regression) {
    tensors.emplace_back("label", Tensor::of({table.rows}, table.targets));
  } else if (columns.label < columns.names.size()) {
    LabelClasses classes = find_classes(table.words);
    tensors.emplace_back("label", Tensor::vector(classes.labels));
    class_names = std::move(classes.names);
  }
  return tensor_dataset(std::move(tensors), std::move(class_names));
}

}  // namespace

DatasetPtr csv_dataset(const std::string& path, const CsvOptions& options) {
  const std::string text = read_text(path, options.limits);
  CsvReader reader(path, text, options.separator);
  std::vector<std::string> cells;
  AG_CHECK_USER(reader.next(cells), FormatError, "[csv] '{}': expected lines, got an empty file", printable(path));
  const bool has_other_separator =
      options.separator == ',' && cells.size() == 1 && cells[0].find(';') != std::string::npos;
  AG_CHECK_USER(!has_other_separator, FormatError,
                "[csv] '{}': expected cells between commas, or tabs in a file .tsv, got ';' between them (numbers have "
                "points, so that commas are free)",
                printable(path));
  std::vector<std::string> header = cells;
  const bool has_header = options.has_header ? *options.has_header : is_header(cells, second_row(reader), options);
  for (size_t i = 0; i < header.size() && !has_header; ++i) header[i] = std::to_string(i);
  const Columns columns(std::move(header), options, path);
  Table table;
  table.bytes = static_cast<int64_t>(text.size());
  if (!has_header) table.add_row(reader, cells, columns, options);
  while (reader.next(cells)) table.add_row(reader, cells, columns, options);
  AG_CHECK_USER(table.rows > 0, FormatError, "[csv] '{}': expected a line of numbers below the header, got none",
                printable(path));
  return to_dataset(table, columns, options);
}

}  // namespace autograph
