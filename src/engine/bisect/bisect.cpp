// A trial makes a graph of a part of the model in one way, runs it and compares with what the reference gave for the
// values of the whole. So one run of the reference serves all trials, and parts are fed with what they get inside the
// model, not with random numbers.
#include "autograph/bisect.h"

#include <algorithm>
#include <functional>
#include <map>

#include "autograph/op_def.h"
#include "base/check.h"
#include "base/join.h"
#include "engine/bisect/bisector.h"
#include "engine/bisect/shrink.h"
#include "engine/executable.h"
#include "graph/nested/extract_subgraph.h"
#include "optimize/rules/rule.h"
#include "optimize/search/backtracking.h"

namespace autograph {
namespace {

CompileOptions as_it_is(CompileOptions options) {
  options.expert.schedule = nullptr;
  options.expert.use_passes = false;
  options.release_weights = false;
  options.on_tune = nullptr;
  return options;
}

CompileOptions on_reference(CompileOptions options) {
  options.device = "reference";
  options.tune = false;
  return options;
}

// Every value of `graph` by its id, computed by the reference.
std::map<ValueId, Datum> reference_values(const Graph& graph, const CompileOptions& options,
                                          const std::vector<Datum>& inputs) {
  Graph all = graph;
  std::vector<ValueId> values = graph.outputs();
  for (const NodeId id : graph.topological_order()) {
    for (const ValueId v : graph.node(id).outputs()) {
      if (graph.num_output_uses(v) > 0 || graph.value(v).uses().empty()) continue;
      all.add_output(v, fmt::format("value {}", v.index));
      values.push_back(v);
    }
  }
  const std::vector<Datum> outputs = compile(std::move(all), on_reference(as_it_is(options))).run(inputs);
  std::map<ValueId, Datum> known;
  for (size_t i = 0; i < values.size(); ++i) known[values[i]] = outputs[i];
  for (size_t i = 0; i < inputs.size(); ++i) known[graph.inputs()[i]] = inputs[i];
  return known;
}

// The graph between the halves of the passes with the first `count` rewrites of a search, found again by their rules
// and the names of the nodes: ids in parts of the search mean nothing here. What is not there (any more) is left out.
Graph rewritten(Graph graph, const std::vector<AppliedRule>& rewrites, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const Rule* rule = &get_rule(rewrites[i].rule);
    const RuleMatcher matcher({&rule, 1});
    for (const RuleMatch& match : matcher.find_all(graph)) {
      if (describe_match(graph, match) == rewrites[i].where && apply_rule(graph, match)) break;
    }
  }
  return graph;
}

// A way from a graph to something that runs.
using Way = std::function<Executable(const Graph&)>;

class Bisector {
 public:
  Bisector(const Graph& graph, const CompileOptions& options, const std::vector<Datum>& inputs,
           const BisectOptions& how, std::span<const PassDef> passes)
      : graph_(graph),
        options_(as_it_is(options)),
        use_passes_(options.expert.use_passes),
        how_(how),
        passes_(passes.empty() ? all_passes() : passes),
        device_(get_device(options.device)) {
    progress("the reference");
    known_ = reference_values(graph, options, inputs);
  }

  BisectReport run() {
    const std::vector<NodeId> all = graph_.topological_order();
    if (!compare(all, after_passes(passes_.size())).ok) {
      blame_pass(all);
    } else if (how_.search.strategy != Strategy::sequential) {
      blame_search(all);
    }
    return std::move(report_);
  }

 private:
  void progress(std::string_view what) {
    if (how_.on_progress) how_.on_progress(what, report_.trials);
  }

  bool is_over() const { return report_.trials >= how_.max_trials || (how_.is_cancelled && how_.is_cancelled()); }

  // ---- Ways ----------------------------------------------------------------------------------------------------

  Graph passed(const Graph& part, size_t max_passes) const {
    Graph graph = part;
    PassContext context = pass_context(device_);
    PipelineOptions pipeline;
    pipeline.use_passes = use_passes_;
    pipeline.disabled = options_.expert.disabled_passes;
    pipeline.passes = passes_;
    pipeline.max_passes = max_passes;
    run_passes(graph, context, pipeline);
    return graph;
  }

  // The first so many passes, then the device.
  Way after_passes(size_t max_passes) {
    return [this, max_passes](const Graph& part) { return compile(passed(part, max_passes), options_); };
  }

  // The first so many passes, then the reference: is the graph itself wrong?
  Way reference_after_passes(size_t max_passes) {
    return [this, max_passes](const Graph& part) { return compile(passed(part, max_passes), on_reference(options_)); };
  }

  // A search that may use `rules` alone (empty: all that are not disabled).
  Way searched(std::vector<std::string> rules, bool use_rules, bool on_streams) {
    return [=, this](const Graph& part) {
      SearchOptions search = how_.search;
      search.verify = false;
      search.never_slower = false;
      search.use_rules = use_rules;
      if (!rules.empty()) {
        for (const Rule* rule : rules_for_search()) {
          if (std::find(rules.begin(), rules.end(), rule->name) == rules.end()) {
            search.disabled_rules.emplace_back(rule->name);
          }
        }
      }
      CompileOptions options = options_;
      options.expert.use_passes = use_passes_;
      Optimized found = optimize(part, options, search);
      if (!on_streams) found.schedule = {};
      last_rules_ = found.report.rules_applied;
      return compile(found, options_);
    };
  }

  // The first so many rewrites of a search, without a kernel of the device: is a rewrite wrong?
  Way reference_after_rewrites(std::vector<AppliedRule> rewrites, size_t count) {
    return [=, this](const Graph& part) {
      CompileOptions options = options_;
      options.expert.use_passes = use_passes_;
      Graph graph = rewritten(prepare_graph(part, device_, options, PassHalf::simplify), rewrites, count);
      return compile(std::move(graph), on_reference(options_));
    };
  }

  // ---- Trials --------------------------------------------------------------------------------------------------

  Difference compare(const std::vector<NodeId>& nodes, const Way& way) {
    ++report_.trials;
    const Subgraph part = extract_subgraph(graph_, nodes);
    std::vector<Datum> inputs;
    std::vector<Datum> expected;
    for (const ValueId v : part.inputs) inputs.push_back(known_.at(v));
    for (const ValueId v : part.outputs) expected.push_back(known_.at(v));
    Difference difference = compare_all(way(part.graph).run(inputs), expected, how_.tolerance);
    if (!difference.ok && report_.difference.ok) report_.difference = difference;
    return difference;
  }

  bool fails(const std::vector<NodeId>& nodes, const Way& way) {
    try {
      return !compare(nodes, way).ok;
    } catch (const UserError&) {
      return false;  // a part that cannot be compiled by itself shows nothing
    }
  }

  void blame(Culprit culprit, std::string name, const std::vector<NodeId>& all,
             const std::function<bool(const std::vector<NodeId>&)>& still_fails) {
    report_.culprit = culprit;
    report_.name = std::move(name);
    std::vector<NodeId> smallest = all;
    if (how_.shrink) {
      smallest = smallest_failing(
          all,
          [&](const std::vector<NodeId>& nodes) {
            progress(fmt::format("a part of {} nodes", nodes.size()));
            return still_fails(nodes);
          },
          [&] { return is_over(); });
      report_.is_complete = !is_over();
    }
    const Subgraph part = extract_subgraph(graph_, smallest);
    for (const ValueId v : part.inputs) report_.inputs.push_back(known_.at(v));
    for (const NodeId id : smallest) report_.nodes.push_back(describe(graph_, id));
    report_.smallest = part.graph;
  }

  // ---- Who it was ----------------------------------------------------------------------------------------------

  void blame_pass(const std::vector<NodeId>& all) {
    // Right after `good` passes, wrong after `bad`: the pass between two neighbours is to blame.
    size_t good = 0;
    size_t bad = passes_.size();
    progress("no passes");
    if (fails(all, after_passes(0))) {
      const Way way = after_passes(0);
      blame(Culprit::kernel, "", all, [&](const auto& nodes) { return fails(nodes, way); });
      return name_kernels(0);
    }
    while (bad - good > 1) {
      const size_t middle = good + (bad - good) / 2;
      progress(fmt::format("the first {} passes", middle));
      (fails(all, after_passes(middle)) ? bad : good) = middle;
    }
    const bool is_graph_wrong = fails(all, reference_after_passes(bad));
    const Way with = is_graph_wrong ? reference_after_passes(bad) : after_passes(bad);
    const Way without = is_graph_wrong ? reference_after_passes(good) : after_passes(good);
    report_.position = bad;
    blame(is_graph_wrong ? Culprit::pass : Culprit::kernel, std::string(passes_[bad - 1].name), all,
          [&](const auto& nodes) { return fails(nodes, with) && !fails(nodes, without); });
    if (!is_graph_wrong) name_kernels(bad);
  }

  // The kernels that run what is left.
  void name_kernels(size_t max_passes) {
    std::vector<std::string> kernels;
    for (const KernelChoice& choice : after_passes(max_passes)(report_.smallest).kernel_choices()) {
      if (std::find(kernels.begin(), kernels.end(), choice.kernel) == kernels.end()) kernels.push_back(choice.kernel);
    }
    report_.name = join(kernels, ", ");
  }

  void blame_search(const std::vector<NodeId>& all) {
    progress("a search");
    if (!fails(all, searched({}, true, true))) return;
    const std::vector<AppliedRule> rewrites = last_rules_;
    if (blame_rewrite(all, rewrites)) return;
    std::vector<std::string> rules;
    for (const AppliedRule& applied : rewrites) {
      if (std::find(rules.begin(), rules.end(), applied.rule) == rules.end()) rules.push_back(applied.rule);
    }
    for (const std::string& rule : rules) {
      progress("rule " + rule);
      const Way way = searched({rule}, true, false);
      if (!fails(all, way)) continue;
      return blame(Culprit::rule, rule, all, [&](const auto& nodes) { return fails(nodes, way); });
    }
    // No rule by itself: the streams, or several rules together.
    const bool is_schedule = !fails(all, searched({}, true, false));
    const Way way = searched({}, !is_schedule, is_schedule);
    blame(is_schedule ? Culprit::schedule : Culprit::rule,
          is_schedule ? std::string(to_string(how_.search.strategy)) : join(rules, " + "), all,
          [&](const auto& nodes) { return fails(nodes, way); });
  }

  // Finds the rewrite behind which the graph itself is wrong; false where there is none.
  bool blame_rewrite(const std::vector<NodeId>& all, const std::vector<AppliedRule>& rewrites) {
    progress("all rewrites");
    if (rewrites.empty() || !fails(all, reference_after_rewrites(rewrites, rewrites.size()))) return false;
    size_t good = 0;
    size_t bad = rewrites.size();
    if (fails(all, reference_after_rewrites(rewrites, 0))) return false;
    while (bad - good > 1) {
      const size_t middle = good + (bad - good) / 2;
      progress(fmt::format("the first {} rewrites", middle));
      (fails(all, reference_after_rewrites(rewrites, middle)) ? bad : good) = middle;
    }
    report_.position = bad;
    report_.where = rewrites[bad - 1].where;
    const Way with = reference_after_rewrites(rewrites, bad);
    const Way without = reference_after_rewrites(rewrites, good);
    blame(Culprit::rule, rewrites[bad - 1].rule, all,
          [&](const auto& nodes) { return fails(nodes, with) && !fails(nodes, without); });
    return true;
  }

  const Graph& graph_;
  CompileOptions options_;
  bool use_passes_;
  const BisectOptions& how_;
  std::span<const PassDef> passes_;
  const Device& device_;
  std::map<ValueId, Datum> known_;
  std::vector<AppliedRule> last_rules_;
  BisectReport report_;
};

}  // namespace

std::string_view to_string(Culprit culprit) {
  switch (culprit) {
    case Culprit::none: return "none";
    case Culprit::pass: return "pass";
    case Culprit::rule: return "rule";
    case Culprit::kernel: return "kernel";
    case Culprit::schedule: return "schedule";
  }
  return "";
}

BisectReport bisect_passes(const Graph& graph, const CompileOptions& options, const std::vector<Datum>& inputs,
                           const BisectOptions& how, std::span<const PassDef> passes) {
  Graph function = graph;  // of the states, too, and giving their new values
  const HiddenStates hidden = function.states_to_inputs();
  std::vector<Datum> all = inputs;
  all.insert(all.end(), hidden.initial.begin(), hidden.initial.end());
  return Bisector(function, options, all, how, passes).run();
}

BisectReport bisect(const Graph& graph, const CompileOptions& options, const std::vector<Datum>& inputs,
                    const BisectOptions& how) {
  return bisect_passes(graph, options, inputs, how, {});
}

}  // namespace autograph
