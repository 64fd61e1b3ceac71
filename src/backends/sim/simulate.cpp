#include "backends/sim/simulate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "optimize/cost/node_work.h"
#include "optimize/match.h"
#include "schedule/schedulers/stream_clock.h"
#include "schedule/schedulers/task_stages.h"
#include "schedule/walk_streams.h"

namespace autograph {
namespace {

bool is_free(const Graph& graph, NodeId node) { return is_true_view(graph, node) || is_weight_only(graph, node); }

constexpr size_t kNotLaunched = std::numeric_limits<size_t>::max();
constexpr TaskIndex kNoKernel = std::numeric_limits<TaskIndex>::max();

// One run. Kernels are the tasks of the work graph.
class Simulation {
 public:
  Simulation(const Graph& graph, const Schedule& schedule, const SimMachine& machine, SimLaunch launch)
      : graph_(graph), machine_(machine), launch_(launch) {
    tasks_ = make_task_graph(graph, [&](const Graph& g, NodeId node) {
      // The cost only tells kernels from what is none.
      return is_free(g, node) ? Task{} : Task{node, 1, 1};
    });
    work_ = without_free_tasks(tasks_);
    place_kernels(schedule);
  }

  SimReport run() {
    add_kernels();
    const ClockReport clock = run_clock(clock_kernels_, machine_.sync_us);
    for (size_t k = 0; k < order_.size(); ++k) {
      report_.latency_us = std::max(report_.latency_us, clock.end_us[k]);
      end_us_[work_.origin[order_[k]]] = clock.end_us[k];
      begin_us_[work_.origin[order_[k]]] = clock.start_us[k];
    }
    if (report_.latency_us > 0) {
      report_.sms_busy_part = clock.sms_us / report_.latency_us;
      report_.bandwidth_busy_part = clock.bytes_us / report_.latency_us;
    }
    report_.max_running = clock.max_running;
    add_events();
    add_copies();
    return std::move(report_);
  }

 private:
  struct Place {
    size_t stage = 0;
    size_t stream = 0;
  };

  // Where each task stands, and the kernels of each stage.
  void place_kernels(const Schedule& schedule) {
    places_.resize(tasks_.size());
    begin_us_.assign(tasks_.size(), 0);
    end_us_.assign(tasks_.size(), 0);
    kernel_of_.assign(tasks_.size(), kNoKernel);
    std::vector<TaskIndex> task_of(graph_.node_capacity());
    for (TaskIndex task = 0; task < tasks_.size(); ++task) task_of[tasks_.tasks[task].node.index] = task;
    for (TaskIndex kernel = 0; kernel < work_.origin.size(); ++kernel) kernel_of_[work_.origin[kernel]] = kernel;
    if (schedule.is_sequential()) {
      stages_.emplace_back(1, std::vector<TaskIndex>(work_.graph.size()));
      std::iota(stages_[0][0].begin(), stages_[0][0].end(), 0);
      return;
    }
    verify(schedule, graph_);
    for (size_t stage = 0; stage < schedule.stages.size(); ++stage) {
      const auto& streams = schedule.stages[stage].streams;
      stages_.emplace_back(streams.size());
      for (size_t stream = 0; stream < streams.size(); ++stream) {
        for (const NodeId node : streams[stream]) {
          const TaskIndex task = task_of[node.index];
          places_[task] = {stage, stream};
          if (kernel_of_[task] != kNoKernel) stages_[stage][stream].push_back(kernel_of_[task]);
        }
      }
    }
  }

  // Fills order_ and clock_kernels_.
  void add_kernels() {
    number_of_.assign(work_.graph.size(), kNotLaunched);
    std::vector<size_t> last_of_stage;  // kernels that the next stage waits for
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      std::vector<size_t> last(stages_[stage].size(), kNotLaunched);
      walk_streams(stages_[stage], [&](TaskIndex kernel, size_t stream) {
        const auto& sources = work_.graph.predecessors[kernel];
        const auto is_known = [&](TaskIndex source) { return number_of_[source] != kNotLaunched; };
        if (!std::all_of(sources.begin(), sources.end(), is_known)) return false;
        ClockKernel added = clock_kernel(kernel, stream);
        added.waits = waits_in_stage(kernel, {stage, stream});
        if (last[stream] == kNotLaunched) add_others(last_of_stage, stream, added.waits);
        report_.num_waits += added.waits.size();
        last[stream] = number_of_[kernel] = order_.size();
        order_.push_back(kernel);
        clock_kernels_.push_back(std::move(added));
        return true;
      });
      std::erase(last, kNotLaunched);
      if (!last.empty()) last_of_stage = std::move(last);
    }
  }

  ClockKernel clock_kernel(TaskIndex kernel, size_t stream) const {
    const SimKernel alone = sim_kernel(graph_, work_.graph.tasks[kernel].node, machine_);
    ClockKernel added;
    added.work_us = alone.work_us;
    added.sms_part = alone.sms_part;
    added.bytes_part = alone.bytes_part;
    added.stream = stream;
    added.start_us = start_us();
    if (launch_ == SimLaunch::eager) {
      added.launched_us = machine_.eager_launch_us * static_cast<double>(order_.size() + 1);
    }
    return added;
  }

  double start_us() const { return launch_ == SimLaunch::graph ? machine_.graph_start_us : machine_.eager_start_us; }

  // Adds those of `kernels` that run in other streams.
  void add_others(const std::vector<size_t>& kernels, size_t stream, std::vector<size_t>& waits) const {
    for (const size_t number : kernels) {
      if (clock_kernels_[number].stream != stream) waits.push_back(number);
    }
  }

  // The last source in each other stream of this stage; the stage has waited for earlier ones as a whole.
  std::vector<size_t> waits_in_stage(TaskIndex kernel, const Place& place) const {
    std::vector<size_t> latest(stages_[place.stage].size(), kNotLaunched);
    for (const TaskIndex source : work_.graph.predecessors[kernel]) {
      const Place& there = places_[work_.origin[source]];
      if (there.stage != place.stage || there.stream == place.stream) continue;
      size_t& last = latest[there.stream];
      last = last == kNotLaunched ? number_of_[source] : std::max(last, number_of_[source]);
    }
    std::erase(latest, kNotLaunched);
    return latest;
  }

  void add_events() {
    for (TaskIndex task = 0; task < tasks_.size(); ++task) {
      const NodeId node = tasks_.tasks[task].node;
      SimEvent event{.node = node, .stage = places_[task].stage, .stream = places_[task].stream};
      if (kernel_of_[task] == kNoKernel) {
        for (const TaskIndex source : tasks_.predecessors[task]) {
          end_us_[task] = std::max(end_us_[task], end_us_[source]);
        }
        begin_us_[task] = end_us_[task];
      } else {
        const SimKernel alone = sim_kernel(graph_, node, machine_);
        event.alone_us = start_us() + alone.work_us;
        event.sms_part = alone.sms_part;
      }
      event.start_us = begin_us_[task];
      event.end_us = end_us_[task];
      report_.events.push_back(event);
    }
    std::stable_sort(report_.events.begin(), report_.events.end(), [](const SimEvent& a, const SimEvent& b) {
      return std::tie(a.start_us, a.stage, a.stream) < std::tie(b.start_us, b.stage, b.stream);
    });
  }

  void add_copies() {
    for (const ValueId v : graph_.inputs()) report_.input_copy_us += copy_us(graph_.type(v));
    for (const ValueId v : graph_.outputs()) report_.output_copy_us += copy_us(graph_.type(v));
  }

  double copy_us(const Type& type) const {
    if (!type.is_static()) return machine_.copy_start_us;
    const double bytes =
        static_cast<double>(type.shape().num_elements().value_or(0)) * static_cast<double>(element_size(type.dtype()));
    return machine_.copy_start_us + bytes / (machine_.copy_gb_per_s * 1e3);
  }

  const Graph& graph_;
  const SimMachine& machine_;
  SimLaunch launch_;
  TaskGraph tasks_;
  WorkGraph work_;
  std::vector<TaskStreams> stages_;         // of kernels
  std::vector<Place> places_;               // of each task
  std::vector<TaskIndex> kernel_of_;        // of each task
  std::vector<TaskIndex> order_;            // kernels in order of launch
  std::vector<size_t> number_of_;           // of each kernel: its place in order_
  std::vector<ClockKernel> clock_kernels_;  // parallel to order_
  std::vector<double> begin_us_;            // of each task
  std::vector<double> end_us_;              // of each task
  SimReport report_;
};

}  // namespace

namespace {

// A part of a kernel's work whose blocks wait for nothing.
struct Blocks {
  double us = 0;  // of computing
  double sms_part = 0;
};

Blocks in_blocks(double blocks, const NodeWork& work, double flops, const SimMachine& machine) {
  const double waves = blocks / (machine.sms * machine.blocks_per_sm);
  double efficiency = machine.efficiency_of(*work.op) * waves / std::ceil(waves);
  if (work.op->traits.anchor) efficiency *= work.inner() / (work.inner() + machine.inner_half);
  return {flops > 0 ? flops / (machine.tflops * 1e6 * efficiency) : 0, std::min(1.0, waves)};
}

// The blocks of all outputs and bytes share this part of the work.
Blocks at_once(const NodeWork& work, double flops, const SimMachine& machine) {
  const double blocks =
      std::max({1.0, std::ceil(work.outputs / machine.block_outputs), std::ceil(work.bytes / machine.block_bytes)});
  return in_blocks(blocks, work, flops, machine);
}

// Steps follow one another, each behind a wait of all blocks for the last one of the step before. R is shared evenly:
// with whole blocks of it two directions in one kernel would take another time than side by side.
Blocks step_by_step(const NodeWork& work, const WalkWork& walk, const SimMachine& machine) {
  const double blocks = std::max({1.0, walk.outputs / machine.block_outputs, walk.bytes / machine.block_bytes});
  Blocks result = in_blocks(blocks, work, walk.flops, machine);
  result.us = walk.steps * result.us + (walk.steps - 1) * machine.sync_us;
  return result;
}

Blocks blocks_of(const NodeWork& work, const SimMachine& machine) {
  if (!work.walk) return at_once(work, work.flops, machine);
  const Blocks walk = step_by_step(work, *work.walk, machine);
  const Blocks before = at_once(work, std::max(0.0, work.flops - work.walk->steps * work.walk->flops), machine);
  const double us = before.us + walk.us;
  return {us, (before.us * before.sms_part + walk.us * walk.sms_part) / us};  // the mean over time
}

}  // namespace

SimKernel sim_kernel(const Graph& graph, NodeId node, const SimMachine& machine) {
  SimKernel kernel;
  const NodeWork work = node_work(graph, node);
  if (is_free(graph, node) || !work.is_known) return kernel;
  const Blocks computing = blocks_of(work, machine);
  kernel.sms_part = computing.sms_part;
  const double full_us = work.bytes / (machine.gb_per_s * 1e3);
  kernel.work_us = std::max(computing.us, full_us / std::min(1.0, kernel.sms_part / machine.gb_per_s_part));
  if (kernel.work_us > 0) kernel.bytes_part = full_us / kernel.work_us;
  return kernel;
}

SimReport simulate(const Graph& graph, const Schedule& schedule, const SimMachine& machine, SimLaunch launch) {
  return Simulation(graph, schedule, machine, launch).run();
}

std::string to_string(const SimReport& report, const Graph& graph) {
  std::string text;
  for (const SimEvent& event : report.events) {
    if (event.alone_us == 0) continue;
    text += fmt::format("{:.3f} {:.3f} {}.{} {} #{}\n", event.start_us, event.end_us, event.stage, event.stream,
                        graph.node(event.node).op().name, event.node.index);
  }
  return text;
}

double SimCost::node_us(const Graph& graph, NodeId node, int) {
  if (is_free(graph, node)) return 0;
  return machine_.graph_start_us + sim_kernel(graph, node, machine_).work_us;
}

std::optional<KernelLoad> SimCost::node_load(const Graph& graph, NodeId node) {
  if (is_free(graph, node)) return KernelLoad{};
  const SimKernel kernel = sim_kernel(graph, node, machine_);
  return KernelLoad{machine_.graph_start_us, kernel.work_us, kernel.sms_part, kernel.bytes_part};
}

}  // namespace autograph
