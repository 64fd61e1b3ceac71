#include "schedule/schedulers/ios.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "autograph/error.h"
#include "autograph/random.h"
#include "schedule/random_tasks.h"
#include "schedule/schedulers/endings.h"
#include "schedule/schedulers/reachability.h"

namespace autograph {
namespace {

IosOptions unpruned() { return {.max_group = 64, .max_groups = 64, .max_part = 64}; }

std::vector<TaskIndex> tasks_of(TaskSet set) {
  std::vector<TaskIndex> tasks;
  for (TaskIndex task = 0; task < 64; ++task) {
    if ((set >> task) & 1U) tasks.push_back(task);
  }
  return tasks;
}

// Does something in `set` but not in `ending` read what `ending` makes? By the definition.
bool is_ending(const TaskGraph& graph, TaskSet set, TaskSet ending) {
  for (const TaskIndex task : tasks_of(ending)) {
    for (const TaskIndex reader : graph.successors[task]) {
      if (((set & ~ending) >> reader) & 1U) return false;
    }
  }
  return ending != 0 && (ending & ~set) == 0;
}

// Connected groups by repeated merging.
std::vector<std::vector<TaskIndex>> groups_of(const TaskGraph& graph, TaskSet set) {
  std::map<TaskIndex, std::set<TaskIndex>> group_of;
  for (const TaskIndex task : tasks_of(set)) group_of[task] = {task};
  for (const TaskIndex task : tasks_of(set)) {
    for (const TaskIndex reader : graph.successors[task]) {
      if (!group_of.count(reader)) continue;
      std::set<TaskIndex> joined = group_of[task];
      joined.insert(group_of[reader].begin(), group_of[reader].end());
      for (const TaskIndex member : joined) group_of[member] = joined;
    }
  }
  std::vector<std::vector<TaskIndex>> groups;
  for (const auto& [task, group] : group_of) {
    if (task == *group.begin()) groups.emplace_back(group.begin(), group.end());
  }
  return groups;
}

// The least cost over all sequences of stages, by trying every subset as the last stage and remembering nothing.
double least_cost(const TaskGraph& graph, TaskSet set, const StreamLimits& limits, const MergeCost& merge_cost) {
  if (set == 0) return 0;
  double least = std::numeric_limits<double>::infinity();
  for (TaskSet ending = set; ending != 0; ending = (ending - 1) & set) {
    if (!is_ending(graph, set, ending)) continue;
    const double before = least_cost(graph, set & ~ending, limits, merge_cost);
    const auto groups = groups_of(graph, ending);
    least = std::min(least, before + estimate_stage_us(graph, balance(graph, groups, limits.max_streams), limits));
    const std::vector<TaskIndex> tasks = tasks_of(ending);
    if (!merge_cost || tasks.size() < 2 || groups.size() != tasks.size()) continue;
    if (const auto us = merge_cost(tasks)) least = std::min(least, before + *us);
  }
  return least;
}

TEST(Endings, AreAllSubsetsThatNothingLeftReads) {
  Random random(31);
  for (int i = 0; i < 300; ++i) {
    const TaskGraph graph = random_case(random, draw_count(random, 1, 9), false).tasks;
    const TaskSet all = (TaskSet{1} << graph.size()) - 1;
    const TaskSet set = all & random();  // any subset will do
    const EndingLimits limits{static_cast<int>(draw_count(random, 1, 9)), static_cast<int>(draw_count(random, 1, 5))};
    std::set<TaskSet> expected;
    for (TaskSet ending = set; ending != 0; ending = (ending - 1) & set) {
      if (!is_ending(graph, set, ending)) continue;
      const auto groups = groups_of(graph, ending);
      const auto fits = [&](const auto& group) { return group.size() <= static_cast<size_t>(limits.max_group); };
      if (groups.size() > static_cast<size_t>(limits.max_groups)) continue;
      if (std::all_of(groups.begin(), groups.end(), fits)) expected.insert(ending);
    }
    std::set<TaskSet> found;
    EXPECT_TRUE(for_each_ending(part_edges(graph), set, limits, [&](TaskSet ending) {
      EXPECT_TRUE(found.insert(ending).second) << "seen twice";
      return true;
    }));
    ASSERT_EQ(found, expected);
    for (const TaskSet ending : found) {
      ASSERT_EQ(connected_groups(part_edges(graph), ending), groups_of(graph, ending));
    }
  }
}

TEST(Endings, HaveGroupsWithTwoRoots) {
  // 1 and 2 feed 3: the original enumeration starts groups at one root and misses {1, 2, 3}.
  const TaskGraph graph = make_case({{}, {0}, {0}, {1, 2}}).tasks;
  std::set<TaskSet> found;
  for_each_ending(part_edges(graph), 0b1111, {3, 1}, [&](TaskSet ending) { return found.insert(ending).second; });
  EXPECT_EQ(found, (std::set<TaskSet>{0b1000, 0b1100, 0b1010, 0b1110}));
}

TEST(Endings, StopWhenToldTo) {
  const TaskGraph graph = make_case({{}, {}, {}}).tasks;
  int num_seen = 0;
  EXPECT_FALSE(for_each_ending(part_edges(graph), 0b111, {3, 3}, [&](TaskSet) { return ++num_seen < 4; }));
  EXPECT_EQ(num_seen, 4);
}

TEST(Endings, WorkForSixtyFourTasks) {
  std::vector<std::vector<TaskIndex>> sources(64);
  for (TaskIndex i = 1; i < 64; ++i) sources[i] = {i - 1};
  size_t num_seen = 0;
  for_each_ending(part_edges(make_case(sources).tasks), ~TaskSet{0}, {5, 1}, [&](TaskSet) { return ++num_seen > 0; });
  EXPECT_EQ(num_seen, 5u);
}

TEST(Ios, FindsTheBestOfAllSchedules) {
  Random random(32);
  for (int i = 0; i < 150; ++i) {
    const TaskCase c = random_case(random, draw_count(random, 1, 7), false);
    const StreamLimits limits{static_cast<int>(draw_count(random, 1, 3)),
                              static_cast<double>(draw_count(random, 0, 8)) / 4};
    const TaskSet all = (TaskSet{1} << c.tasks.size()) - 1;
    const IosResult result = schedule_ios(c.tasks, limits, unpruned());
    EXPECT_TRUE(result.is_complete);
    EXPECT_TRUE(result.merges.empty());
    ASSERT_NEAR(result.us, least_cost(c.tasks, all, limits, nullptr), 1e-9);
    ASSERT_NO_THROW(verify(result.schedule, c.graph));
  }
}

// Tasks can be merged when their numbers leave the same rest, for a fixed cost and half of what they take.
TEST(Ios, FindsTheBestOfAllSchedulesWithMerges) {
  Random random(33);
  int num_merges = 0;
  for (int i = 0; i < 150; ++i) {
    const TaskCase c = random_case(random, draw_count(random, 2, 7), false);
    const StreamLimits limits{2, 0.5};
    const MergeCost merge_cost = [&](std::span<const TaskIndex> tasks) -> std::optional<double> {
      double us = 1;
      for (const TaskIndex task : tasks) {
        if (task % 2 != tasks[0] % 2) return std::nullopt;
        us += c.tasks.tasks[task].us / 2;
      }
      return us;
    };
    IosOptions options = unpruned();
    options.max_merge = 7;
    options.merge_cost = merge_cost;
    const IosResult result = schedule_ios(c.tasks, limits, options);
    const TaskSet all = (TaskSet{1} << c.tasks.size()) - 1;
    ASSERT_NEAR(result.us, least_cost(c.tasks, all, limits, merge_cost), 1e-9);
    ASSERT_NO_THROW(verify(result.schedule, c.graph));
    const Reachability reachability(c.tasks);
    for (const auto& merged : result.merges) {
      ++num_merges;
      for (const NodeId a : merged) {
        for (const NodeId b : merged) EXPECT_FALSE(reachability.reaches(a.index, b.index));
      }
    }
  }
  EXPECT_GT(num_merges, 40);
}

TEST(Ios, MakesLegalSchedulesOfLargeGraphs) {
  Random random(34);
  for (int i = 0; i < 60; ++i) {
    const TaskCase c = random_case(random, draw_count(random, 20, 150));
    const StreamLimits limits{static_cast<int>(draw_count(random, 1, 4)), 0.5};
    const IosResult result = schedule_ios(c.tasks, limits, {.max_part = 20, .max_transitions = 3000});
    ASSERT_NO_THROW(verify(result.schedule, c.graph)) << to_string(result.schedule, c.graph);
    ASSERT_LE(result.us, sequential_us(c.tasks) * (1 + 1e-12));
    ASSERT_LE(result.schedule.width(), limits.max_streams);
  }
}

TEST(Ios, AsksForEachStageOnceInTermsOfTheWholeGraph) {
  Random random(35);
  for (int i = 0; i < 50; ++i) {
    const TaskCase c = random_case(random, draw_count(random, 1, 25));
    std::set<TaskStreams> asked;
    IosOptions options{.max_part = 12};
    options.stage_cost = [&](const TaskStreams& streams) {
      EXPECT_TRUE(asked.insert(streams).second) << "asked twice";
      for (const auto& stream : streams) {
        for (const TaskIndex task : stream) EXPECT_GT(c.tasks.tasks[task].us, 0) << "a free task";
      }
      return estimate_stage_us(c.tasks, streams, {2, 1});
    };
    const IosResult result = schedule_ios(c.tasks, {2, 1}, options);
    const IosResult expected = schedule_ios(c.tasks, {2, 1}, {.max_part = 12});
    EXPECT_NEAR(result.us, expected.us, 1e-9);
  }
}

TEST(Ios, TakesLessWhereAPartIsTooLarge) {
  // Independent tasks: far more endings than the limit allows.
  const TaskCase c = make_case(std::vector<std::vector<TaskIndex>>(40), 2);
  const IosResult result = schedule_ios(c.tasks, {4, 1}, {.max_part = 40, .max_transitions = 5000});
  EXPECT_FALSE(result.is_complete);
  EXPECT_LE(result.num_transitions, 200'000u);
  // 40 tasks over 4 streams: the wavefront of all is the best there is.
  EXPECT_EQ(result.us, 1 + 20);
}

// Two chains whose tasks do not wait for each other: wavefronts begin a stage for each pair, searching makes them rare
// even where only parts of parts can be searched.
TEST(Ios, SearchesPartsOfPartsThatAreTooLarge) {
  std::vector<std::vector<TaskIndex>> sources(48);
  for (TaskIndex i = 2; i < 48; ++i) sources[i] = {i - 2};
  const TaskCase c = make_case(sources, 2);
  const IosResult result = schedule_ios(c.tasks, {2, 1.5}, {.max_group = 4, .max_part = 48, .max_transitions = 100});
  EXPECT_FALSE(result.is_complete);
  EXPECT_NO_THROW(verify(result.schedule, c.graph));
  EXPECT_LT(result.us, 24 * 3.5 * 0.9);  // what wavefronts take
}

TEST(Ios, EndsWhenItsTimeIsOver) {
  Random random(36);
  const TaskCase c = random_case(random, 120);
  const IosResult result = schedule_ios(c.tasks, {4, 0.1}, {.max_seconds = 0});
  EXPECT_NO_THROW(verify(result.schedule, c.graph));
  EXPECT_LE(result.us, sequential_us(c.tasks) * (1 + 1e-12));
}

TEST(Ios, RefusesPartsLargerThanItsSets) {
  EXPECT_THROW(schedule_ios(make_case({{}}).tasks, {}, {.max_part = 65}), InternalError);
  EXPECT_THROW(schedule_ios(make_case({{}}).tasks, {}, {.max_group = 0}), InternalError);
}

// A network of equal blocks: a fork of four branches, and a join that nothing runs beside.
TaskCase blocks(TaskIndex count) {
  std::vector<std::vector<TaskIndex>> sources = {{}};
  for (TaskIndex block = 0; block < count; ++block) {
    const auto fork = static_cast<TaskIndex>(sources.size() - 1);
    for (int branch = 0; branch < 4; ++branch) sources.push_back({fork});
    sources.push_back({fork + 1, fork + 2, fork + 3, fork + 4});
  }
  return make_case(sources, 10);
}

TEST(Ios, SearchesEqualBlocksOnce) {
  const TaskCase few = blocks(2);
  const TaskCase many = blocks(20);
  const StreamLimits limits{2, 1};
  const IosOptions options{.max_part = 6};
  const IosResult of_few = schedule_ios(few.tasks, limits, options);
  const IosResult of_many = schedule_ios(many.tasks, limits, options);
  EXPECT_EQ(of_many.num_states, of_few.num_states);
  EXPECT_EQ(find_fault(of_many.schedule, many.graph), "");
  // The same with a price that is told by the caller, where nothing is reused.
  IosOptions told = options;
  told.stage_cost = [&](const TaskStreams& streams) { return estimate_stage_us(many.tasks, streams, limits); };
  const IosResult anew = schedule_ios(many.tasks, limits, told);
  EXPECT_GT(anew.num_states, of_many.num_states);
  EXPECT_DOUBLE_EQ(anew.us, of_many.us);
}

}  // namespace
}  // namespace autograph
