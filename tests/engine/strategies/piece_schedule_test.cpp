// Choosing among the options of parts by the schedule of the whole: the makespan of pieces is that of the graph that
// they make, and what refine() gives is never worse than where it began.
#include "engine/strategies/piece_schedule.h"

#include <gtest/gtest.h>

#include "autograph/random.h"
#include "optimize/search/backtracking.h"
#include "optimize/search/search_testing.h"
#include "schedule/schedulers/list.h"
#include "schedule/schedulers/task_stages.h"

namespace autograph {
namespace {

constexpr StreamLimits kLimits = {.max_streams = 3, .sync_us = 0.5};

// A cost that depends on the node alone, so that a node in a part costs what it costs in the whole.
Task task_of(const Graph& graph, NodeId id) {
  const double us = PlainCost().node_us(graph, id, 1);
  return {id, us, 1.3 * us, {}};
}

// On a device that streams share.
Task shared_task_of(const Graph& graph, NodeId id) {
  const double us = PlainCost().node_us(graph, id, 1);
  if (us == 0) return {id, 0, 0, {}};
  return {id, us, us, {.start_us = 0.4, .work_us = us - 0.4, .processors = 0.6, .bandwidth = 0.2}};
}

class PieceScheduleTest : public testing::Test {
 protected:
  PieceScheduleTest() : rules_(every_rule()), matcher_(rules_), fused_(cost_) {
    const Partition parts = partition(graph_, matcher_.find_all(graph_), {6, 13});
    num_parts_ = parts.parts.size();
    BacktrackingOptions options;
    options.max_popped = 12;
    options.keep = 4;
    for (const auto& [first, last] : parts.intervals) {
      std::vector<NodeId> nodes;
      for (uint32_t p = first; p <= last; ++p) nodes.insert(nodes.end(), parts.parts[p].begin(), parts.parts[p].end());
      const auto part = std::make_shared<const PartGraph>(extract_part(graph_, nodes));
      std::vector<Rewritten> found = backtrack(CandidateGraph(part->graph, fused_), matcher_, options);
      intervals_.push_back({first, last, part, std::make_shared<PartOptions>(PartOptions{part, std::move(found)})});
    }
  }

  // Minimal parts with any of their options.
  std::vector<Stitched::Piece> random_pieces(Random& random) const {
    std::vector<Stitched::Piece> pieces;
    for (uint32_t part = 0; part < num_parts_; ++part) {
      for (size_t n = 0; n < intervals_.size(); ++n) {
        if (intervals_[n].first != part || intervals_[n].last != part) continue;
        pieces.push_back({n, random() % intervals_[n].options().size()});
      }
    }
    return pieces;
  }

  double makespan_of_whole(const std::vector<Stitched::Piece>& pieces, const TaskCost& cost) const {
    const Graph whole = Assembler(graph_, intervals_, matcher_).assemble(pieces).graph;
    const TaskGraph work = without_free_tasks(make_task_graph(whole, cost)).graph;
    return estimate_us(work, list_stages(work, kLimits), kLimits);
  }

  Graph graph_ = gated_blocks(6);
  PlainCost cost_;
  std::vector<const Rule*> rules_;
  RuleMatcher matcher_;
  FusedCost fused_;
  size_t num_parts_ = 0;
  std::vector<IntervalOptions> intervals_;
};

TEST_F(PieceScheduleTest, MakespanIsThatOfTheWholeGraph) {
  Random random(71);
  for (const auto& cost : {task_of, shared_task_of}) {
    for (int i = 0; i < 40; ++i) {
      PieceSchedule schedule(intervals_, cost, kLimits);
      const std::vector<Stitched::Piece> pieces = random_pieces(random);
      const double whole = makespan_of_whole(pieces, cost);
      // Orders of equal rank may differ, and so may what a list scheduler makes of them, a little.
      EXPECT_NEAR(schedule.makespan_us(pieces), whole, 0.05 * whole);
    }
  }
}

TEST_F(PieceScheduleTest, RefiningNeverLosesAndEndsWhereNoPieceHelps) {
  Random random(72);
  for (int i = 0; i < 10; ++i) {
    PieceSchedule schedule(intervals_, shared_task_of, kLimits);
    const std::vector<Stitched::Piece> start = random_pieces(random);
    const Stitched refined = schedule.refine({start, 0}, [] { return false; });
    EXPECT_LE(refined.us, schedule.makespan_us(start));
    EXPECT_DOUBLE_EQ(refined.us, schedule.makespan_us(refined.pieces));
    for (size_t place = 0; place < refined.pieces.size(); ++place) {
      std::vector<Stitched::Piece> other = refined.pieces;
      for (other[place].option = 0; other[place].option < intervals_[other[place].interval].options().size();
           ++other[place].option) {
        EXPECT_GE(schedule.makespan_us(other), refined.us * (1 - 1e-6));
      }
    }
  }
}

TEST_F(PieceScheduleTest, StopsWhenTold) {
  Random random(73);
  PieceSchedule schedule(intervals_, task_of, kLimits);
  const std::vector<Stitched::Piece> start = random_pieces(random);
  const Stitched stopped = schedule.refine({start, 0}, [] { return true; });
  EXPECT_EQ(stopped.us, schedule.makespan_us(start));
}

}  // namespace
}  // namespace autograph
