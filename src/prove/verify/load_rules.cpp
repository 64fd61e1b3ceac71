// Rules files: read, verified where nobody has, and refused where a rule is wrong.
#include <fstream>
#include <mutex>
#include <sstream>

#include "autograph/error.h"
#include "autograph/prove.h"
#include "base/check.h"
#include "base/parallel_for.h"
#include "prove/verify/verify_rule.h"

namespace autograph {
namespace {

std::string read_whole(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{64} << 20;
  std::ifstream file(path, std::ios::binary);
  AG_CHECK_USER(file.good(), IoError, "[rules] '{}': cannot be read", path);
  std::ostringstream text;
  text << file.rdbuf();
  AG_CHECK_USER(text.str().size() <= kMaxBytes, FormatError, "[rules] '{}': expected up to {} bytes, got {}", path,
                kMaxBytes, text.str().size());
  return text.str();
}

// Verifies those rules of a set that `indices` name; reports are parallel to it.
std::vector<RuleReport> verify_some(RuleSet& rules, const std::vector<size_t>& indices,
                                    const VerifyRulesOptions& options) {
  std::vector<RuleReport> reports(indices.size());
  std::mutex mutex;
  size_t done = 0;
  parallel_for(indices.size(), options.threads, [&](size_t i) {
    const Rule& rule = rules.rule(indices[i]);
    if (options.is_cancelled && options.is_cancelled()) return;
    {
      const std::lock_guard lock(mutex);
      if (options.on_progress) options.on_progress(done, indices.size(), std::string(rule.name));
    }
    reports[i] = verify_rule(rule, options);
    const std::lock_guard lock(mutex);
    ++done;
  });
  for (size_t i = 0; i < indices.size(); ++i) {
    const bool is_done = !reports[i].rule.name.empty();
    rules.set_evidence(indices[i],
                       {reports[i].exact_cases, reports[i].float_cases, is_done && reports[i].is_verified()});
  }
  return reports;
}

}  // namespace

std::vector<RuleReport> verify_rules(RuleSet& rules, const VerifyRulesOptions& options) {
  std::vector<size_t> all(rules.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  std::vector<RuleReport> reports = verify_some(rules, all, options);
  std::erase_if(reports, [](const RuleReport& report) { return report.rule.name.empty(); });
  return reports;
}

std::shared_ptr<const RuleSet> load_rules(const std::string& path, const VerifyRulesOptions& options) {
  std::shared_ptr<RuleSet> rules = parse_rules(read_whole(path), path);
  std::vector<size_t> open;
  for (size_t i = 0; i < rules->size(); ++i) {
    if (!rules->evidence(i).is_sealed) open.push_back(i);
  }
  for (const RuleReport& report : verify_some(*rules, open, options)) {
    AG_CHECK_USER(report.is_verified() && !report.rule.name.empty(), ValueError,
                  "[rules] '{}': rule '{}' is wrong: {} (its line `verified:` is not of the rule as it stands)", path,
                  report.rule.name, report.problem);
  }
  return rules;
}

}  // namespace autograph
