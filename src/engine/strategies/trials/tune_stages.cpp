#include "engine/strategies/trials/tune_stages.h"

#include <algorithm>

#include "base/median.h"
#include "engine/node_times.h"

namespace autograph {
namespace {

constexpr int kRuns = 7;
// A stage of streams must save this part of its time: what is measured is noisy.
constexpr double kMinGain = 0.03;

// Spans of the nodes in each of several runs, by node.
using Spans = std::vector<std::vector<NodeSpan>>;

// Median over runs of the time from the first start to the last end of a stage.
double stage_us(const Stage& stage, const Spans& runs) {
  std::vector<double> lasted;
  for (const auto& spans : runs) {
    double start = 1e300;
    double end = 0;
    for (const auto& stream : stage.streams) {
      for (const NodeId id : stream) {
        if (spans[id.index].us() <= 0) continue;
        start = std::min(start, spans[id.index].start_us);
        end = std::max(end, spans[id.index].end_us);
      }
    }
    lasted.push_back(std::max(0.0, end - start));
  }
  return median(lasted);
}

// The same of its nodes one after the other.
double sum_us(const Stage& stage, const Spans& runs) {
  std::vector<double> sums;
  for (const auto& spans : runs) {
    double sum = 0;
    for (const auto& stream : stage.streams) {
      for (const NodeId id : stream) sum += spans[id.index].us();
    }
    sums.push_back(sum);
  }
  return median(sums);
}

Stage one_stream(const Graph& graph, const Stage& stage) {
  std::vector<bool> is_here(graph.node_capacity(), false);
  for (const auto& stream : stage.streams) {
    for (const NodeId id : stream) is_here[id.index] = true;
  }
  Stage result;
  result.streams.emplace_back();
  for (const NodeId id : graph.topological_order()) {
    if (is_here[id.index]) result.streams[0].push_back(id);
  }
  return result;
}

}  // namespace

Schedule keep_paying_stages(const Trial& trial, const Proposal& proposal) {
  Proposal plain = proposal;
  plain.schedule = {};
  const Spans side_by_side = trial.profile(proposal, kRuns);
  const Spans in_turn = trial.profile(plain, kRuns);
  Schedule schedule;
  for (const Stage& stage : proposal.schedule.stages) {
    const bool pays =
        stage.streams.size() < 2 || stage_us(stage, side_by_side) < (1 - kMinGain) * sum_us(stage, in_turn);
    schedule.stages.push_back(pays ? stage : one_stream(proposal.finished, stage));
  }
  return schedule.width() > 1 ? schedule : Schedule();
}

}  // namespace autograph
