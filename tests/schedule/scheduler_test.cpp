// Greedy, Nimble and list scheduling: properties on random graphs, and small cases by hand.
#include <gtest/gtest.h>

#include <set>

#include "autograph/random.h"
#include "schedule/random_tasks.h"
#include "schedule/schedulers/greedy.h"
#include "schedule/schedulers/list.h"
#include "schedule/schedulers/matching.h"
#include "schedule/schedulers/nimble.h"
#include "schedule/schedulers/reachability.h"
#include "schedule/schedulers/shared_list.h"

namespace autograph {
namespace {

constexpr int kCases = 1500;

StreamLimits random_limits(Random& random) {
  return {static_cast<int>(draw_count(random, 1, 4)), static_cast<double>(draw_count(random, 0, 4)) / 4};
}

// The costs by hand of the example: two branches of two tasks between a first and a last one.
TaskCase diamond(double us, double narrow_us) {
  return make_case({{}, {0}, {0}, {1}, {2}, {3, 4}}, std::vector<Task>(6, Task{{}, us, narrow_us}));
}

TEST(Schedulers, MakeLegalSchedulesOfRandomGraphs) {
  Random random(21);
  for (int i = 0; i < kCases; ++i) {
    const TaskCase c = random_case(random, draw_count(random, 1, 40));
    const StreamLimits limits = random_limits(random);
    for (const Schedule& schedule :
         {schedule_greedy(c.tasks, limits), schedule_nimble(c.tasks, limits), schedule_nimble_stages(c.tasks, limits),
          schedule_list(c.tasks, limits), schedule_list(c.tasks, limits, {0, 3})}) {
      ASSERT_NO_THROW(verify(schedule, c.graph)) << to_string(schedule, c.graph);
      ASSERT_LE(schedule.width(), limits.max_streams);
    }
  }
}

TEST(Schedulers, HaveNothingToDoWithoutNodes) {
  const TaskCase c = make_case({});
  EXPECT_TRUE(schedule_greedy(c.tasks, {}).is_sequential());
  EXPECT_TRUE(schedule_nimble(c.tasks, {}).is_sequential());
  EXPECT_TRUE(schedule_list(c.tasks, {}).is_sequential());
}

TEST(Schedulers, AreSequentialOnOneStream) {
  const TaskCase c = diamond(1, 1);
  EXPECT_TRUE(schedule_greedy(c.tasks, {1, 0}).is_sequential());
  EXPECT_TRUE(schedule_nimble(c.tasks, {1, 0}).is_sequential());
  EXPECT_TRUE(schedule_list(c.tasks, {1, 0}).is_sequential());
}

// ---- Greedy ----------------------------------------------------------------------------------------------------

TEST(Greedy, TakesAllReadyTasks) {
  const TaskCase c = diamond(1, 1);
  EXPECT_EQ(greedy_stages(c.tasks, {4, 1}), (std::vector<TaskStreams>{{{0}}, {{1}, {2}}, {{3}, {4}}, {{5}}}));
}

TEST(Greedy, BalancesWhatDoesNotFitSideBySide) {
  const TaskCase c = make_case({{}, {}, {}, {}}, {{{}, 1, 2}, {{}, 1, 7}, {{}, 1, 3}, {{}, 1, 3}});
  EXPECT_EQ(greedy_stages(c.tasks, {2, 1}), (std::vector<TaskStreams>{{{1}, {2, 3, 0}}}));
}

TEST(Greedy, HasAsManyStagesAsTheLongestPathHasTasks) {
  Random random(22);
  for (int i = 0; i < kCases; ++i) {
    const TaskGraph graph = random_case(random, draw_count(random, 1, 40), false).tasks;
    std::vector<size_t> depth(graph.size(), 1);
    size_t longest = 0;
    for (TaskIndex task = 0; task < graph.size(); ++task) {
      for (const TaskIndex source : graph.predecessors[task]) depth[task] = std::max(depth[task], depth[source] + 1);
      longest = std::max(longest, depth[task]);
    }
    EXPECT_EQ(greedy_stages(graph, random_limits(random)).size(), longest);
  }
}

// ---- Matching --------------------------------------------------------------------------------------------------

// The most pairs, by trying every partner of every left vertex.
size_t most_pairs(const std::vector<std::vector<uint32_t>>& edges, size_t left, std::set<uint32_t>& taken) {
  if (left == edges.size()) return 0;
  size_t most = most_pairs(edges, left + 1, taken);
  for (const uint32_t right : edges[left]) {
    if (!taken.insert(right).second) continue;
    most = std::max(most, 1 + most_pairs(edges, left + 1, taken));
    taken.erase(right);
  }
  return most;
}

TEST(Matching, HasAsManyPairsAsPossible) {
  Random random(23);
  for (int i = 0; i < kCases; ++i) {
    std::vector<std::vector<uint32_t>> edges(draw_count(random, 0, 7));
    const size_t num_right = draw_count(random, 1, 7);
    for (auto& of_one : edges) {
      for (uint32_t right = 0; right < num_right; ++right) {
        if (draw_count(random, 0, 2) == 0) of_one.push_back(right);
      }
    }
    const std::vector<uint32_t> partner = maximum_matching(edges, num_right);
    std::set<uint32_t> used;
    for (size_t left = 0; left < edges.size(); ++left) {
      if (partner[left] == kUnmatched) continue;
      EXPECT_TRUE(std::count(edges[left].begin(), edges[left].end(), partner[left]));
      EXPECT_TRUE(used.insert(partner[left]).second) << "right vertex " << partner[left] << " has two partners";
    }
    std::set<uint32_t> taken;
    ASSERT_EQ(used.size(), most_pairs(edges, 0, taken));
  }
}

TEST(Matching, FollowsLongPaths) {
  // Vertex l may have l or l + 1; the first come takes the wrong one unless paths of any length are flipped.
  constexpr uint32_t kSize = 20000;
  std::vector<std::vector<uint32_t>> edges(kSize);
  for (uint32_t l = 0; l < kSize; ++l) edges[l] = {std::min(l + 1, kSize - 1), l};
  const std::vector<uint32_t> partner = maximum_matching(edges, kSize);
  EXPECT_EQ(std::count(partner.begin(), partner.end(), kUnmatched), 0);
}

// ---- Nimble ----------------------------------------------------------------------------------------------------

size_t edges_between_lists(const TaskGraph& graph, const Reachability& reachability, const TaskStreams& lists) {
  std::vector<size_t> list_of(graph.size());
  for (size_t list = 0; list < lists.size(); ++list) {
    for (const TaskIndex task : lists[list]) list_of[task] = list;
  }
  const auto edges = reachability.minimum_edges();
  return static_cast<size_t>(std::count_if(
      edges.begin(), edges.end(), [&](const auto& edge) { return list_of[edge.first] != list_of[edge.second]; }));
}

void expect_orders_follow_paths(const Reachability& reachability, const TaskStreams& lists) {
  for (const auto& list : lists) {
    for (size_t i = 0; i + 1 < list.size(); ++i) {
      EXPECT_TRUE(reachability.reaches(list[i], list[i + 1])) << list[i] << " and " << list[i + 1] << " share a stream";
    }
  }
}

// No two tasks that could run at the same time share a chain or, later, a stream; the waits are the edges that join
// different streams, |E'| - |M| of them before and after streams are used again.
TEST(Nimble, LosesNoConcurrencyAndCountsWaits) {
  Random random(24);
  for (int i = 0; i < kCases; ++i) {
    const TaskGraph graph = random_case(random, draw_count(random, 1, 40), false).tasks;
    const Reachability reachability(graph);
    const StreamAssignment assignment = assign_streams(graph, {4, 1});
    expect_orders_follow_paths(reachability, assignment.chains);
    expect_orders_follow_paths(reachability, assignment.streams);
    EXPECT_LE(assignment.streams.size(), assignment.chains.size());
    EXPECT_EQ(edges_between_lists(graph, reachability, assignment.chains), assignment.num_waits());
    EXPECT_EQ(edges_between_lists(graph, reachability, assignment.streams), assignment.num_waits());
  }
}

// All ways to put tasks on streams such that tasks of one stream are ordered: the fewest waits, and the fewest streams.
class AllAssignments {
 public:
  explicit AllAssignments(const TaskGraph& graph) : graph_(graph), reachability_(graph) { extend(0); }
  size_t fewest_waits = SIZE_MAX;
  size_t fewest_streams = SIZE_MAX;

 private:
  void extend(TaskIndex task) {
    if (task == graph_.size()) {
      fewest_streams = std::min(fewest_streams, streams_.size());
      fewest_waits = std::min(fewest_waits, num_waits());
      return;
    }
    for (size_t s = 0; s < streams_.size(); ++s) {
      const auto ordered = [&](TaskIndex other) { return reachability_.reaches(other, task); };
      if (!std::all_of(streams_[s].begin(), streams_[s].end(), ordered)) continue;
      streams_[s].push_back(task);
      extend(task + 1);
      streams_[s].pop_back();
    }
    streams_.push_back({task});
    extend(task + 1);
    streams_.pop_back();
  }

  // Edges of the minimum equivalent graph that no stream's order implies: those between streams.
  size_t num_waits() const { return edges_between_lists(graph_, reachability_, streams_); }

  const TaskGraph& graph_;
  Reachability reachability_;
  TaskStreams streams_;
};

TEST(Nimble, NeedsTheFewestWaits) {
  Random random(25);
  for (int i = 0; i < kCases; ++i) {
    const TaskGraph graph = random_case(random, draw_count(random, 1, 7), false).tasks;
    const AllAssignments all(graph);
    const StreamAssignment assignment = assign_streams(graph, {4, 1});
    ASSERT_EQ(assignment.num_waits(), all.fewest_waits);
    ASSERT_GE(assignment.streams.size(), all.fewest_streams);
  }
}

TEST(Nimble, UsesStreamsAgain) {
  // Two forks one after the other: three chains, and the second fork's side branch follows the first one's.
  const TaskCase c = make_case({{}, {0}, {0}, {1, 2}, {3}, {3}, {4, 5}});
  const StreamAssignment assignment = assign_streams(c.tasks, {4, 1});
  EXPECT_EQ(assignment.chains.size(), 3u);
  EXPECT_EQ(assignment.streams, (TaskStreams{{0, 1, 3, 4, 6}, {2, 5}}));
  EXPECT_EQ(assignment.num_edges, 8u);
  EXPECT_EQ(assignment.num_waits(), 4u);
}

TEST(Nimble, FoldsChainsOntoTheStreamsOfTheDevice) {
  const TaskCase c =
      make_case({{}, {}, {}, {0}, {1}, {2}}, {{{}, 6, 6}, {{}, 3, 3}, {{}, 2, 2}, {{}, 6, 6}, {{}, 3, 3}, {{}, 2, 2}});
  const StreamAssignment assignment = assign_streams(c.tasks, {2, 1});
  EXPECT_EQ(assignment.streams.size(), 3u);
  EXPECT_EQ(assignment.folded, (TaskStreams{{0, 3}, {1, 2, 4, 5}}));
}

TEST(Nimble, StagesEndWhereTheGraphPassesThroughOneTask) {
  // A fork that pays on two streams, one of small tasks that does not, both between cuts.
  const TaskCase c =
      make_case({{}, {0}, {0}, {1, 2}, {3}, {3}, {4, 5}},
                {{{}, 10, 20}, {{}, 10, 11}, {{}, 10, 11}, {{}, 10, 20}, {{}, 1, 2}, {{}, 1, 2}, {{}, 10, 20}});
  const std::vector<TaskStreams> expected = {{{0}}, {{1}, {2}}, {{3}}, {{4, 5}}, {{6}}};
  EXPECT_EQ(nimble_stages(c.tasks, {2, 1}), expected);
}

TEST(Nimble, StagesNeverTakeLongerThanTheSequence) {
  Random random(27);
  for (int i = 0; i < kCases; ++i) {
    const TaskGraph work = without_free_tasks(random_case(random, draw_count(random, 1, 40)).tasks).graph;
    const StreamLimits limits{static_cast<int>(draw_count(random, 1, 4)), 1};
    EXPECT_LE(estimate_us(work, nimble_stages(work, limits), limits), sequential_us(work) * (1 + 1e-12));
  }
}

// ---- Shared devices --------------------------------------------------------------------------------------------

TaskGraph with_loads(TaskGraph graph, Random& random) {
  for (Task& task : graph.tasks) {
    if (task.us == 0) continue;
    task.narrow_us = task.us;
    const auto part = [&] { return static_cast<double>(draw_count(random, 1, 8)) / 8; };
    task.load = {.start_us = task.us / 4, .work_us = 3 * task.us / 4, .processors = part(), .bandwidth = part()};
  }
  return graph;
}

TEST(SharedList, KeepsToDependencesAndNeverTakesLongerThanTheSequence) {
  Random random(28);
  for (int i = 0; i < kCases; ++i) {
    const TaskGraph graph =
        with_loads(without_free_tasks(random_case(random, draw_count(random, 1, 40)).tasks).graph, random);
    const StreamLimits limits{static_cast<int>(draw_count(random, 1, 8)), 0.5};
    const TaskStreams streams = shared_list_streams(graph, limits);
    size_t num_tasks = 0;
    for (const auto& stream : streams) num_tasks += stream.size();
    EXPECT_EQ(num_tasks, graph.size());
    EXPECT_LE(streams.size(), static_cast<size_t>(limits.max_streams));
    const double us = estimate_us(graph, {streams}, limits);  // throws where streams wait in a circle
    EXPECT_LE(us, sequential_us(graph) * (1 + 1e-9));
    double processors_us = 0;
    double bandwidth_us = 0;
    for (const Task& task : graph.tasks) {
      processors_us += task.load.work_us * task.load.processors;
      bandwidth_us += task.load.work_us * task.load.bandwidth;
    }
    const std::vector<double> ranks = upward_ranks(graph);
    const double path_us = ranks.empty() ? 0 : *std::max_element(ranks.begin(), ranks.end());
    EXPECT_GE(us, std::max({processors_us, bandwidth_us, path_us}) * (1 - 1e-9));
  }
}

// The first graph chooses; others are listed in the same way.
TEST(ListMakespan, IsThatOfTheListScheduleOfTheFirst) {
  Random random(29);
  for (int i = 0; i < kCases; ++i) {
    const auto draw = [&](bool is_shared) {
      const TaskGraph graph = without_free_tasks(random_case(random, draw_count(random, 1, 40)).tasks).graph;
      return is_shared ? with_loads(graph, random) : graph;
    };
    const bool is_shared = i % 2 == 0;
    const TaskGraph first = draw(is_shared);
    const TaskGraph second = draw(is_shared);
    const StreamLimits limits{static_cast<int>(draw_count(random, 1, 8)), 0.5};
    const auto best_us = [&](const TaskGraph& graph) {
      return estimate_us(graph, list_stages(graph, limits, {.max_run = 64}), limits);
    };
    ListMakespan makespan(limits);
    EXPECT_NEAR(makespan.us(first), best_us(first), 1e-9 * best_us(first));
    const double us = makespan.us(second);
    EXPECT_GE(us, best_us(second) * (1 - 1e-9));
    EXPECT_EQ(us, makespan.us(second));
    makespan.begin();
    EXPECT_NEAR(makespan.us(second), best_us(second), 1e-9 * best_us(second));
  }
}

TEST(ListMakespan, StreamsMayPayForWhatIsMadeOfAGraphThatHasNoUseForThem) {
  TaskCase chain = make_case({{}, {0}}, {{{}, 10, 10}, {{}, 10, 10}});
  TaskCase branches = make_case({{}, {}}, {{{}, 10, 10}, {{}, 10, 10}});
  for (TaskCase* c : {&chain, &branches}) {
    for (Task& task : c->tasks.tasks) task.load = {.work_us = task.us, .processors = 0.5};
  }
  ListMakespan makespan({2, 0});
  EXPECT_EQ(makespan.us(chain.tasks), 20);
  EXPECT_EQ(makespan.us(branches.tasks), 10);
}

TEST(SharedList, GivesTheLongestWayItsRoom) {
  // Two long tasks in a row and three short ones beside them, each of which fills the device.
  TaskCase c = make_case({{}, {0}, {}, {}, {}}, {{{}, 10, 10}, {{}, 10, 10}, {{}, 2, 2}, {{}, 2, 2}, {{}, 2, 2}});
  for (Task& task : c.tasks.tasks) task.load = {.work_us = task.us, .processors = 0.5};
  const StreamLimits limits{2, 0};
  const TaskStreams streams = shared_list_streams(c.tasks, limits);
  EXPECT_EQ(estimate_stage_us(c.tasks, streams, limits), 20);
}

// ---- List ------------------------------------------------------------------------------------------------------

TEST(List, RunsBranchesSideBySideWhereThatPays) {
  const TaskCase c = diamond(10, 10);
  const auto stages = list_stages(c.tasks, {2, 1});
  EXPECT_EQ(estimate_us(c.tasks, stages, {2, 1}), 41);
  const Schedule schedule = schedule_list(c.tasks, {2, 1});
  ASSERT_EQ(schedule.stages.size(), 3u) << to_string(schedule, c.graph);
  EXPECT_EQ(schedule.stages[0].streams.size(), 1u);
  EXPECT_EQ(schedule.stages[1].streams.size(), 2u);
  EXPECT_EQ(schedule.stages[2].streams.size(), 1u);
}

TEST(List, IsSequentialWhereTasksUseAllThreadsWell) {
  EXPECT_TRUE(schedule_list(diamond(10, 20).tasks, {2, 0}).is_sequential());
  EXPECT_TRUE(schedule_list(diamond(10, 19).tasks, {2, 2}).is_sequential());
  EXPECT_FALSE(schedule_list(diamond(10, 19).tasks, {2, 0.1}).is_sequential());
}

TEST(List, KeepsLargeTasksWideAmongSmallOnesBesideEachOther) {
  // A large task that scales, then two branches of small ones that do not.
  std::vector<Task> costs = {{{}, 100, 200}};
  std::vector<std::vector<TaskIndex>> sources = {{}};
  for (TaskIndex i = 1; i <= 10; ++i) {
    costs.push_back({{}, 5, 5.5});
    sources.push_back({i <= 2 ? 0 : i - 2});
  }
  const TaskCase c = make_case(sources, costs);
  const auto stages = list_stages(c.tasks, {2, 2});
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0], (TaskStreams{{0}}));
  EXPECT_EQ(estimate_us(c.tasks, stages, {2, 2}), 100 + 2 + 5 * 5.5);
}

TEST(List, IsNeverSlowerThanSequenceByItsEstimate) {
  Random random(26);
  int num_faster = 0;
  for (int i = 0; i < kCases; ++i) {
    const TaskGraph graph = random_case(random, draw_count(random, 1, 60), false).tasks;
    const StreamLimits limits = random_limits(random);
    const double us = estimate_us(graph, list_stages(graph, limits), limits);
    ASSERT_LE(us, sequential_us(graph) * (1 + 1e-12));
    num_faster += us < sequential_us(graph) * 0.99 ? 1 : 0;
  }
  EXPECT_GT(num_faster, kCases / 4);
}

TEST(List, AsksForTheGainThatItIsToldTo) {
  EXPECT_FALSE(schedule_list(diamond(10, 12).tasks, {2, 1}, {.min_gain = 0.3}).is_sequential());
  EXPECT_TRUE(schedule_list(diamond(10, 12).tasks, {2, 1}, {.min_gain = 0.4}).is_sequential());
}

TEST(List, ComesCloseToTheBoundOnIndependentTasks) {
  Random random(27);
  for (int i = 0; i < 100; ++i) {
    std::vector<Task> costs(24);
    double sum = 0;
    for (Task& task : costs) sum += task.us = task.narrow_us = static_cast<double>(draw_count(random, 1, 20));
    const TaskCase c = make_case(std::vector<std::vector<TaskIndex>>(24), costs);
    EXPECT_LE(estimate_us(c.tasks, list_stages(c.tasks, {2, 0}), {2, 0}), sum / 2 * 1.05);
  }
}

}  // namespace
}  // namespace autograph
