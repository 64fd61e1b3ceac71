// Which node runs when, on which stream: what a strategy decides besides the graph. Plain data.
//
// A schedule is a list of stages that run one after the other. The streams of one stage run at the same time, each its
// nodes in order; a node also waits for the nodes of other streams whose values it reads. A stage with one stream has
// all threads of the run; in a stage with several, each stream has threads of its own.
#pragma once

#include <string>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// Streams that run at the same time.
struct Stage {
  int threads = 0;  ///< Of each stream; 0: the threads of the run divided by the number of streams, at least one.
  std::vector<std::vector<NodeId>> streams;  ///< Nodes of each stream in the order in which they start.
};

/// Without stages: every node by itself, in the order of the graph, on all threads.
struct Schedule {
  std::vector<Stage> stages;  ///< In order. Every node that runs stands in exactly one stream of one stage.

  /// No stages at all.
  bool is_sequential() const { return stages.empty(); }
  /// The largest number of streams of a stage; 1 for a sequential schedule.
  int width() const;
};

/// What is wrong with the schedule, naming the node; "" when every live node of `graph` stands in it exactly once and
/// after (or, in the same stage, not circularly waiting for) what it reads.
std::string find_fault(const Schedule& schedule, const Graph& graph);

/// Throws InternalError with what find_fault() says.
void verify(const Schedule& schedule, const Graph& graph);

/// The schedule as text, a line for each stream: for logs and golden tests.
std::string to_string(const Schedule& schedule, const Graph& graph);

}  // namespace autograph
