#include "backends/sim/sim_stage_cost.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "backends/sim/simulate.h"
#include "backends/sim/stream_clock.h"
#include "base/check.h"
#include "schedule/task_stages.h"
#include "schedule/walk_streams.h"

namespace autograph {
namespace {

constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

class StageSimulator {
 public:
  StageSimulator(const Graph& graph, const TaskGraph& tasks, const SimMachine& machine)
      : start_us_(machine.graph_start_us),
        sync_us_(machine.sync_us),
        work_(without_free_tasks(tasks)),
        kernel_of_(tasks.size(), kNowhere) {
    for (size_t k = 0; k < work_.origin.size(); ++k) {
      kernel_of_[work_.origin[k]] = k;
      alone_.push_back(sim_kernel(graph, work_.graph.tasks[k].node, machine));
    }
  }

  double operator()(const TaskStreams& streams) const {
    std::vector<size_t> number_of(work_.graph.size(), kNowhere);  // of the kernels of this stage
    std::vector<uint8_t> is_here(work_.graph.size(), 0);
    for (const auto& stream : streams) {
      for (const TaskIndex task : stream) {
        if (kernel_of_[task] != kNowhere) is_here[kernel_of_[task]] = 1;
      }
    }
    std::vector<ClockKernel> kernels;
    const bool is_done = walk_streams(streams, [&](TaskIndex task, size_t stream) {
      const size_t kernel = kernel_of_[task];
      if (kernel == kNowhere) return true;
      ClockKernel added{.start_us = start_us_,
                        .work_us = alone_[kernel].work_us,
                        .sms_part = alone_[kernel].sms_part,
                        .bytes_part = alone_[kernel].bytes_part,
                        .stream = stream};
      for (const TaskIndex source : work_.graph.predecessors[kernel]) {
        if (!is_here[source]) continue;
        if (number_of[source] == kNowhere) return false;
        if (kernels[number_of[source]].stream != stream) added.waits.push_back(number_of[source]);
      }
      number_of[kernel] = kernels.size();
      kernels.push_back(std::move(added));
      return true;
    });
    AG_CHECK(is_done, "sim: the streams of a stage wait for each other in a circle");
    const std::vector<double> end_us = run_clock(kernels, sync_us_).end_us;
    if (end_us.empty()) return 0;
    const bool is_one = std::all_of(kernels.begin(), kernels.end(),
                                    [&](const ClockKernel& kernel) { return kernel.stream == kernels[0].stream; });
    return *std::max_element(end_us.begin(), end_us.end()) + (is_one ? 0 : sync_us_);
  }

 private:
  double start_us_;
  double sync_us_;
  WorkGraph work_;
  std::vector<size_t> kernel_of_;  // of each task
  std::vector<SimKernel> alone_;   // of each kernel
};

}  // namespace

StageCost sim_stage_cost(const Graph& graph, const TaskGraph& tasks, const SimMachine& machine) {
  return StageSimulator(graph, tasks, machine);
}

}  // namespace autograph
