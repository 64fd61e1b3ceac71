// Running a schedule on a simulated device: a machine of streams with an exact clock.
//
// A kernel first starts (which takes no processors) and then works. Its blocks fill a part of the processors, and its
// bytes take a part of the bandwidth. Kernels of several streams share both: as long as they ask for no more than there
// is, each works at full speed; otherwise all slow down in the same proportion. Time is continuous and computed event
// by event, so that a run is exact and always the same. The next stage begins when all streams of a stage have come to
// their end. Views and weight-only nodes are no kernels. See docs/design/0003.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "autograph/schedule.h"
#include "backends/sim/sim_machine.h"
#include "optimize/cost/cost_model.h"

namespace autograph {

/// One kernel by itself.
struct SimKernel {
  double work_us = 0;     ///< With nothing beside it, after the start.
  double sms_part = 0;    ///< Part of the processors that its blocks fill.
  double bytes_part = 0;  ///< Part of the bandwidth that it takes while it works alone.
};

/// The kernel of a node; nothing to do for views and weight-only nodes.
SimKernel sim_kernel(const Graph& graph, NodeId node, const SimMachine& machine);

/// Who starts kernels.
enum class SimLaunch : uint8_t {
  graph,  ///< The device, from a captured graph.
  eager,  ///< The host: one thread that launches one kernel after the other, in an order that the streams allow.
};

/// A node that ran.
struct SimEvent {
  NodeId node;
  size_t stage = 0;
  size_t stream = 0;    ///< In its stage.
  double start_us = 0;  ///< When its start begins. Views start and end when what they read is there.
  double end_us = 0;
  double alone_us = 0;  ///< What the same takes with nothing beside it, its start included.
  double sms_part = 0;
};

/// What happened in a run.
struct SimReport {
  double latency_us = 0;           ///< From the start of the first kernel to the end of the last.
  double input_copy_us = 0;        ///< Inputs to the device, by one copy engine; not in the latency.
  double output_copy_us = 0;       ///< Outputs to the host, by another; not in the latency.
  double sms_busy_part = 0;        ///< Part of processors times latency that was used.
  double bandwidth_busy_part = 0;  ///< Part of bandwidth times latency that was used.
  size_t num_waits = 0;            ///< Waits for kernels of other streams and for stages.
  size_t max_running = 0;          ///< Kernels working at the same time, at most.
  std::vector<SimEvent> events;    ///< Every live node, by the start, then by stage and stream.
};

/// Runs `schedule`, or the nodes one after the other where it is sequential.
SimReport simulate(const Graph& graph, const Schedule& schedule, const SimMachine& machine,
                   SimLaunch launch = SimLaunch::graph);

/// A line for each node that took time: "start end stage.stream op #node". For logs and golden tests.
std::string to_string(const SimReport& report, const Graph& graph);

/// What nodes take on a simulated device by themselves, launched from a captured graph. A stream has the whole device,
/// so `threads` means nothing.
class SimCost : public CostModel {
 public:
  explicit SimCost(SimMachine machine) : machine_(std::move(machine)) {}
  double node_us(const Graph& graph, NodeId node, int threads) override;
  std::optional<KernelLoad> node_load(const Graph& graph, NodeId node) override;
  /// Every concat and every split is a kernel here.
  bool places_parts() const override { return false; }
  int threads() const override { return 1; }
  const SimMachine& machine() const { return machine_; }

 private:
  SimMachine machine_;
};

}  // namespace autograph
