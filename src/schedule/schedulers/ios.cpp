#include "schedule/schedulers/ios.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <map>
#include <unordered_map>

#include "base/check.h"
#include "schedule/schedulers/endings.h"
#include "schedule/schedulers/greedy.h"
#include "schedule/schedulers/parts.h"
#include "schedule/schedulers/task_stages.h"

namespace autograph {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSmallPart = 6;  // is not cut: it has few sets

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A stage of a part.
struct PartStage {
  TaskStreams streams;
  bool is_merged = false;
};

struct PartResult {
  std::vector<PartStage> stages;
  double us = kInfinity;
};

TaskStreams translated(TaskStreams streams, const std::vector<TaskIndex>& names) {
  for (auto& stream : streams) {
    for (TaskIndex& task : stream) task = names[task];
  }
  return streams;
}

// What stages of one part cost; everything is asked once.
class PartCosts {
 public:
  PartCosts(const TaskGraph& part, std::vector<TaskIndex> origin, const StreamLimits& limits, const IosOptions& options)
      : part_(part), edges_(part_edges(part)), origin_(std::move(origin)), limits_(limits), options_(options) {}

  const TaskGraph& part() const { return part_; }
  const PartEdges& edges() const { return edges_; }

  /// The streams on which the tasks of `set` run as one stage.
  TaskStreams streams_of(TaskSet set) const {
    return balance(part_, connected_groups(edges_, set), limits_.max_streams);
  }
  double concurrent_us(TaskSet set) {
    const auto [at, is_new] = concurrent_us_.try_emplace(set, 0);
    if (is_new) at->second = stage_us(streams_of(set));
    return at->second;
  }
  /// Infinite when the tasks cannot be merged.
  double merged_us(TaskSet set) {
    const auto [at, is_new] = merged_us_.try_emplace(set, kInfinity);
    if (is_new) at->second = options_.merge_cost(origins(set)).value_or(kInfinity);
    return at->second;
  }

 private:
  double stage_us(const TaskStreams& streams) const {
    if (!options_.stage_cost) return estimate_stage_us(part_, streams, limits_);
    return options_.stage_cost(translated(streams, origin_));
  }

  std::vector<TaskIndex> origins(TaskSet set) const {
    std::vector<TaskIndex> tasks;
    for (; set != 0; set &= set - 1) tasks.push_back(origin_[static_cast<size_t>(std::countr_zero(set))]);
    return tasks;
  }

  const TaskGraph& part_;
  PartEdges edges_;
  std::vector<TaskIndex> origin_;  // in the caller's graph
  const StreamLimits& limits_;
  const IosOptions& options_;
  std::unordered_map<TaskSet, double> concurrent_us_;
  std::unordered_map<TaskSet, double> merged_us_;
};

// One search of one part with given limits.
class PartSearch {
 public:
  PartSearch(PartCosts& costs, const EndingLimits& limits, const IosOptions& options, Clock::time_point deadline)
      : costs_(costs), limits_(limits), options_(options), deadline_(deadline) {}

  // Nothing when it took too many steps.
  std::optional<PartResult> run() {
    const size_t size = costs_.part().size();
    const TaskSet all = size == 64 ? ~TaskSet{0} : (TaskSet{1} << size) - 1;
    PartResult result{{}, solve(all)};
    if (is_over_) return std::nullopt;
    for (TaskSet set = all; set != 0; set &= ~known_.at(set).ending) result.stages.push_back(stage_of(known_.at(set)));
    std::reverse(result.stages.begin(), result.stages.end());
    return result;
  }
  size_t num_states() const { return known_.size(); }
  size_t num_transitions() const { return num_transitions_; }

 private:
  struct Best {
    double us = kInfinity;
    TaskSet ending = 0;
    bool is_merged = false;
  };

  double solve(TaskSet set) {
    if (set == 0) return 0;
    const auto found = known_.find(set);
    if (found != known_.end()) return found->second.us;
    std::vector<TaskSet> endings;
    for_each_ending(costs_.edges(), set, limits_, [&](TaskSet ending) {
      endings.push_back(ending);
      return count();
    });
    Best best;
    for (const TaskSet ending : endings) consider(set, ending, false, best);
    if (options_.merge_cost) try_merges(set, sinks(set), 0, 0, best);
    known_.emplace(set, best);
    return best.us;
  }

  void consider(TaskSet set, TaskSet ending, bool is_merged, Best& best) {
    if (is_over_) return;
    const double stage_us = is_merged ? costs_.merged_us(ending) : costs_.concurrent_us(ending);
    if (stage_us >= best.us) return;
    const double us = stage_us + solve(set & ~ending);
    if (us < best.us) best = {us, ending, is_merged};
  }

  // Tasks of `set` without readers in it.
  TaskSet sinks(TaskSet set) const {
    TaskSet found = 0;
    for (TaskSet left = set; left != 0; left &= left - 1) {
      const auto task = static_cast<size_t>(std::countr_zero(left));
      if ((costs_.edges().successors[task] & set) == 0) found |= TaskSet{1} << task;
    }
    return found;
  }

  // Adds tasks of `free` to `chosen`, which can be merged (or is too small to tell).
  void try_merges(TaskSet set, TaskSet free, TaskSet chosen, int size, Best& best) {
    for (; free != 0 && !is_over_; free &= free - 1) {
      const TaskSet merged = chosen | (free & ~(free - 1));
      if (size > 0 && (!count() || costs_.merged_us(merged) == kInfinity)) continue;
      if (size > 0) consider(set, merged, true, best);
      if (size + 1 < options_.max_merge) try_merges(set, free & (free - 1), merged, size + 1, best);
    }
  }

  // One step more; false when there were too many.
  bool count() {
    ++num_transitions_;
    if (num_transitions_ > options_.max_transitions) is_over_ = true;
    if (num_transitions_ % 64 == 0 && Clock::now() > deadline_) is_over_ = true;
    return !is_over_;
  }

  PartStage stage_of(const Best& best) const {
    if (!best.is_merged) return {costs_.streams_of(best.ending)};
    PartStage stage{{{}}, true};
    for (TaskSet left = best.ending; left != 0; left &= left - 1) {
      stage.streams[0].push_back(static_cast<TaskIndex>(std::countr_zero(left)));
    }
    return stage;
  }

  PartCosts& costs_;
  EndingLimits limits_;
  const IosOptions& options_;
  Clock::time_point deadline_;
  std::unordered_map<TaskSet, Best> known_;
  size_t num_transitions_ = 0;
  bool is_over_ = false;
};

// What is there without any search.
PartResult simple_result(PartCosts& costs, const StreamLimits& limits) {
  PartResult sequence{{}, 0};
  for (TaskIndex task = 0; task < costs.part().size(); ++task) {
    sequence.stages.push_back({TaskStreams{{task}}});
    sequence.us += costs.concurrent_us(TaskSet{1} << task);
  }
  PartResult waves{{}, 0};
  for (TaskStreams& streams : greedy_stages(costs.part(), limits)) {
    TaskSet wave = 0;
    for (const auto& stream : streams) {
      for (const TaskIndex task : stream) wave |= TaskSet{1} << task;
    }
    waves.us += costs.concurrent_us(wave);
    waves.stages.push_back({std::move(streams)});
  }
  return waves.us < sequence.us ? waves : sequence;
}

class IosSearch {
 public:
  IosSearch(const TaskGraph& graph, const StreamLimits& limits, const IosOptions& options)
      : graph_(graph),
        work_(without_free_tasks(graph)),
        limits_(limits),
        options_(remembering(options)),
        deadline_(Clock::now() +
                  std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.max_seconds))) {}

  IosResult run() {
    for (const std::vector<TaskIndex>& part : sequential_parts(work_.graph, options_.max_part)) {
      add(search(part), part);
    }
    compare_with_wavefronts();
    result_.num_stages = stages_.size();
    result_.schedule = to_schedule(graph_, work_, stages_);
    return std::move(result_);
  }

 private:
  // The best stages of a part; tasks are counted within the part. Blocks that a network repeats are searched once.
  PartResult search(const std::vector<TaskIndex>& part) {
    const TaskGraph graph = subgraph(work_.graph, part);
    if (options_.stage_cost || options_.merge_cost) return search(part, graph);  // they may tell equal tasks apart
    const std::vector<double> key = key_of(graph);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    return known_.emplace(key, search(part, graph)).first->second;
  }

  // Equal for parts that differ in nothing but the names of their tasks.
  static std::vector<double> key_of(const TaskGraph& part) {
    std::vector<double> key;
    for (TaskIndex task = 0; task < part.size(); ++task) {
      key.push_back(part.tasks[task].us);
      key.push_back(part.tasks[task].narrow_us);
      const KernelLoad& load = part.tasks[task].load;
      key.insert(key.end(), {load.start_us, load.work_us, load.processors, load.bandwidth});
      key.push_back(static_cast<double>(part.predecessors[task].size()));
      key.insert(key.end(), part.predecessors[task].begin(), part.predecessors[task].end());
    }
    return key;
  }

  PartResult search(const std::vector<TaskIndex>& part, const TaskGraph& graph) {
    std::vector<TaskIndex> origin;
    for (const TaskIndex task : part) origin.push_back(work_.origin[task]);
    PartCosts costs(graph, std::move(origin), limits_, options_);
    PartResult best = simple_result(costs, limits_);
    if (graph.size() == 1) return best;
    PartResult found = try_limits(costs);
    if (found.stages.empty() && graph.size() > kSmallPart && Clock::now() < deadline_) found = halves(part, graph);
    return found.us < best.us ? found : best;
  }

  // Searches with less and less, until a search comes to its end; no stages when none does.
  PartResult try_limits(PartCosts& costs) {
    for (int group = options_.max_group; group >= 1 && Clock::now() < deadline_; --group) {
      PartSearch search(costs, {group, options_.max_groups}, options_, deadline_);
      std::optional<PartResult> found = search.run();
      result_.num_states += search.num_states();
      result_.num_transitions += search.num_transitions();
      if (found) {
        result_.is_complete &= group == options_.max_group;
        return std::move(*found);
      }
    }
    result_.is_complete = false;
    return {};
  }

  // The stages of smaller parts of a part, one after the other.
  PartResult halves(const std::vector<TaskIndex>& part, const TaskGraph& graph) {
    PartResult whole{{}, 0};
    for (const std::vector<TaskIndex>& places : sequential_parts(graph, (graph.size() + 1) / 2)) {
      std::vector<TaskIndex> half;
      for (const TaskIndex place : places) half.push_back(part[place]);
      PartResult found = search(half);
      whole.us += found.us;
      for (PartStage& stage : found.stages) {
        whole.stages.push_back({translated(std::move(stage.streams), places), stage.is_merged});
      }
    }
    return whole;
  }

  void add(const PartResult& part_result, const std::vector<TaskIndex>& part) {
    result_.us += part_result.us;
    for (const PartStage& stage : part_result.stages) {
      TaskStreams streams = translated(stage.streams, part);
      if (stage.is_merged) {
        result_.merges.emplace_back();
        for (const TaskIndex task : streams[0]) result_.merges.back().push_back(work_.graph.tasks[task].node);
      }
      stages_.push_back(std::move(streams));
    }
  }

  // Wavefronts know no parts, and may win where these were cut badly.
  void compare_with_wavefronts() {
    std::vector<TaskStreams> waves = greedy_stages(work_.graph, limits_);
    double us = 0;
    for (const TaskStreams& streams : waves) {
      us += options_.stage_cost ? options_.stage_cost(translated(streams, work_.origin))
                                : estimate_stage_us(work_.graph, streams, limits_);
    }
    if (us >= result_.us) return;
    result_.us = us;
    result_.merges.clear();
    stages_ = std::move(waves);
  }

  // As given, but remembering what the caller's callback told.
  static IosOptions remembering(IosOptions options) {
    if (!options.stage_cost) return options;
    options.stage_cost = [ask = options.stage_cost,
                          known = std::map<TaskStreams, double>()](const TaskStreams& streams) mutable {
      const auto found = known.find(streams);
      return found != known.end() ? found->second : known.emplace(streams, ask(streams)).first->second;
    };
    return options;
  }

  const TaskGraph& graph_;
  WorkGraph work_;
  const StreamLimits& limits_;
  IosOptions options_;
  Clock::time_point deadline_;
  std::vector<TaskStreams> stages_;  // of tasks of work_
  std::map<std::vector<double>, PartResult> known_;
  IosResult result_;
};

}  // namespace

IosResult schedule_ios(const TaskGraph& graph, const StreamLimits& limits, const IosOptions& options) {
  AG_CHECK(options.max_part >= 1 && options.max_part <= 64, "ios: max_part: expected 1..64, got {}", options.max_part);
  AG_CHECK(options.max_group >= 1 && options.max_groups >= 1, "ios: group limits: expected at least 1, got {} and {}",
           options.max_group, options.max_groups);
  return IosSearch(graph, limits, options).run();
}

}  // namespace autograph
