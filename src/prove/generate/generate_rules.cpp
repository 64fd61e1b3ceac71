// Rules from pairs of small graphs that compute the same: pruned, verified, compared with the hand-written ones.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>

#include "autograph/prove.h"
#include "autograph/random.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "prove/generate/enumerate.h"
#include "prove/generate/rewrite_search.h"
#include "prove/verify/verify_rule.h"

namespace autograph {
namespace {

using Clock = std::chrono::steady_clock;

constexpr RewriteLimits kConsequence{.steps = 3, .graphs = 250};
constexpr RewriteLimits kCoverage{.steps = 3, .graphs = 500};
constexpr size_t kMaxPerClass = 12;  // pairs taken from one class of equal graphs

// ---- Small graphs as texts and as graphs ---------------------------------------------------------------------------

// One side of a rule: names of variables by value number, and of outputs.
struct Side {
  const Problem* problem;
  SmallGraph graph;
};

struct Names {
  std::map<int, std::string> variables;               // by value number of a variable
  std::unordered_map<uint64_t, std::string> outputs;  // by fingerprint
};

// "s = add(a, b); y = relu(s)". Variables are named in the order in which they come; both sides share `names`.
std::string text_of(const Side& side, const std::vector<uint64_t>& prints, Names& names) {
  const Problem& problem = *side.problem;
  const std::vector<int> outputs = outputs_of(problem, side.graph);
  std::map<int, std::string> values;
  const auto output_name = [&](int value) -> std::string {
    const auto at = std::find(outputs.begin(), outputs.end(), value);
    return at == outputs.end() ? "" : names.outputs.at(prints[static_cast<size_t>(at - outputs.begin())]);
  };
  const auto name_of = [&](int value) {
    if (value >= static_cast<int>(problem.variables.size())) return values.at(value);
    const auto it =
        names.variables.emplace(value, std::string(1, static_cast<char>('a' + names.variables.size()))).first;
    return it->second;
  };
  if (side.graph.num_steps == 0)
    return fmt::format("{} = {}", output_name(side.graph.alias), name_of(side.graph.alias));
  std::string text;
  int next = static_cast<int>(problem.variables.size());
  for (size_t s = 0; s < side.graph.num_steps; ++s) {
    const SmallStep& step = side.graph.steps[s];
    const GeneratorOp& op = problem.ops[step.op];
    std::vector<std::string> inputs;
    for (int i = 0; i < op.num_inputs; ++i) inputs.push_back(name_of(step.inputs[static_cast<size_t>(i)]));
    if (op.factor != 0) inputs.push_back(fmt::format("{}", op.factor));
    std::vector<std::string> results;
    for (int o = 0; o < op.num_outputs; ++o, ++next) {
      const std::string name = output_name(next);
      values[next] = name.empty() ? fmt::format("t{}", next - static_cast<int>(problem.variables.size())) : name;
      results.push_back(values[next]);
    }
    text += fmt::format("{}{} = {}({})", s == 0 ? "" : "; ", join(results, ", "), op.text, join(inputs, ", "));
  }
  return text;
}

// The graph itself; variables whose bit is set in `constants` are weights, the others inputs.
Graph graph_of(const Side& side, const std::vector<uint64_t>& prints, const std::vector<uint64_t>& order,
               unsigned constants) {
  const Problem& problem = *side.problem;
  Graph graph;
  std::vector<ValueId> values;
  for (size_t i = 0; i < problem.variables.size(); ++i) {
    Random random(i + 1);
    Tensor tensor = Tensor::zeros(DType::f32, problem.dims[i]);
    for (int64_t k = 0; k < tensor.num_elements(); ++k)
      tensor.mutable_data<float>()[k] = static_cast<float>(1 + random() % 9);
    const ValueId input = graph.add_input(tensor.type());
    values.push_back((constants >> i) & 1 ? graph.add_constant(std::move(tensor)) : input);
  }
  for (size_t s = 0; s < side.graph.num_steps; ++s) {
    const SmallStep& step = side.graph.steps[s];
    const GeneratorOp& op = problem.ops[step.op];
    std::vector<ValueId> inputs;
    for (int i = 0; i < op.num_inputs; ++i)
      inputs.push_back(values[static_cast<size_t>(step.inputs[static_cast<size_t>(i)])]);
    if (op.factor != 0) inputs.push_back(graph.add_constant(Tensor::scalar(static_cast<float>(op.factor))));
    NodeOptions options;
    options.num_outputs = op.num_outputs;
    const NodeId node = graph.add_node(*op.op, inputs, op.attributes, options);
    for (const ValueId output : graph.node(node).outputs()) values.push_back(output);
  }
  const std::vector<int> outputs = outputs_of(problem, side.graph);
  for (const uint64_t print : order) {
    const auto at = std::find(prints.begin(), prints.end(), print) - prints.begin();
    graph.add_output(values[static_cast<size_t>(outputs[static_cast<size_t>(at)])]);
  }
  return graph;
}

// ---- Candidates ----------------------------------------------------------------------------------------------------

struct Candidate {
  Side before;
  Side after;
  std::vector<uint64_t> before_prints;
  std::vector<uint64_t> after_prints;
  std::string before_text;
  std::string after_text;
  std::vector<std::string> outputs;
};

// Are variables named in the order in which they come, kind by kind?
bool is_canonical(const Side& side) {
  const Problem& problem = *side.problem;
  std::map<int, int> last;
  for (size_t s = 0; s < side.graph.num_steps; ++s) {
    for (const int8_t input : side.graph.steps[s].inputs) {
      if (input < 0 || input >= static_cast<int>(problem.variables.size())) continue;
      const int kind = problem.kinds[static_cast<size_t>(input)];
      int first = 0;
      while (problem.kinds[static_cast<size_t>(first)] != kind) ++first;
      const int next = last.contains(kind) ? last[kind] + 1 : first;
      if (input > next) return false;
      if (input == next) last[kind] = input;
    }
  }
  return true;
}

std::set<int> variables_of(const Side& side) {
  std::set<int> used;
  if (side.graph.num_steps == 0) used.insert(side.graph.alias);
  for (size_t s = 0; s < side.graph.num_steps; ++s) {
    for (const int8_t input : side.graph.steps[s].inputs) {
      if (input >= 0 && input < static_cast<int>(side.problem->variables.size())) used.insert(input);
    }
  }
  return used;
}

// Is a call on variables alone part of both? Then the rule says no more than the one with a variable in its place.
bool share_a_call(const Side& a, const Side& b) {
  const auto on_variables = [&](const SmallStep& step) {
    return std::all_of(step.inputs.begin(), step.inputs.end(),
                       [&](int8_t i) { return i < static_cast<int8_t>(a.problem->variables.size()); });
  };
  for (size_t s = 0; s < a.graph.num_steps; ++s) {
    if (!on_variables(a.graph.steps[s])) continue;
    for (size_t t = 0; t < b.graph.num_steps; ++t) {
      if (a.graph.steps[s] == b.graph.steps[t]) return true;
    }
  }
  return false;
}

class Generator {
 public:
  explicit Generator(const GenerateRulesOptions& options) : options_(options) {
    deadline_ = Clock::now() + std::chrono::microseconds(static_cast<int64_t>(options.seconds * 1e6));
    hand_written_ = rules_for_search();
    hand_matcher_.emplace(hand_written_);
  }

  GeneratedRules run(const std::vector<Problem>& problems) {
    const auto start = Clock::now();
    for (const Problem& problem : problems) run_problem(problem);
    std::stable_sort(found_.rules.begin(), found_.rules.end(), [](const GeneratedRule& a, const GeneratedRule& b) {
      return std::pair(a.ops_before + a.ops_after, a.report.rule.pattern.size()) <
             std::pair(b.ops_before + b.ops_after, b.report.rule.pattern.size());
    });
    found_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return std::move(found_);
  }

 private:
  bool is_over() const { return Clock::now() > deadline_ || (options_.is_cancelled && options_.is_cancelled()); }

  void progress(const std::string& what, double fraction) const {
    if (options_.on_progress) options_.on_progress(what, fraction);
  }

  void run_problem(const Problem& problem) {
    EnumerationLimits limits;
    limits.max_steps = options_.max_ops;
    limits.max_graphs = options_.max_graphs;
    limits.is_over = [this] { return is_over(); };
    limits.on_progress = [&](size_t graphs) { progress(fmt::format("{}: {} graphs", problem.name, graphs), -1); };
    std::vector<SmallGraph> graphs = enumerate_graphs(problem, limits, options_.seed, found_.complete);
    found_.graphs += graphs.size();
    std::vector<Candidate> candidates = make_candidates(problem, graphs);
    found_.candidates += candidates.size();
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (is_over()) {
        found_.complete = false;
        return;
      }
      progress(problem.name + ": verifying", static_cast<double>(i) / static_cast<double>(candidates.size()));
      consider(candidates[i]);
    }
  }

  // Pairs of equal graphs, each pair once whatever its variables are called, small ones first.
  std::vector<Candidate> make_candidates(const Problem& problem, std::vector<SmallGraph>& graphs) {
    std::stable_sort(graphs.begin(), graphs.end(), [](const SmallGraph& a, const SmallGraph& b) {
      return std::pair(a.fingerprint, a.num_steps) < std::pair(b.fingerprint, b.num_steps);
    });
    std::vector<Candidate> candidates;
    std::set<std::string> keys;
    for (size_t first = 0; first < graphs.size();) {
      size_t end = first + 1;
      while (end < graphs.size() && graphs[end].fingerprint == graphs[first].fingerprint) ++end;
      if (end - first > 1) {
        ++found_.classes;
        for (size_t other = first + 1; other < std::min(end, first + 1 + kMaxPerClass); ++other) {
          const Side before{&problem, graphs[other]};
          const bool canonical = is_canonical(before);
          // The smallest one that the others do not contain, and the next one: forms of equal size are worth knowing.
          for (size_t target = first; target < std::min(other, first + 3); ++target) {
            const Side after{&problem, graphs[target]};
            // Renamed copies of the class give the others.
            if (canonical || is_canonical(after)) add_candidate(candidates, keys, before, after);
          }
        }
      }
      first = end;
      if (first % 1024 == 0 && is_over()) break;
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      const auto size = [](const Candidate& c) {
        // Of equally large rules those with more variables come first: the others are instances of them.
        return std::tuple(c.before.graph.num_steps + c.after.graph.num_steps,
                          -static_cast<int>(variables_of(c.before).size()), c.before_text.size() + c.after_text.size());
      };
      return size(a) < size(b);
    });
    return candidates;
  }

  void add_candidate(std::vector<Candidate>& candidates, std::set<std::string>& keys, const Side& before,
                     const Side& after) {
    const std::set<int> known = variables_of(before);
    const std::set<int> needed = variables_of(after);
    if (!std::includes(known.begin(), known.end(), needed.begin(), needed.end()) || share_a_call(before, after)) return;
    Candidate candidate{before,
                        after,
                        output_fingerprints(*before.problem, before.graph, options_.seed),
                        output_fingerprints(*after.problem, after.graph, options_.seed),
                        "",
                        "",
                        {}};
    std::vector<uint64_t> a = candidate.before_prints;
    std::vector<uint64_t> b = candidate.after_prints;
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    if (a != b || std::adjacent_find(a.begin(), a.end()) != a.end()) return;
    Names names;
    for (const uint64_t print : candidate.before_prints) {
      candidate.outputs.push_back(candidate.before_prints.size() == 1 ? "y"
                                                                      : fmt::format("y{}", candidate.outputs.size()));
      names.outputs[print] = candidate.outputs.back();
    }
    candidate.before_text = text_of(before, candidate.before_prints, names);
    candidate.after_text = text_of(after, candidate.after_prints, names);
    if (keys.insert(candidate.before_text + " => " + candidate.after_text).second) {
      candidates.push_back(std::move(candidate));
    }
  }

  void consider(const Candidate& candidate) {
    const Graph before = graph_of(candidate.before, candidate.before_prints, candidate.before_prints, 0);
    const Graph after = graph_of(candidate.after, candidate.after_prints, candidate.before_prints, 0);
    const uint64_t goal = term_hash(after);
    if (term_hash(before) == goal || (matcher_ && find_rewrites(before, goal, *matcher_, kConsequence))) {
      ++found_.consequences;
      return;
    }
    Rule& rule = make_rule(candidate);
    VerifyRulesOptions verification;
    verification.cases = options_.cases;
    verification.exhaustive_limit = 200;
    verification.seconds = 5;
    verification.smt = false;
    verification.seed = options_.seed;
    GeneratedRule found;
    found.report = verify_rule(rule, verification);
    // What fails on infinities and NaN alone may be true of all finite numbers.
    if (!found.report.is_verified() && found.report.exact_failures == 0 && found.report.float_failures > 0) {
      rule.finite_only = true;
      found.report = verify_rule(rule, verification);
    }
    if (!found.report.is_verified()) {
      ++found_.rejected;
      return;
    }
    found.ops_before = candidate.before.graph.num_steps;
    found.ops_after = candidate.after.graph.num_steps;
    found.outputs = candidate.outputs;
    found.finite_only = rule.finite_only;
    look_for_cover(found, candidate);
    found_.rules.push_back(std::move(found));
    keep(rule, candidate);
  }

  Rule& make_rule(const Candidate& candidate) {
    Rule rule;
    rule.name = keep_text(fmt::format("generated.{:04}", ++made_));
    rule.before = keep_text(candidate.before_text);
    rule.after = keep_text(candidate.after_text);
    for (const std::string& output : candidate.outputs) rule.outputs.push_back(keep_text(output));
    const bool shrinks = candidate.after.graph.num_steps < candidate.before.graph.num_steps;
    rule.kind = shrinks ? RuleClass::shrinks : RuleClass::search_only;
    return rules_.emplace_back(rule);
  }

  std::string_view keep_text(std::string text) { return texts_.emplace_back(std::move(text)); }

  // Later candidates may follow from this rule, read in either direction.
  void keep(const Rule& rule, const Candidate& candidate) {
    kept_.push_back(&rule);
    if (candidate.after.graph.num_steps > 0 && variables_of(candidate.before) == variables_of(candidate.after)) {
      Rule back = rule;
      back.name = keep_text(std::string(rule.name) + "_back");
      std::swap(back.before, back.after);
      kept_.push_back(&rules_.emplace_back(back));
    }
    matcher_.emplace(kept_);
  }

  // Hand-written rules may ask for weights: each variable alone stays an input.
  void look_for_cover(GeneratedRule& found, const Candidate& candidate) {
    const auto count = static_cast<unsigned>(candidate.before.problem->variables.size());
    std::vector<unsigned> choices{0};
    for (unsigned input = 0; input < count; ++input) choices.push_back(((1U << count) - 1) & ~(1U << input));
    for (const int variable : variables_of(candidate.before)) choices.push_back(1U << static_cast<unsigned>(variable));
    for (const bool backwards : {false, true}) {
      for (const unsigned constants : choices) {
        Graph from = graph_of(candidate.before, candidate.before_prints, candidate.before_prints, constants);
        Graph to = graph_of(candidate.after, candidate.after_prints, candidate.before_prints, constants);
        if (backwards) std::swap(from, to);
        auto path = find_rewrites(from, term_hash(to), *hand_matcher_, kCoverage);
        if (!path || path->empty()) continue;
        found.is_covered = true;
        for (std::string& name : *path) found.covered_by.push_back(name + (backwards ? " (backwards)" : ""));
        return;
      }
    }
  }

  const GenerateRulesOptions& options_;
  Clock::time_point deadline_;
  GeneratedRules found_;
  std::deque<std::string> texts_;
  std::deque<Rule> rules_;
  size_t made_ = 0;
  std::vector<const Rule*> kept_;
  std::optional<RuleMatcher> matcher_;
  std::vector<const Rule*> hand_written_;
  std::optional<RuleMatcher> hand_matcher_;
};

}  // namespace

std::vector<std::string> generator_ops() {
  std::set<std::string> names;
  for (const Problem& problem : make_problems({})) {
    for (const GeneratorOp& op : problem.ops) names.emplace(op.family);
  }
  return {names.begin(), names.end()};
}

GeneratedRules generate_rules(const GenerateRulesOptions& options) {
  AG_CHECK_USER(options.max_ops >= 1 && options.max_ops <= static_cast<int>(kMaxSteps), ValueError,
                "[rules] max_ops: expected 1 to {}, got {}", kMaxSteps, options.max_ops);
  const std::vector<std::string> known = generator_ops();
  for (const std::string& name : options.ops) {
    AG_CHECK_USER(std::find(known.begin(), known.end(), name) != known.end(), ValueError,
                  "[rules] ops: expected one of {}, got '{}'{}", join(known, " "), name, did_you_mean(name, known));
  }
  return Generator(options).run(make_problems(options.ops));
}

std::string print_rules(const GeneratedRules& found) {
  RuleSet rules;
  std::vector<std::string> notes;
  for (const GeneratedRule& rule : found.rules) {
    rules.add(rule.report.rule, rule.outputs, rule.finite_only,
              {rule.report.exact_cases, rule.report.float_cases, rule.report.is_verified()});
    notes.push_back(rule.is_covered ? "covered by " + join(rule.covered_by, ", ") : "not covered");
  }
  return print_rules(rules,
                     fmt::format("{} rules out of {} graphs; {} candidates, {} of them consequences of others",
                                 found.rules.size(), found.graphs, found.candidates, found.consequences),
                     notes);
}

}  // namespace autograph
