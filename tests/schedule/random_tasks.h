// Random graphs of cheap ops for tests of schedulers, and what a schedule of tasks must hold.
#pragma once

#include <vector>

#include "autograph/builder.h"
#include "autograph/ops/elementwise.h"
#include "autograph/random.h"
#include "schedule/schedulers/task_stages.h"

namespace autograph {

inline size_t draw_count(Random& random, size_t low, size_t high) {
  return std::uniform_int_distribution<size_t>(low, high)(random);
}

/// A graph and its tasks.
struct TaskCase {
  Graph graph;
  TaskGraph tasks;
};

/// A graph with a node for each list of sources (sorted; they come earlier): `neg` of the input, or `sum` of the
/// sources.
inline Graph make_dag(const std::vector<std::vector<TaskIndex>>& sources) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{1}, "x");
  std::vector<Var> made;
  for (const auto& of_one : sources) {
    std::vector<Var> inputs;
    for (const TaskIndex source : of_one) inputs.push_back(made[source]);
    made.push_back(inputs.empty() ? neg(x) : sum(inputs));
  }
  for (const Var& var : made) {
    if (graph.value(var.id()).uses().empty()) graph.add_output(var.id());
  }
  return graph;
}

/// A graph made by make_dag() and its tasks, each at the index of its node, with these costs.
inline TaskCase make_case(const std::vector<std::vector<TaskIndex>>& sources, const std::vector<Task>& costs) {
  TaskCase made{make_dag(sources), {costs, sources, sources}};
  for (auto& readers : made.tasks.successors) readers.clear();
  for (TaskIndex task = 0; task < sources.size(); ++task) {
    made.tasks.tasks[task].node = NodeId{task};
    for (const TaskIndex source : sources[task]) made.tasks.successors[source].push_back(task);
  }
  return made;
}

/// As above, `us` on all threads and on those of one stream.
inline TaskCase make_case(const std::vector<std::vector<TaskIndex>>& sources, double us = 1) {
  return make_case(sources, std::vector<Task>(sources.size(), Task{{}, us, us}));
}

/// A random case of `size` nodes: now and then free ones, costs from small (streams pay) to large (they do not). Edges
/// are drawn among near nodes with a probability that is drawn too, so that there are chains, trees and dense graphs.
inline TaskCase random_case(Random& random, size_t size, bool with_free_tasks = true) {
  const size_t reach = draw_count(random, 1, std::max<size_t>(size / 2, 1));
  const auto edge = std::bernoulli_distribution(std::uniform_real_distribution<double>(0.02, 0.6)(random));
  std::vector<std::vector<TaskIndex>> sources(size);
  std::vector<Task> costs(size);
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = i < reach ? 0 : i - reach; j < i; ++j) {
      if (std::bernoulli_distribution(edge)(random)) sources[i].push_back(static_cast<TaskIndex>(j));
    }
    costs[i].us = static_cast<double>(draw_count(random, 1, 40)) / 4;
    costs[i].narrow_us = costs[i].us * (1 + static_cast<double>(draw_count(random, 0, 4)) / 4);
    if (with_free_tasks && draw_count(random, 0, 5) == 0) costs[i] = {};
  }
  return make_case(sources, costs);
}

}  // namespace autograph
