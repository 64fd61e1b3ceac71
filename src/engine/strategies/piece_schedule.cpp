#include "engine/strategies/piece_schedule.h"

#include <algorithm>
#include <map>
#include <optional>

#include "schedule/schedulers/task_stages.h"

namespace autograph {
namespace {

// Gains below this part are rounding.
constexpr double kMinGain = 1e-6;
constexpr int kMaxSweeps = 4;

}  // namespace

PieceSchedule::OptionTasks PieceSchedule::make_tasks(const Graph& graph) const {
  std::unordered_map<uint32_t, OptionTasks::Source> maker;  // of values of the option
  for (size_t i = 0; i < graph.inputs().size(); ++i) maker[graph.inputs()[i].index] = {false, static_cast<uint32_t>(i)};
  OptionTasks result;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    const auto task = static_cast<uint32_t>(result.tasks.size());
    result.tasks.push_back(cost_(graph, id));
    result.sources.emplace_back();
    for (const ValueId v : node.inputs()) {
      if (const auto found = maker.find(v.index); v.is_valid() && found != maker.end()) {
        result.sources.back().push_back(found->second);
      }
    }
    for (const ValueId v : node.outputs()) maker[v.index] = {true, task};
  }
  for (const ValueId v : graph.outputs()) {
    const auto found = maker.find(v.index);
    // A constant has no maker: nothing waits for it, as for a value of the whole graph that no task makes.
    result.outputs.push_back(found == maker.end() ? OptionTasks::Source{false, UINT32_MAX} : found->second);
  }
  return result;
}

const PieceSchedule::OptionTasks& PieceSchedule::tasks_of(const Stitched::Piece& piece) {
  const CandidateGraph* option = intervals_[piece.interval].options()[piece.option].candidate.get();
  const auto found = known_.find(option);
  return found != known_.end() ? found->second : known_.emplace(option, make_tasks(option->graph())).first->second;
}

TaskGraph PieceSchedule::compose(const std::vector<Stitched::Piece>& pieces) {
  TaskGraph whole;
  std::unordered_map<uint32_t, TaskIndex> maker;  // of values of the whole graph
  for (const Stitched::Piece& piece : pieces) {
    const OptionTasks& option = tasks_of(piece);
    const PartGraph& part = *intervals_[piece.interval].part;
    const auto first = static_cast<TaskIndex>(whole.size());
    const auto task_of = [&](const OptionTasks::Source& source) -> std::optional<TaskIndex> {
      if (source.is_inside) return first + source.index;
      if (source.index >= part.inputs.size()) return std::nullopt;
      const auto found = maker.find(part.inputs[source.index].index);
      return found == maker.end() ? std::nullopt : std::optional(found->second);
    };
    for (size_t task = 0; task < option.tasks.size(); ++task) {
      std::vector<TaskIndex> sources;
      for (const OptionTasks::Source& source : option.sources[task]) {
        if (const auto made_by = task_of(source)) sources.push_back(*made_by);
      }
      std::sort(sources.begin(), sources.end());
      sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
      for (const TaskIndex source : sources) whole.successors[source].push_back(first + static_cast<TaskIndex>(task));
      whole.tasks.push_back(option.tasks[task]);
      whole.successors.emplace_back();
      whole.predecessors.push_back(std::move(sources));
    }
    for (size_t k = 0; k < option.outputs.size(); ++k) {
      if (const auto made_by = task_of(option.outputs[k])) maker[part.outputs[k].index] = *made_by;
    }
  }
  return whole;
}

double PieceSchedule::makespan_us(const std::vector<Stitched::Piece>& pieces) {
  return makespan_.us(without_free_tasks(compose(pieces)).graph);
}

// Places whose pieces were found together and are the same: by place, those with more than one.
std::vector<std::vector<size_t>> PieceSchedule::equal_places(const std::vector<Stitched::Piece>& pieces) const {
  std::map<std::pair<size_t, size_t>, std::vector<size_t>> groups;  // by the first place with these options
  std::unordered_map<const PartOptions*, size_t> first;
  for (size_t place = 0; place < pieces.size(); ++place) {
    const size_t same = first.emplace(intervals_[pieces[place].interval].found.get(), place).first->second;
    groups[{same, pieces[place].option}].push_back(place);
  }
  std::vector<std::vector<size_t>> result;
  for (auto& [key, places] : groups) {
    if (places.size() > 1) result.push_back(std::move(places));
  }
  return result;
}

// Other options at all of the places at once; false: it was stopped.
bool PieceSchedule::try_options(Stitched& best, const std::vector<size_t>& places,
                                const std::function<bool()>& should_stop) {
  const Stitched::Piece chosen = best.pieces[places.front()];
  for (size_t option = 0; option < intervals_[chosen.interval].options().size(); ++option) {
    if (should_stop()) return false;
    if (option == best.pieces[places.front()].option) continue;
    std::vector<Stitched::Piece> pieces = best.pieces;
    for (const size_t place : places) pieces[place].option = option;
    const double us = makespan_us(pieces);
    if (us < best.us * (1 - kMinGain)) best = {std::move(pieces), us};
  }
  return true;
}

Stitched PieceSchedule::refine(Stitched from, const std::function<bool()>& should_stop) {
  makespan_.begin();
  Stitched best = std::move(from);
  best.us = makespan_us(best.pieces);
  for (const std::vector<size_t>& places : equal_places(best.pieces)) {
    if (!try_options(best, places, should_stop)) return best;
  }
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    const double before = best.us;
    for (size_t place = 0; place < best.pieces.size(); ++place) {
      if (!try_options(best, {place}, should_stop)) return best;
    }
    if (best.us > before * (1 - kMinGain)) break;
  }
  return best;
}

}  // namespace autograph
