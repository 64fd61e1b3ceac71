#include "optimize/search/stitch.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace autograph {
namespace {

// Costs that differ by less than this share are those of the same graph.
constexpr double kSameCost = 1e-9;

// The first parts of the graph, put together in one way.
struct Prefix {
  std::vector<Stitched::Piece> pieces;
  double sum_us = 0;
  std::map<uint32_t, double> time_us;  // when values of the whole graph are there that parts have made so far
  double critical_us = 0;              // of what is done
  double us = 0;
};

class Stitcher {
 public:
  Stitcher(const std::vector<IntervalOptions>& intervals, double alpha, size_t keep)
      : intervals_(intervals), alpha_(alpha), keep_(keep) {}

  std::vector<Prefix> run(size_t num_parts) {
    std::vector<std::vector<Prefix>> best(num_parts + 1);
    best[0].emplace_back();
    for (size_t end = 1; end <= num_parts; ++end) {
      for (size_t n = 0; n < intervals_.size(); ++n) {
        if (intervals_[n].last + 1 != end) continue;
        for (const Prefix& prefix : best[intervals_[n].first]) extend(prefix, n, best[end]);
      }
      shorten(best[end]);
    }
    return best[num_parts];
  }

 private:
  void extend(const Prefix& prefix, size_t n, std::vector<Prefix>& longer) const {
    const IntervalOptions& interval = intervals_[n];
    std::vector<double> arrive;
    for (const ValueId v : interval.part->inputs) {
      const auto found = prefix.time_us.find(v.index);
      arrive.push_back(found == prefix.time_us.end() ? 0 : found->second);  // inputs of the graph are there at once
    }
    for (size_t option = 0; option < interval.options.size(); ++option) {
      const CandidateGraph& candidate = *interval.options[option].candidate;
      Prefix next = prefix;
      next.pieces.push_back({n, option});
      next.sum_us += candidate.score().sum_us;
      const std::vector<double> leave = candidate.output_times_us(arrive);
      for (size_t k = 0; k < leave.size(); ++k) {
        next.time_us[interval.part->outputs[k].index] = leave[k];
        next.critical_us = std::max(next.critical_us, leave[k]);
      }
      next.us = next.sum_us + alpha_ * next.critical_us;
      longer.push_back(std::move(next));
    }
  }

  void shorten(std::vector<Prefix>& prefixes) const {
    std::stable_sort(prefixes.begin(), prefixes.end(), [](const Prefix& a, const Prefix& b) { return a.us < b.us; });
    // The same choices arrive by several ways: as parts by themselves and as merges of them.
    const auto same = [](const Prefix& a, const Prefix& b) {
      return b.us - a.us <= kSameCost * a.us && std::abs(a.sum_us - b.sum_us) <= kSameCost * a.sum_us;
    };
    prefixes.erase(std::unique(prefixes.begin(), prefixes.end(), same), prefixes.end());
    if (prefixes.size() > keep_) prefixes.resize(keep_);
  }

  const std::vector<IntervalOptions>& intervals_;
  double alpha_;
  size_t keep_;
};

}  // namespace

std::vector<Stitched> stitch(const Graph& whole, const std::vector<IntervalOptions>& intervals, size_t num_parts,
                             double alpha, size_t keep) {
  std::vector<Stitched> result;
  for (Prefix& prefix : Stitcher(intervals, alpha, keep).run(num_parts)) {
    result.push_back({std::move(prefix.pieces), prefix.us});
  }
  AG_CHECK(!result.empty(), "stitch: no way through {} parts of '{}'", num_parts, whole.name());
  return result;
}

Graph assemble(const Graph& whole, const std::vector<IntervalOptions>& intervals, const Stitched& stitched) {
  Graph graph = whole;
  std::vector<ValueId> now(graph.value_capacity());
  for (uint32_t i = 0; i < now.size(); ++i) now[i] = {i};
  for (const Stitched::Piece& piece : stitched.pieces) {
    const IntervalOptions& interval = intervals[piece.interval];
    const Rewritten& option = interval.options[piece.option];
    if (option.steps.empty()) continue;
    replace_part(graph, *interval.part, option.candidate->graph(), now);
  }
  graph.erase_dead();
  return graph;
}

std::vector<RewriteStep> steps_of(const std::vector<IntervalOptions>& intervals, const Stitched& stitched) {
  std::vector<RewriteStep> steps;
  for (const Stitched::Piece& piece : stitched.pieces) {
    const auto& more = intervals[piece.interval].options[piece.option].steps;
    steps.insert(steps.end(), more.begin(), more.end());
  }
  return steps;
}

}  // namespace autograph
