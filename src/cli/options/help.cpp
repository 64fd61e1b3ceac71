// --help: examples, usage, arguments and options, then the verbs below.
#include "cli/options/help.h"

#include <fmt/format.h>

#include <algorithm>

namespace autograph::cli {
namespace {

// `text` broken at blanks into lines of `columns` that start with `indent` blanks; "\n" stays.
std::string wrapped(const std::string& text, size_t indent, size_t columns) {
  std::string result;
  size_t column = indent;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    if (column > indent && column + 1 + (end - begin) > columns) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += text.substr(begin, end - begin);
    column += end - begin;
    if (end < text.size() && text[end] == '\n') {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    }
    begin = end + 1;
  }
  return result;
}

std::string left_column(const Option& option) {
  std::string text;
  for (const std::string& spelling : spellings(option)) text += (text.empty() ? "" : ", ") + spelling;
  return option.value_name.empty() ? text : text + " " + option.value_name;
}

std::string section(const std::string& title, const std::vector<std::pair<std::string, std::string>>& rows,
                    size_t columns) {
  if (rows.empty()) return "";
  size_t width = 0;
  for (const auto& row : rows) width = std::max(width, std::min(row.first.size(), columns * 28 / 100));
  std::string text = "\n" + title + ":\n";
  for (const auto& [left, right] : rows) {
    text += "  " + left;
    text += left.size() > width ? "\n" + std::string(width + 4, ' ') : std::string(width - left.size() + 2, ' ');
    text += wrapped(right, width + 4, columns) + "\n";
  }
  return text;
}

std::string option_doc(const Option& option) {
  std::string text = option.doc;
  if (option.required && !option.is_positional()) text += " Required.";
  if (!option.env.empty()) text += " [env: " + option.env + "]";
  return text;
}

}  // namespace

std::string help_text(const std::vector<const Command*>& path, size_t columns) {
  const Command& command = *path.back();
  std::string name;
  for (const Command* level : path) name += (name.empty() ? "" : " ") + level->name;
  std::string text = fmt::format("{} - {}\n", name, command.doc);
  if (!command.examples.empty()) text += "\nExamples:\n";
  for (const Example& example : command.examples) {
    text += "  " + example.command + "\n      " + wrapped(example.doc, 6, columns) + "\n";
  }
  std::string usage = name;
  std::vector<std::pair<std::string, std::string>> arguments;
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<std::pair<std::string, std::string>> common;
  std::vector<std::pair<std::string, std::string>> verbs;
  for (const Option& option : command.options) {
    auto& rows = option.is_positional() ? arguments : option.common ? common : options;
    rows.emplace_back(left_column(option), option_doc(option));
    if (option.is_positional()) usage += option.required ? " " + option.names : " [" + option.names + "]";
    if (!option.is_positional() && option.required) usage += " " + spellings(option)[0] + " " + option.value_name;
  }
  for (const Command& nested : command.commands) verbs.emplace_back(nested.name, nested.doc);
  text += "\nUsage: " + usage + (verbs.empty() ? " [options]\n" : " VERB [options]\n");
  if (!command.details.empty()) text += "\n" + wrapped(command.details, 0, columns) + "\n";
  text += section("Verbs", verbs, columns) + section("Arguments", arguments, columns);
  return text + section("Options", options, columns) + section("Options of every verb", common, columns);
}

}  // namespace autograph::cli
