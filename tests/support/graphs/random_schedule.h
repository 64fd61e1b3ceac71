// Random valid schedules for any graph.
#pragma once

#include "autograph/op_def.h"
#include "autograph/schedule.h"

namespace autograph {

/// Cuts a random topological order of `graph` into stages of up to `max_streams` streams of up to `max_threads` threads
/// each (now and then as many as the run gives them), and deals the nodes of each stage to its streams.
Schedule make_random_schedule(Random& random, const Graph& graph, int max_streams, int max_threads);

}  // namespace autograph
