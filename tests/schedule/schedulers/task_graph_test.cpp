#include "schedule/schedulers/task_graph.h"

#include <gtest/gtest.h>

#include "autograph/error.h"
#include "autograph/random.h"
#include "schedule/random_tasks.h"
#include "schedule/schedulers/parts.h"
#include "schedule/schedulers/reachability.h"

namespace autograph {
namespace {

// Is there a path of at least one edge? By search.
bool has_path(const TaskGraph& graph, TaskIndex from, TaskIndex to) {
  const auto& readers = graph.successors[from];
  return std::any_of(readers.begin(), readers.end(),
                     [&](TaskIndex reader) { return reader == to || has_path(graph, reader, to); });
}

TEST(TaskGraph, HasATaskForEachNodeAfterWhatItReads) {
  Random random(10);
  for (int i = 0; i < 300; ++i) {
    const TaskCase c = random_case(random, draw_count(random, 0, 20));
    const TaskGraph tasks = make_task_graph(c.graph, [](const Graph&, NodeId id) {
      return Task{{}, id.index + 1.0, id.index + 2.0};
    });
    ASSERT_EQ(tasks.size(), c.tasks.size());
    for (TaskIndex task = 0; task < tasks.size(); ++task) {
      const NodeId node = tasks.tasks[task].node;
      EXPECT_EQ(tasks.tasks[task].us, node.index + 1.0);
      EXPECT_EQ(tasks.tasks[task].narrow_us, node.index + 2.0);
      std::vector<TaskIndex> sources;  // as nodes
      for (const TaskIndex source : tasks.predecessors[task]) {
        EXPECT_LT(source, task);
        EXPECT_TRUE(std::count(tasks.successors[source].begin(), tasks.successors[source].end(), task));
        sources.push_back(tasks.tasks[source].node.index);
      }
      std::sort(sources.begin(), sources.end());
      EXPECT_EQ(sources, c.tasks.predecessors[node.index]);
      EXPECT_TRUE(std::is_sorted(tasks.successors[task].begin(), tasks.successors[task].end()));
    }
  }
}

TEST(TaskGraph, HasOneEdgeForAValueThatIsReadTwice) {
  const Graph graph = make_dag({{}, {0, 0}});
  const TaskGraph tasks = make_task_graph(graph, [](const Graph&, NodeId) { return Task{}; });
  EXPECT_EQ(tasks.predecessors, (std::vector<std::vector<TaskIndex>>{{}, {0}}));
  EXPECT_EQ(tasks.successors, (std::vector<std::vector<TaskIndex>>{{1}, {}}));
}

TEST(StageEstimate, OfOneStreamIsTheSumOnAllThreads) {
  const TaskCase c = make_case({{}, {0}, {1}}, {{{}, 2, 9}, {{}, 3, 9}, {{}, 4, 9}});
  EXPECT_EQ(estimate_stage_us(c.tasks, {{0, 1, 2}}, {}), 9);
  EXPECT_EQ(estimate_stage_us(c.tasks, {{}, {0, 1, 2}}, {}), 9);
  EXPECT_EQ(estimate_stage_us(c.tasks, {}, {}), 0);
}

TEST(StageEstimate, OfSeveralStreamsIsTheLongestOnNarrowThreadsAfterTheStart) {
  const TaskCase c = make_case({{}, {}, {0}}, {{{}, 1, 5}, {{}, 1, 3}, {{}, 1, 2}});
  EXPECT_EQ(estimate_stage_us(c.tasks, {{0, 2}, {1}}, {.max_streams = 2, .sync_us = 0.5}), 0.5 + 7);
}

TEST(StageEstimate, WaitsForOtherStreams) {
  // 0 -> 2 across streams: 2 starts when 0 has ended and the wait is over, though 1 ended before.
  const TaskCase c = make_case({{}, {}, {0, 1}}, {{{}, 1, 5}, {{}, 1, 3}, {{}, 1, 2}});
  EXPECT_EQ(estimate_stage_us(c.tasks, {{0}, {1, 2}}, {.max_streams = 2, .sync_us = 0.5}), 0.5 + 5 + 0.5 + 2);
}

TEST(StageEstimate, RefusesStreamsThatWaitForEachOther) {
  const TaskCase c = make_case({{}, {}, {0}, {1}});
  EXPECT_THROW(estimate_stage_us(c.tasks, {{3, 0}, {2, 1}}, {}), InternalError);
}

TEST(Reachability, IsTheClosure) {
  Random random(11);
  for (int i = 0; i < 200; ++i) {
    const TaskGraph graph = random_case(random, draw_count(random, 1, 14)).tasks;
    const Reachability reachability(graph);
    for (TaskIndex a = 0; a < graph.size(); ++a) {
      for (TaskIndex b = 0; b < graph.size(); ++b) ASSERT_EQ(reachability.reaches(a, b), has_path(graph, a, b));
    }
  }
}

TEST(Reachability, CrossesWordsOfBits) {
  std::vector<std::vector<TaskIndex>> sources(200);
  for (TaskIndex i = 1; i < 200; ++i) sources[i] = {i - 1, i / 2};
  const Reachability reachability(make_case(sources).tasks);
  EXPECT_TRUE(reachability.reaches(0, 199));
  EXPECT_FALSE(reachability.reaches(199, 0));
  EXPECT_EQ(reachability.minimum_edges().size(), 199u);
}

// An edge is in the minimum equivalent graph exactly when no other reader of its start leads to its end.
TEST(Reachability, KeepsTheEdgesThatNoPathReplaces) {
  Random random(12);
  for (int i = 0; i < 200; ++i) {
    const TaskGraph graph = random_case(random, draw_count(random, 1, 14)).tasks;
    std::vector<std::pair<TaskIndex, TaskIndex>> expected;
    for (TaskIndex a = 0; a < graph.size(); ++a) {
      for (const TaskIndex b : graph.successors[a]) {
        const auto& readers = graph.successors[a];
        const bool is_replaced = std::any_of(readers.begin(), readers.end(), [&](TaskIndex reader) {
          return reader != b && has_path(graph, reader, b);
        });
        if (!is_replaced) expected.emplace_back(a, b);
      }
    }
    EXPECT_EQ(Reachability(graph).minimum_edges(), expected);
  }
}

TEST(Reachability, TellsWhatNothingRunsBeside) {
  const TaskGraph graph = make_case({{}, {0}, {0}, {1, 2}, {3, 0}}).tasks;
  EXPECT_EQ(cut_points(graph), (std::vector<bool>{true, false, false, true, true}));
}

TEST(Reachability, CutPointsAreOrderedWithAllOthers) {
  Random random(14);
  for (int i = 0; i < 300; ++i) {
    const TaskGraph graph = random_case(random, draw_count(random, 1, 12)).tasks;
    const Reachability reachability(graph);
    const std::vector<bool> cuts = cut_points(graph);
    for (TaskIndex a = 0; a < graph.size(); ++a) {
      bool is_cut = true;
      for (TaskIndex b = 0; b < graph.size(); ++b) {
        is_cut = is_cut && (a == b || reachability.reaches(a, b) || reachability.reaches(b, a));
      }
      EXPECT_EQ(cuts[a], is_cut) << "task " << a << " of " << graph.size();
    }
  }
}

TEST(WorkGraph, LeavesOutFreeTasksAndKeepsPathsThroughThem) {
  // 0 -> 1 (free) -> 2 (free) -> 3, and 0 -> 3 directly.
  const TaskCase c = make_case({{}, {0}, {1}, {0, 2}, {2}}, {{{}, 1, 1}, {}, {}, {{}, 2, 2}, {{}, 3, 3}});
  const WorkGraph work = without_free_tasks(c.tasks);
  EXPECT_EQ(work.origin, (std::vector<TaskIndex>{0, 3, 4}));
  EXPECT_EQ(work.graph.predecessors, (std::vector<std::vector<TaskIndex>>{{}, {0}, {0}}));
  EXPECT_EQ(work.graph.successors, (std::vector<std::vector<TaskIndex>>{{1, 2}, {}, {}}));
}

TEST(WorkGraph, KeepsTheOrderOfTasksThatTakeTime) {
  Random random(13);
  for (int i = 0; i < 300; ++i) {
    const TaskCase c = random_case(random, draw_count(random, 1, 20));
    const WorkGraph work = without_free_tasks(c.tasks);
    const Reachability whole(c.tasks);
    const Reachability left(work.graph);
    for (TaskIndex a = 0; a < work.graph.size(); ++a) {
      for (TaskIndex b = 0; b < work.graph.size(); ++b) {
        ASSERT_EQ(left.reaches(a, b), whole.reaches(work.origin[a], work.origin[b]));
      }
    }
  }
}

TEST(WorkGraph, PutsFreeTasksBackBesideWhatTheyRead) {
  // 0 (free, for 1), 1 and 2 side by side, 3 (free, of 2), 4 reads all.
  const TaskCase c = make_case({{}, {0}, {}, {2}, {1, 3}}, {{}, {{}, 5, 5}, {{}, 4, 4}, {}, {{}, 1, 1}});
  const WorkGraph work = without_free_tasks(c.tasks);
  const Schedule schedule = to_schedule(c.tasks, work, {{{0}, {1}}, {{2}}});
  ASSERT_EQ(schedule.stages.size(), 2u);
  const auto node = [](uint32_t index) { return NodeId{index}; };
  EXPECT_EQ(schedule.stages[0].streams, (std::vector<std::vector<NodeId>>{{node(0), node(1)}, {node(2), node(3)}}));
  EXPECT_EQ(schedule.stages[1].streams, (std::vector<std::vector<NodeId>>{{node(4)}}));
  verify(schedule, c.graph);
}

TEST(WorkGraph, JoinsNeighbouringStagesOfOneStream) {
  const TaskCase c = make_case({{}, {0}, {1}, {1}});
  const WorkGraph work = without_free_tasks(c.tasks);
  EXPECT_EQ(to_schedule(c.tasks, work, {{{0}}, {{1}}, {{2}, {3}}}).stages.size(), 2u);
  EXPECT_TRUE(to_schedule(c.tasks, work, {{{0}}, {{1}}, {{2, 3}}}).is_sequential());
}

TEST(Parts, HoldEveryTaskOnceAfterWhatItReads) {
  Random random(14);
  for (int i = 0; i < 500; ++i) {
    const TaskGraph graph = random_case(random, draw_count(random, 1, 60)).tasks;
    const size_t max_part = draw_count(random, 1, 20);
    std::vector<uint8_t> done(graph.size(), 0);
    for (const auto& part : sequential_parts(graph, max_part)) {
      EXPECT_LE(part.size(), max_part);
      EXPECT_TRUE(std::is_sorted(part.begin(), part.end()));
      for (const TaskIndex task : part) {
        for (const TaskIndex source : graph.predecessors[task]) EXPECT_TRUE(done[source]) << source << " to " << task;
        EXPECT_FALSE(done[task]);
        done[task] = 1;
      }
    }
    EXPECT_EQ(static_cast<size_t>(std::count(done.begin(), done.end(), 1)), graph.size());
  }
}

TEST(Parts, KeepBranchesThatRunAtTheSameTimeTogether) {
  // Two chains of four, listed one after the other: each part has two tasks of both.
  const TaskCase c = make_case({{}, {0}, {1}, {2}, {}, {4}, {5}, {6}});
  EXPECT_EQ(sequential_parts(c.tasks, 4), (std::vector<std::vector<TaskIndex>>{{0, 1, 4, 5}, {2, 3, 6, 7}}));
}

TEST(Parts, AreCutWhereNothingRunsBeside) {
  // A diamond, a task alone, a diamond; and a skip over all of it that does not matter.
  const TaskCase c = make_case({{}, {0}, {0}, {1, 2}, {3}, {4}, {4}, {5, 6, 0}});
  const auto parts = sequential_parts(c.tasks, 64);
  EXPECT_EQ(parts, (std::vector<std::vector<TaskIndex>>{{0}, {1, 2, 3}, {4}, {5, 6, 7}}));
  const TaskGraph part = subgraph(c.tasks, parts[3]);
  EXPECT_EQ(part.predecessors, (std::vector<std::vector<TaskIndex>>{{}, {}, {0, 1}}));
  EXPECT_EQ(part.successors, (std::vector<std::vector<TaskIndex>>{{2}, {2}, {}}));
}

}  // namespace
}  // namespace autograph
