#include "ops/linear/einsum_equation.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/check.h"

namespace autograph {
namespace {

constexpr EinsumLabel kEllipsis = 256;  // above every letter; plus the distance from the right

std::string parse_term(std::string_view text, std::string_view equation) {
  std::string term;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 3) == "...") {
      AG_CHECK_USER(term.find('.') == std::string::npos, ValueError,
                    "[einsum] equation: expected at most one ellipsis in '{}', got '{}'", text, equation);
      term += '.';
      i += 2;
      continue;
    }
    AG_CHECK_USER(std::isalpha(static_cast<unsigned char>(text[i])), ValueError,
                  "[einsum] equation: expected letters, '...', ',' and '->', got '{}'", equation);
    term += text[i];
  }
  return term;
}

std::string implicit_output(const std::vector<std::string>& inputs) {
  std::map<char, int> counts;  // '.' sorts before the letters
  for (const std::string& term : inputs) {
    for (const char label : term) ++counts[label];
  }
  std::string output;
  for (const auto& [label, count] : counts) {
    if (count == 1 || label == '.') output += label;
  }
  return output;
}

void check_output(const EinsumEquation& equation, std::string_view text) {
  for (const char label : equation.output) {
    AG_CHECK_USER(std::count(equation.output.begin(), equation.output.end(), label) == 1, ValueError,
                  "[einsum] equation: label '{}' occurs twice in the output of '{}'", label, text);
    const bool known = std::any_of(equation.inputs.begin(), equation.inputs.end(),
                                   [&](const std::string& term) { return term.find(label) != std::string::npos; });
    AG_CHECK_USER(known || label == '.', ValueError, "[einsum] equation: output label '{}' of '{}' occurs in no input",
                  label, text);
  }
}

}  // namespace

EinsumEquation parse_einsum(std::string_view given) {
  std::string text;
  for (const char c : given) {
    if (!std::isspace(static_cast<unsigned char>(c))) text += c;
  }
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  EinsumEquation equation;
  for (size_t begin = 0; begin <= left.size();) {
    const size_t end = std::min(left.find(',', begin), left.size());
    equation.inputs.push_back(parse_term(std::string_view(left).substr(begin, end - begin), given));
    begin = end + 1;
  }
  equation.output = arrow == std::string::npos ? implicit_output(equation.inputs)
                                               : parse_term(std::string_view(text).substr(arrow + 2), given);
  check_output(equation, given);
  return equation;
}

std::vector<EinsumLabel> expand_labels(const std::string& term, int64_t rank) {
  const bool has_ellipsis = term.find('.') != std::string::npos;
  const int64_t letters = static_cast<int64_t>(term.size()) - (has_ellipsis ? 1 : 0);
  AG_CHECK_USER(has_ellipsis ? rank >= letters : rank == letters, ShapeError,
                "[einsum] rank: expected {}{} for term '{}', got {}", letters, has_ellipsis ? " or more" : "", term,
                rank);
  std::vector<EinsumLabel> labels;
  for (const char c : term) {
    if (c != '.') {
      labels.push_back(c);
      continue;
    }
    for (int64_t back = rank - letters; back > 0; --back) labels.push_back(kEllipsis + static_cast<int>(back));
  }
  return labels;
}

std::vector<EinsumLabel> expand_output(const std::string& term, int64_t ellipsis_rank) {
  const bool has_ellipsis = term.find('.') != std::string::npos;
  const auto letters = static_cast<int64_t>(term.size()) - (has_ellipsis ? 1 : 0);
  return expand_labels(term, letters + (has_ellipsis ? ellipsis_rank : 0));
}

}  // namespace autograph
