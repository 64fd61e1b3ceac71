// Which options of the parts make the fastest whole, by the schedule that would run: the makespan of the list scheduler
// over the tasks of all pieces. Costs of parts add up to something else where tasks run beside each other: this starts
// from what stitch() finds, and changes one piece after the other as long as that helps; equal pieces, such as the
// layers of a deep network, all at once first.
#pragma once

#include <functional>
#include <unordered_map>

#include "optimize/search/stitch.h"
#include "schedule/schedulers/list.h"

namespace autograph {

class PieceSchedule {
 public:
  /// `intervals` must outlive this. `cost` tells what a node of an option takes.
  PieceSchedule(const std::vector<IntervalOptions>& intervals, TaskCost cost, const StreamLimits& limits)
      : intervals_(intervals), cost_(std::move(cost)), makespan_(limits) {}

  /// Microseconds of the whole in its list schedule.
  double makespan_us(const std::vector<Stitched::Piece>& pieces);
  /// `from` with other options of its pieces, where that ends sooner; `us` of the result is the makespan. Stops when
  /// `should_stop` says so, with the best until then.
  Stitched refine(Stitched from, const std::function<bool()>& should_stop);

 private:
  // An option as tasks that are counted within it; the same for all parts that share it.
  struct OptionTasks {
    struct Source {
      bool is_inside = false;
      uint32_t index = 0;  // of a task inside; of an input of the part
    };
    std::vector<Task> tasks;
    std::vector<std::vector<Source>> sources;  // of each task
    std::vector<Source> outputs;               // what makes each output of the part
  };

  const OptionTasks& tasks_of(const Stitched::Piece& piece);
  OptionTasks make_tasks(const Graph& option) const;
  std::vector<std::vector<size_t>> equal_places(const std::vector<Stitched::Piece>& pieces) const;
  bool try_options(Stitched& best, const std::vector<size_t>& places, const std::function<bool()>& should_stop);
  TaskGraph compose(const std::vector<Stitched::Piece>& pieces);

  const std::vector<IntervalOptions>& intervals_;
  TaskCost cost_;
  ListMakespan makespan_;
  std::unordered_map<const CandidateGraph*, OptionTasks> known_;
};

}  // namespace autograph
