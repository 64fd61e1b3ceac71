#include "optimize/search/stitch.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"

namespace autograph {
namespace {

// Costs that differ by less than this share are those of the same graph.
constexpr double kSameCost = 1e-9;
constexpr uint32_t kNone = UINT32_MAX;

// The first parts of the graph, put together in one way. What came before the last piece is shared.
struct Prefix {
  uint32_t before = kNone;  // in the list of all prefixes; kNone: nothing
  Stitched::Piece piece;
  double sum_us = 0;
  double critical_us = 0;        // of what is done
  std::vector<double> times_us;  // when the values that cross the cut are there
  double us = 0;
};

// What crosses the cut before each part: values that parts before it make and others read.
std::vector<std::vector<uint32_t>> crossing_values(const std::vector<IntervalOptions>& intervals, size_t num_parts) {
  std::unordered_map<uint32_t, uint32_t> made_in;
  std::unordered_map<uint32_t, uint32_t> last_read;
  for (const IntervalOptions& interval : intervals) {
    if (interval.first != interval.last) continue;
    for (const ValueId v : interval.part->outputs) made_in[v.index] = interval.first;
    for (const ValueId v : interval.part->inputs) last_read[v.index] = std::max(last_read[v.index], interval.first);
  }
  std::vector<std::vector<uint32_t>> crossing(num_parts + 1);
  for (const auto& [value, part] : made_in) {
    const auto last = last_read.find(value);
    if (last == last_read.end()) continue;  // an output of the graph alone
    for (uint32_t cut = part + 1; cut <= last->second; ++cut) crossing[cut].push_back(value);
  }
  for (auto& values : crossing) std::sort(values.begin(), values.end());
  return crossing;
}

uint32_t place_in(const std::vector<uint32_t>& values, ValueId v) {
  const auto at = std::lower_bound(values.begin(), values.end(), v.index);
  return at != values.end() && *at == v.index ? static_cast<uint32_t>(at - values.begin()) : kNone;
}

// Where an interval finds the times of its inputs, and where those behind it come from.
struct Wiring {
  std::vector<uint32_t> inputs;  // by input of the part: place before it; kNone: there from the start
  struct Source {
    bool is_output = false;
    uint32_t place = 0;  // of the part's output, or before the interval
  };
  std::vector<Source> behind;
};

Wiring wiring_of(const IntervalOptions& interval, const std::vector<std::vector<uint32_t>>& crossing) {
  const std::vector<uint32_t>& before = crossing[interval.first];
  Wiring wiring;
  for (const ValueId v : interval.part->inputs) wiring.inputs.push_back(place_in(before, v));
  const auto& outputs = interval.part->outputs;
  for (const uint32_t value : crossing[interval.last + 1]) {
    const auto made = std::find(outputs.begin(), outputs.end(), ValueId{value});
    const bool is_output = made != outputs.end();
    const uint32_t place = is_output ? static_cast<uint32_t>(made - outputs.begin()) : place_in(before, ValueId{value});
    AG_CHECK(place != kNone, "stitch: value {} crosses part {} and comes from nowhere", value, interval.first);
    wiring.behind.push_back({is_output, place});
  }
  return wiring;
}

class Stitcher {
 public:
  Stitcher(const std::vector<IntervalOptions>& intervals, size_t num_parts, const StitchOptions& options)
      : intervals_(intervals), options_(options), by_end_(num_parts + 1) {
    const auto crossing = crossing_values(intervals, num_parts);
    for (size_t n = 0; n < intervals.size(); ++n) {
      wiring_.push_back(wiring_of(intervals[n], crossing));
      by_end_[intervals[n].last + 1].push_back(n);
    }
  }

  std::vector<Stitched> run() {
    std::vector<std::vector<uint32_t>> best(by_end_.size());
    all_.emplace_back();
    best[0].push_back(0);
    for (size_t end = 1; end < best.size(); ++end) {
      std::vector<Prefix> longer;
      bool is_over = false;
      for (const size_t n : by_end_[end]) {
        is_over = is_over || (options_.should_stop && options_.should_stop());
        for (const uint32_t prefix : best[intervals_[n].first]) {
          extend(prefix, n, longer);
          if (is_over) break;
        }
      }
      shorten(longer, is_over ? 1 : options_.keep);
      for (Prefix& prefix : longer) {
        best[end].push_back(static_cast<uint32_t>(all_.size()));
        all_.push_back(std::move(prefix));
      }
    }
    std::vector<Stitched> result;
    for (const uint32_t whole : best.back()) result.push_back({pieces_of(whole), all_[whole].us});
    return result;
  }

 private:
  void extend(uint32_t before, size_t n, std::vector<Prefix>& longer) {
    const Prefix& prefix = all_[before];
    const Wiring& wiring = wiring_[n];
    std::vector<double> arrive;
    for (const uint32_t place : wiring.inputs) arrive.push_back(place == kNone ? 0 : prefix.times_us[place]);
    const std::vector<Rewritten>& options = intervals_[n].options();
    for (size_t option = 0; option < options.size(); ++option) {
      const CandidateGraph& candidate = *options[option].candidate;
      const std::vector<double> leave = paths_of(candidate).output_times_us(arrive);
      Prefix next{before, {n, option}, prefix.sum_us + candidate.score().sum_us, prefix.critical_us, {}, 0};
      for (const double us : leave) next.critical_us = std::max(next.critical_us, us);
      for (const Wiring::Source& source : wiring.behind) {
        next.times_us.push_back(source.is_output ? leave[source.place] : prefix.times_us[source.place]);
      }
      next.us = next.sum_us + options_.alpha * next.critical_us;
      longer.push_back(std::move(next));
    }
  }

  const PathTimes& paths_of(const CandidateGraph& candidate) {
    const auto found = paths_.find(&candidate);
    return found != paths_.end() ? found->second : paths_.emplace(&candidate, candidate.path_times()).first->second;
  }

  std::vector<Stitched::Piece> pieces_of(uint32_t whole) const {
    std::vector<Stitched::Piece> pieces;
    for (uint32_t at = whole; all_[at].before != kNone; at = all_[at].before) pieces.push_back(all_[at].piece);
    std::reverse(pieces.begin(), pieces.end());
    return pieces;
  }

  static void shorten(std::vector<Prefix>& prefixes, size_t keep) {
    std::stable_sort(prefixes.begin(), prefixes.end(), [](const Prefix& a, const Prefix& b) { return a.us < b.us; });
    // The same choices arrive by several ways: as parts by themselves and as merges of them.
    const auto same = [](const Prefix& a, const Prefix& b) {
      return b.us - a.us <= kSameCost * a.us && std::abs(a.sum_us - b.sum_us) <= kSameCost * a.sum_us;
    };
    prefixes.erase(std::unique(prefixes.begin(), prefixes.end(), same), prefixes.end());
    if (prefixes.size() > keep) prefixes.resize(keep);
  }

  const std::vector<IntervalOptions>& intervals_;
  const StitchOptions& options_;
  std::vector<std::vector<size_t>> by_end_;  // intervals by the part behind them
  std::vector<Wiring> wiring_;               // by interval
  std::vector<Prefix> all_;                  // that were kept
  std::unordered_map<const CandidateGraph*, PathTimes> paths_;
};

}  // namespace

std::vector<Stitched> stitch(const Graph& whole, const std::vector<IntervalOptions>& intervals, size_t num_parts,
                             const StitchOptions& options) {
  std::vector<Stitched> result = Stitcher(intervals, num_parts, options).run();
  AG_CHECK(!result.empty(), "stitch: no way through {} parts of '{}'", num_parts, whole.name());
  return result;
}

const Replayed& Assembler::replayed(const Stitched::Piece& piece) {
  const auto [at, is_new] = known_.try_emplace({piece.interval, piece.option});
  if (is_new) {
    const IntervalOptions& interval = intervals_[piece.interval];
    at->second = replay(interval.part->graph, matcher_, interval.options()[piece.option].steps);
  }
  return at->second;
}

Assembler::Whole Assembler::assemble(const std::vector<Stitched::Piece>& pieces) {
  Whole result{whole_, {}};
  std::vector<ValueId> now(result.graph.value_capacity());
  for (uint32_t i = 0; i < now.size(); ++i) now[i] = {i};
  for (const Stitched::Piece& piece : pieces) {
    const IntervalOptions& interval = intervals_[piece.interval];
    const Rewritten& option = interval.options()[piece.option];
    if (option.steps.empty()) continue;
    if (interval.found->part == interval.part) {
      replace_part(result.graph, *interval.part, option.candidate->graph(), now);
      result.steps.insert(result.steps.end(), option.steps.begin(), option.steps.end());
      continue;
    }
    const Replayed& here = replayed(piece);
    if (here.steps.size() < option.steps.size()) continue;
    replace_part(result.graph, *interval.part, here.graph, now);
    result.steps.insert(result.steps.end(), here.steps.begin(), here.steps.end());
  }
  result.graph.erase_dead();
  return result;
}

}  // namespace autograph
