// The generator of idiom graphs. The graphs themselves run in idiom_graphs.cpp, a program of its own that survives
// crashes.
#include <gtest/gtest.h>

#include <set>

#include "autograph/text.h"
#include "autograph/verify.h"
#include "random_graph/idioms/idioms.h"
#include "support/moved_runs.h"

namespace autograph {
namespace {

TEST(IdiomGraphs, DrawTheSameForTheSameSeed) {
  for (const uint64_t seed : {1, 7, 40}) {
    EXPECT_EQ(print_text(make_idiom_graph(seed).graph), print_text(make_idiom_graph(seed).graph));
  }
  EXPECT_NE(print_text(make_idiom_graph(1).graph), print_text(make_idiom_graph(2).graph));
}

TEST(IdiomGraphs, OfEachFamilyAreLegal) {
  for (const IdiomFamily& family : idiom_families()) {
    for (uint64_t seed = 0; seed < 15; ++seed) {
      SCOPED_TRACE(std::string(family.name) + " " + std::to_string(seed));
      IdiomGraph g(seed);
      family.add(g);
      const TestGraph test = g.finish();
      ASSERT_NO_THROW(verify(test.graph));
      ASSERT_NO_THROW(run_reference(test.graph, test.inputs)) << print_text(test.graph);
      EXPECT_GT(test.graph.num_nodes(), 0u);
    }
  }
}

TEST(IdiomGraphs, ComeFromAllFamilies) {
  std::set<std::string_view> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<std::string_view> blocks;
    make_idiom_graph(seed, &blocks);
    EXPECT_TRUE(!blocks.empty() && blocks.size() <= 6);
    seen.insert(blocks.begin(), blocks.end());
  }
  EXPECT_EQ(seen.size(), idiom_families().size());
}

}  // namespace
}  // namespace autograph
