#include "optimize/search/min_cut.h"

#include <gtest/gtest.h>

#include <random>

namespace autograph {
namespace {

struct Edge {
  uint32_t from;
  uint32_t to;
  double capacity;
};

double cut_of(const std::vector<Edge>& edges, const std::vector<bool>& side) {
  double sum = 0;
  for (const Edge& edge : edges) sum += side[edge.from] && !side[edge.to] ? edge.capacity : 0;
  return sum;
}

// The least cut of all sets that hold vertex 0 and not vertex 1.
double least_cut(const std::vector<Edge>& edges, uint32_t num_vertices) {
  double least = MinCut::kUnbounded;
  for (uint32_t set = 0; set < (1U << num_vertices); ++set) {
    if (!(set & 1U) || (set & 2U)) continue;
    std::vector<bool> side;
    for (uint32_t v = 0; v < num_vertices; ++v) side.push_back((set >> v) & 1U);
    least = std::min(least, cut_of(edges, side));
  }
  return least;
}

TEST(MinCut, IsTheLeastOfAllCutsOfRandomNetworks) {
  std::mt19937 random(1);
  for (int network = 0; network < 400; ++network) {
    const uint32_t num_vertices = 3 + random() % 6;
    std::vector<Edge> edges;
    MinCut cut(num_vertices);
    for (uint32_t e = 0; e < 2 * num_vertices + random() % 8; ++e) {
      const Edge edge{static_cast<uint32_t>(random() % num_vertices), static_cast<uint32_t>(random() % num_vertices),
                      static_cast<double>(random() % 20)};
      if (edge.from == edge.to) continue;
      edges.push_back(edge);
      cut.add_edge(edge.from, edge.to, edge.capacity);
    }
    const std::vector<bool> side = cut.source_side(0, 1);
    EXPECT_TRUE(side[0]);
    EXPECT_FALSE(side[1]);
    EXPECT_DOUBLE_EQ(cut.cut(), least_cut(edges, num_vertices));
    EXPECT_DOUBLE_EQ(cut_of(edges, side), cut.cut());
  }
}

TEST(MinCut, UnboundedEdgesAreNeverCut) {
  MinCut cut(4);
  cut.add_edge(0, 2, 5);
  cut.add_edge(2, 3, MinCut::kUnbounded);
  cut.add_edge(3, 1, 7);
  EXPECT_EQ(cut.source_side(0, 1), (std::vector<bool>{true, false, false, false}));
  EXPECT_DOUBLE_EQ(cut.cut(), 5);
}

}  // namespace
}  // namespace autograph
