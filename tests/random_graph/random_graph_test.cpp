// Random graphs: the CPU backend with all passes, and each pass alone, against the reference without any.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "autograph/compile.h"
#include "autograph/random.h"
#include "autograph/text.h"
#include "autograph/verify.h"
#include "optimize/pass.h"
#include "support/agreement.h"
#include "support/graphs/random_graph.h"

namespace autograph {
namespace {

// AG_RANDOM_GRAPHS=N runs N graphs instead of the default; AG_RANDOM_SEED=S starts at seed S.
int64_t setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

std::vector<Datum> run_on_cpu(const TestGraph& test) {
  CompileOptions options;
  options.threads = 1;
  return compile(test.graph, options).run(test.inputs);
}

// What the CPU makes of a graph that the reference refuses, for example because a drawn value is no legal index.
testing::AssertionResult cpu_refuses(const TestGraph& test) {
  try {
    run_on_cpu(test);
  } catch (const UserError&) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "the reference refuses this graph, the CPU runs it";
}

TEST(RandomGraph, CpuWithAllPassesMatchesTheReference) {
  const int64_t count = setting("AG_RANDOM_GRAPHS", 1000);
  const int64_t first = setting("AG_RANDOM_SEED", 1);
  int64_t refused = 0;
  for (int64_t seed = first; seed < first + count; ++seed) {
    Random random(static_cast<uint64_t>(seed));
    const TestGraph test = make_random_graph(random, 3 + static_cast<int>(seed % 12));
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::vector<Datum> expected;
    try {
      verify(test.graph);
      expected = run_reference(test.graph, test.inputs);
    } catch (const UserError& error) {
      ++refused;
      ASSERT_TRUE(cpu_refuses(test)) << error.what() << "\n" << print_text(test.graph);
      continue;
    }
    try {
      const std::vector<Datum> actual = run_on_cpu(test);
      ASSERT_EQ(disagreement(actual, expected, test), "") << print_text(test.graph);
    } catch (const Error& error) {
      FAIL() << error.what() << "\n" << print_text(test.graph);
    }
  }
  EXPECT_LE(refused * 10, count) << "too many drawn graphs are illegal: the samples are not";
}

// `graph` after one pass, on a device with kernels for all ops that have a meaning of their own; nothing when the pass
// does not change it.
std::optional<Graph> after_pass_alone(const Graph& graph, std::string_view name) {
  PassContext context;
  context.has_kernel = context.expects_kernel = [](const Graph& g, NodeId id) {
    const OpDef& op = g.node(id).op();
    return op.scalar || op.reference || op.evaluate;
  };
  PipelineOptions options;
  for (const PassDef& pass : all_passes()) {
    if (pass.name != name) options.disabled.emplace_back(pass.name);
  }
  Graph result = graph;
  bool changed = false;
  for (const PassReport& report : run_passes(result, context, options)) {
    changed = changed || (report.changed && report.name == name);
  }
  return changed ? std::optional(std::move(result)) : std::nullopt;
}

TEST(RandomGraph, EachPassAloneMatchesTheReference) {
  const int64_t count = std::max<int64_t>(1, setting("AG_RANDOM_GRAPHS", 1000) / 4);
  const int64_t first = setting("AG_RANDOM_SEED", 1);
  std::set<std::string_view> names;
  for (const PassDef& pass : all_passes()) names.insert(pass.name);
  int64_t compared = 0;
  for (int64_t seed = first; seed < first + count; ++seed) {
    Random random(static_cast<uint64_t>(seed));
    const TestGraph test = make_random_graph(random, 3 + static_cast<int>(seed % 12));
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::vector<Datum> expected;
    try {
      expected = run_reference(test.graph, test.inputs);
    } catch (const UserError&) {
      continue;  // the test above sees to those
    }
    for (const std::string_view name : names) {
      SCOPED_TRACE(name);
      const auto after = after_pass_alone(test.graph, name);
      if (!after) continue;
      const std::vector<Datum> actual = run_reference(*after, test.inputs);
      ASSERT_EQ(disagreement(actual, expected, test), "") << print_text(test.graph);
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace autograph
