// `autograph rules list|verify|generate`: the rewrite rules of the search, their proofs, and new ones.
#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "autograph/error.h"
#include "autograph/prove.h"
#include "base/check.h"
#include "base/files/output_file.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct VerifyOptions {
  std::vector<std::string> names;
  int64_t cases = 200;
  int64_t seed = 1;
  int64_t threads = 0;
  double smt_seconds = 2;
  bool no_smt = false;
};

struct GenerateOptions {
  std::string output;
  int64_t max_ops = 3;
  std::vector<std::string> ops;
  double seconds = 600;
  int64_t seed = 1;
  int64_t threads = 0;
};

int thread_count(int64_t asked) {
  AG_CHECK_USER(asked >= 0 && asked <= 1024, UserError, "[rules] threads: expected 0 to 1024, got {}", asked);
  return asked > 0 ? static_cast<int>(asked) : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void check_seconds(double seconds, const char* flag) {
  AG_CHECK_USER(seconds >= 0 && seconds <= 86400, UserError, "[rules] {}: expected 0..86400, got {}", flag, seconds);
}

// ---- list ------------------------------------------------------------------------------------------------------

Json::Object rule_members(const RuleInfo& rule) {
  return {{"name", rule.name},
          {"pattern", rule.pattern},
          {"replacement", rule.replacement},
          {"guard", rule.guard},
          {"class", to_string(rule.kind)}};
}

int list(Session& session) {
  Json rules = Json::array();
  Table table({{"rule"}, {"class"}, {"pattern"}, {"replacement"}, {"guard"}});
  const std::vector<RuleInfo> all = list_rules();
  for (const RuleInfo& rule : all) {
    Json::Object members = rule_members(rule);
    members.emplace_back("verified", Json());
    rules.push(Json::object(std::move(members)));
    table.add({rule.name, std::string(to_string(rule.kind)), rule.pattern, rule.replacement, rule.guard});
  }
  session.print({{"rules", std::move(rules)}, {"failed", Json::array()}},
                table.to_string(session.stdout_escapes()) + fmt::format("{} rules\n", all.size()));
  return 0;
}

// ---- verify ----------------------------------------------------------------------------------------------------

Json report_json(const RuleReport& report) {
  Json::Object members = rule_members(report.rule);
  members.emplace_back("verified", Json::object({{"ok", report.is_verified()},
                                                 {"exact_cases", report.exact_cases},
                                                 {"float_cases", report.float_cases},
                                                 {"refused_cases", report.refused_cases},
                                                 {"exhaustive", report.exhaustive},
                                                 {"arithmetic", report.on_integers ? "integers" : "field"},
                                                 {"smt", to_string(report.smt)},
                                                 {"seconds", report.seconds}}));
  return Json::object(std::move(members));
}

Json failure_json(const RuleReport& report) {
  return Json::object({{"name", report.rule.name}, {"why", report.problem}, {"example", report.example}});
}

std::string count(size_t number) { return fmt::format("{}", number); }

void add_row(Table& table, const RuleReport& report) {
  table.add({report.rule.name, report.is_verified() ? "yes" : "NO", count(report.exact_cases),
             count(report.float_cases), count(report.refused_cases), report.exhaustive ? "all" : "sample",
             std::string(to_string(report.smt))});
}

int verify(Session& session, const VerifyOptions& options) {
  AG_CHECK_USER(options.cases >= 1, UserError, "[rules] cases: expected 1 or more, got {}", options.cases);
  check_seconds(options.smt_seconds, "smt-seconds");
  VerifyRulesOptions request;
  request.names = options.names;
  request.cases = static_cast<size_t>(options.cases);
  request.smt = !options.no_smt;
  request.smt_seconds = options.smt_seconds;
  request.seed = static_cast<uint64_t>(options.seed);
  request.threads = thread_count(options.threads);
  request.on_progress = [&](size_t done, size_t all, const std::string& rule) {
    session.progress("verifying " + rule, static_cast<double>(done) / static_cast<double>(all));
  };
  const std::vector<RuleReport> reports = verify_rules(request);
  session.end_progress();
  Json rules = Json::array();
  Json failed = Json::array();
  Table table({{"rule"}, {"verified"}, {"exact", true}, {"floats", true}, {"refused", true}, {"cases"}, {"proof"}});
  std::string failures;
  size_t num_failed = 0;
  for (const RuleReport& report : reports) {
    rules.push(report_json(report));
    add_row(table, report);
    if (report.is_verified()) continue;
    ++num_failed;
    failed.push(failure_json(report));
    failures += fmt::format("\n{}: {}\n{}", report.rule.name, report.problem, report.example);
  }
  session.print({{"rules", std::move(rules)}, {"failed", std::move(failed)}},
                table.to_string(session.stdout_escapes()) +
                    fmt::format("{} of {} rules verified\n", reports.size() - num_failed, reports.size()) + failures);
  return num_failed == 0 ? 0 : static_cast<int>(ExitCode::mismatch);
}

// ---- generate --------------------------------------------------------------------------------------------------

Json generated_json(const GeneratedRule& rule) {
  Json json = report_json(rule.report);
  json.add("ops_before", rule.ops_before);
  json.add("ops_after", rule.ops_after);
  json.add("covered", rule.is_covered);
  json.add("covered_by", rule.covered_by);
  return json;
}

std::string summary_of(const GeneratedRules& found) {
  const auto covered =
      std::count_if(found.rules.begin(), found.rules.end(), [](const auto& r) { return r.is_covered; });
  return fmt::format(
      "{} graphs, {} classes, {} candidates: {} follow from others, {} are wrong at other sizes, {} rules\n"
      "{} of them are covered by hand-written rules, {} are not\n{}",
      found.graphs, found.classes, found.candidates, found.consequences, found.rejected, found.rules.size(), covered,
      static_cast<std::ptrdiff_t>(found.rules.size()) - covered,
      found.complete ? "" : "a limit was met: there are more graphs\n");
}

int generate(Session& session, const GenerateOptions& options) {
  AG_CHECK_USER(options.max_ops >= 1 && options.max_ops <= 4, UserError, "[rules] max-ops: expected 1 to 4, got {}",
                options.max_ops);
  check_seconds(options.seconds, "seconds");
  if (!options.output.empty()) require_writable(options.output);
  GenerateRulesOptions request;
  request.max_ops = static_cast<int>(options.max_ops);
  request.ops = options.ops;
  request.seconds = options.seconds;
  request.seed = static_cast<uint64_t>(options.seed);
  request.threads = thread_count(options.threads);
  request.on_progress = [&](const std::string& what, double fraction) { session.progress(what, fraction); };
  const GeneratedRules found = generate_rules(request);
  session.end_progress();
  if (!options.output.empty()) write_file(options.output, print_rules(found));
  Json rules = Json::array();
  Table table({{"pattern"}, {"replacement"}, {"exact", true}, {"covered by"}});
  for (const GeneratedRule& rule : found.rules) {
    rules.push(generated_json(rule));
    std::string by;
    for (const std::string& name : rule.covered_by) by += (by.empty() ? "" : ", ") + name;
    table.add({rule.report.rule.pattern, rule.report.rule.replacement, count(rule.report.exact_cases),
               rule.is_covered ? by : "NEW"});
  }
  session.print({{"rules", std::move(rules)},
                 {"failed", Json::array()},
                 {"graphs", found.graphs},
                 {"classes", found.classes},
                 {"candidates", found.candidates},
                 {"consequences", found.consequences},
                 {"rejected", found.rejected},
                 {"complete", found.complete},
                 {"seconds", found.seconds}},
                table.to_string(session.stdout_escapes()) + summary_of(found));
  return 0;
}

// ---- The table -------------------------------------------------------------------------------------------------

Command list_command() {
  return {
      .name = "list",
      .doc = "the rules with their guards",
      .examples = {{"autograph rules list", "All of them."}},
      .run = [](Session& session) { return list(session); },
  };
}

Command verify_command() {
  auto options = std::make_shared<VerifyOptions>();
  return {
      .name = "verify",
      .doc = "test and prove rules; exit code 6 when one is wrong",
      .details =
          "Each rule is tried on small graphs with all or many combinations of shapes and attributes; before and "
          "after are compared exactly, modulo a prime, and in floats. What follows from laws of the ops is "
          "proved by Z3, where this build has it.",
      .examples = {{"autograph rules verify", "All rules."},
                   {"autograph rules verify matmul.regroup_right --cases 5000", "One rule, thoroughly."}},
      .options =
          {{.names = "NAME", .doc = "Rules to verify; all when none is given.", .target = &options->names},
           {.names = "--cases",
            .value_name = "N",
            .doc = "Cases to which a rule applies, where they are drawn; 200 when not given.",
            .target = &options->cases},
           {.names = "--seed", .value_name = "N", .doc = "Of the cases; 1 when not given.", .target = &options->seed},
           {.names = "--threads",
            .value_name = "N",
            .doc = "Rules verified at a time; 0, the default, for as many as there are processors.",
            .target = &options->threads},
           {.names = "--smt-seconds",
            .value_name = "T",
            .doc = "Time of the theorem prover for each rule; 2 when not given.",
            .target = &options->smt_seconds},
           {.names = "--no-smt", .doc = "Do not ask the theorem prover.", .target = &options->no_smt}},
      .run = [options](Session& session) { return verify(session, *options); },
  };
}

Command generate_command() {
  auto options = std::make_shared<GenerateOptions>();
  std::string families;
  for (const std::string& name : generator_ops()) families += (families.empty() ? "" : ", ") + name;
  return {
      .name = "generate",
      .doc = "find rules: small graphs that compute the same",
      .details =
          "Enumerates graphs of a few ops on small tensors, groups those that compute the same modulo a prime, "
          "leaves out what follows from smaller rules, verifies the rest and tells which of it the hand-written "
          "rules cover.",
      .examples = {{"autograph rules generate --max-ops 2", "In some seconds."},
                   {"autograph rules generate --ops matmul --ops add -o found.txt", "Among few ops, into a file."}},
      .options =
          {{.names = "--max-ops",
            .value_name = "N",
            .doc = "Ops on each side, 1 to 4; 3 when not given.",
            .target = &options->max_ops},
           {.names = "--ops",
            .value_name = "NAME",
            .doc = "A family of ops to use, may be repeated; all when not given: " + families + ".",
            .target = &options->ops},
           {.names = "-o,--output",
            .value_name = "FILE",
            .doc = "Write the rules as a file for --rules.",
            .target = &options->output,
            .kind = ValueKind::file},
           {.names = "--seconds",
            .value_name = "T",
            .doc = "Stop enumerating after this time; 600 when not given.",
            .target = &options->seconds},
           {.names = "--seed", .value_name = "N", .doc = "Of the numbers; 1 when not given.", .target = &options->seed},
           {.names = "--threads",
            .value_name = "N",
            .doc = "Rules verified at a time; 0, the default, for as many as there are processors.",
            .target = &options->threads}},
      .run = [options](Session& session) { return generate(session, *options); },
  };
}

}  // namespace

Command rules_command() {
  return {
      .name = "rules",
      .doc = "the rewrite rules of the search: list, verify, generate, prune",
      .examples = {{"autograph rules list", "Patterns, replacements, guards."},
                   {"autograph rules verify", "Are they right?"}},
      .commands = {list_command(), verify_command(), generate_command(), prune_rules_command()},
  };
}

}  // namespace autograph::cli
