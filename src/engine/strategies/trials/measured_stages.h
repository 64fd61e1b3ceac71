// Costs of stages by measurement, as IOS takes them (MLSys 2021, section 4): the nodes of a stage, as a graph of their
// own, run on the device on several streams and one after the other, in turns.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "engine/strategies/trials/trial.h"

namespace autograph {

/// Equal stages are measured once. What is measured counts from what the tasks take in sequence: the cost of
/// a stage of several streams is that sum times the ratio of both times. Stages whose estimate is far above their
/// sequence are not run, and behind `until`, a part of the budget, none is: then the estimate is the cost.
class MeasuredStages {
 public:
  /// Both must outlive this; `tasks` are those of `proposal.finished`.
  MeasuredStages(StrategyContext& context, const Proposal& proposal, const TaskGraph& tasks, double until)
      : context_(context), proposal_(proposal), tasks_(tasks), until_(until) {}

  /// Microseconds of a stage.
  double us(const TaskStreams& streams);
  /// Stages that were run on the device.
  size_t num_measured() const { return num_measured_; }

 private:
  std::optional<double> ratio(const TaskStreams& streams);

  StrategyContext& context_;
  const Proposal& proposal_;
  const TaskGraph& tasks_;
  double until_;
  size_t num_measured_ = 0;
  std::map<std::string, std::optional<double>> known_;  // nothing: it cannot be run by itself
};

}  // namespace autograph
