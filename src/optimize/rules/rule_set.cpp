// RuleSet: rules that own their texts, and the text form of a file of them.
#include "autograph/rule_set.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <sstream>

#include "autograph/error.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/text/read_number.h"
#include "optimize/rules/pattern/compiled_rule.h"

namespace autograph {
namespace {

// Of rules that searches may take from a file.
constexpr RuleClass kClasses[] = {RuleClass::shrinks, RuleClass::canonicalizes, RuleClass::search_only};

// What verification tests: a seal of a lesser one does not count.
constexpr std::string_view kSealVersion = "autograph rules 1";

RuleClass class_named(const std::string& name) {
  for (const RuleClass kind : kClasses) {
    if (to_string(kind) == name) return kind;
  }
  throw FormatError(fmt::format("class: expected shrinks, canonicalizes or search_only, got '{}'", name));
}

std::string seal_of(const Rule& rule, const RuleEvidence& evidence) {
  Hasher hasher;
  hasher.add(kSealVersion).add(rule.name).add(rule.before).add(rule.after).add(to_string(rule.kind));
  for (const std::string_view output : rule.outputs) hasher.add(output);
  hasher.add(int64_t{rule.finite_only}).add(static_cast<int64_t>(evidence.exact_cases));
  hasher.add(static_cast<int64_t>(evidence.float_cases));
  return to_string(hasher.finish());
}

std::string trimmed(const std::string& text) {
  constexpr const char* kBlanks = " \t\r";
  const size_t begin = text.find_first_not_of(kBlanks);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

size_t count_of(const std::string& word) {
  const auto count = read_number<size_t>(word);
  AG_CHECK_USER(count, FormatError, "verified: expected a number of cases, got '{}'", word);
  return *count;
}

}  // namespace

struct RuleSet::Impl {
  std::deque<std::string> texts;  // stay where they are: rules refer to them
  std::deque<Rule> rules;
  std::vector<RuleEvidence> evidence;

  std::string_view keep(const std::string& text) { return texts.emplace_back(text); }
};

RuleSet::RuleSet() : impl_(std::make_unique<Impl>()) {}
RuleSet::~RuleSet() = default;

void RuleSet::add(const RuleInfo& info, const std::vector<std::string>& outputs, bool finite_only,
                  const RuleEvidence& evidence) {
  AG_CHECK_USER(!info.name.empty() && !info.pattern.empty() && !info.replacement.empty(), FormatError,
                "rule '{}': expected a name, `before:` and `after:`", info.name);
  const auto has_name = [&](const Rule& rule) { return rule.name == info.name; };
  const std::span<const Rule> built_in = all_rules();
  AG_CHECK_USER(std::none_of(impl_->rules.begin(), impl_->rules.end(), has_name) &&
                    std::none_of(built_in.begin(), built_in.end(), has_name),
                ValueError, "[rules] name: expected one that no other rule has, got '{}'", info.name);
  AG_CHECK_USER(std::find(std::begin(kClasses), std::end(kClasses), info.kind) != std::end(kClasses), ValueError,
                "[rules] rule '{}': expected class shrinks, canonicalizes or search_only, got {}", info.name,
                to_string(info.kind));
  Rule rule;
  rule.name = impl_->keep(info.name);
  rule.before = impl_->keep(info.pattern);
  rule.after = impl_->keep(info.replacement);
  rule.kind = info.kind;
  rule.finite_only = finite_only;
  for (const std::string& output : outputs) rule.outputs.push_back(impl_->keep(output));
  try {
    const CompiledRule compiled(rule);
    for (const PatternStatement& statement : compiled.before.statements) {
      AG_CHECK_USER(!statement.formula, FormatError, "rule '{}': formulas are for built-in rules", info.name);
    }
  } catch (const InternalError& error) {
    // The texts of built-in rules are checked by us, those of a file are not.
    throw FormatError(fmt::format("rule '{}': {}", info.name, error.what()));
  }
  impl_->rules.push_back(std::move(rule));
  impl_->evidence.push_back(evidence);
}

size_t RuleSet::size() const { return impl_->rules.size(); }

std::vector<RuleInfo> RuleSet::list() const {
  std::vector<RuleInfo> list;
  for (const Rule& rule : impl_->rules) list.push_back(describe(rule));
  return list;
}

const RuleEvidence& RuleSet::evidence(size_t index) const { return impl_->evidence[index]; }

void RuleSet::set_evidence(size_t index, const RuleEvidence& evidence) { impl_->evidence[index] = evidence; }

const Rule& RuleSet::rule(size_t index) const { return impl_->rules[index]; }

std::shared_ptr<RuleSet> RuleSet::only(const std::vector<std::string>& names) const {
  auto chosen = std::make_shared<RuleSet>();
  for (size_t i = 0; i < size(); ++i) {
    const Rule& rule = impl_->rules[i];
    if (std::find(names.begin(), names.end(), rule.name) == names.end()) continue;
    chosen->add(describe(rule), {rule.outputs.begin(), rule.outputs.end()}, rule.finite_only, impl_->evidence[i]);
  }
  return chosen;
}

namespace {

// The lines of one rule: what stands behind each key.
class Entry {
 public:
  explicit Entry(std::string name) : name_(std::move(name)) {}

  void set(const std::string& line) {
    static constexpr std::string_view kKeys[] = {"before", "after", "outputs", "class", "finite_only", "verified"};
    const size_t colon = line.find(':');
    const std::string key = trimmed(line.substr(0, colon));
    AG_CHECK_USER(colon != std::string::npos && std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys),
                  FormatError, "expected before:, after:, outputs:, class:, finite_only: or verified:, got '{}'", line);
    AG_CHECK_USER(values_.emplace(key, trimmed(line.substr(colon + 1))).second, FormatError,
                  "{}: expected once in a rule, got it twice", key);
  }

  void add_to(RuleSet& rules) const {
    const std::string finite_only = get("finite_only", "false");
    AG_CHECK_USER(finite_only == "true" || finite_only == "false", FormatError,
                  "finite_only: expected true or false, got '{}'", finite_only);
    RuleEvidence evidence;
    const std::vector<std::string> verified = words_of(get("verified", ""));
    if (!verified.empty()) {
      AG_CHECK_USER(verified.size() == 5 && verified[1] == "exact" && verified[3] == "float", FormatError,
                    "verified: expected 'N exact N float HASH', got '{}'", get("verified", ""));
      evidence = {count_of(verified[0]), count_of(verified[2]), false};
    }
    rules.add({name_, get("before", ""), get("after", ""), "", class_named(get("class", "search_only"))},
              words_of(get("outputs", "")), finite_only == "true", evidence);
    const size_t last = rules.size() - 1;
    evidence.is_sealed = !verified.empty() && verified[4] == seal_of(rules.rule(last), evidence);
    rules.set_evidence(last, evidence);
  }

 private:
  std::string get(const std::string& key, const std::string& otherwise) const {
    const auto found = values_.find(key);
    return found == values_.end() ? otherwise : found->second;
  }

  std::string name_;
  std::map<std::string, std::string> values_;
};

}  // namespace

std::shared_ptr<RuleSet> parse_rules(const std::string& text, const std::string& where) {
  auto rules = std::make_shared<RuleSet>();
  std::optional<Entry> entry;
  std::istringstream stream(text);
  size_t number = 0;
  try {
    for (std::string line; std::getline(stream, line);) {
      ++number;
      line = trimmed(line);
      if (line.empty() || line[0] == '#') continue;
      if (line.starts_with("rule ")) {
        if (entry) entry->add_to(*rules);
        entry.emplace(trimmed(line.substr(5)));
        continue;
      }
      AG_CHECK_USER(entry.has_value(), FormatError, "expected 'rule NAME' first, got '{}'", line);
      entry->set(line);
    }
    if (entry) entry->add_to(*rules);
  } catch (const UserError& error) {
    throw FormatError(fmt::format("[rules] '{}' line {}: {}", where, number, error.what()));
  }
  return rules;
}

std::string print_rules(const RuleSet& rules, const std::string& comment, const std::vector<std::string>& notes) {
  std::string text;
  std::istringstream lines(comment);
  for (std::string line; std::getline(lines, line);) text += "# " + line + "\n";
  for (size_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules.rule(i);
    const RuleEvidence& evidence = rules.evidence(i);
    text += i < notes.size() ? "\n# " + notes[i] : "";
    text += fmt::format("\nrule {}\nbefore: {}\nafter: {}\n", rule.name, rule.before, rule.after);
    std::string outputs;
    for (const std::string_view output : rule.outputs) outputs += fmt::format(" {}", output);
    if (!outputs.empty()) text += "outputs:" + outputs + "\n";
    text += fmt::format("class: {}\n", to_string(rule.kind));
    if (rule.finite_only) text += "finite_only: true\n";
    if (evidence.is_sealed) {
      text += fmt::format("verified: {} exact {} float {}\n", evidence.exact_cases, evidence.float_cases,
                          seal_of(rule, evidence));
    }
  }
  return text;
}

}  // namespace autograph
