// What the programs in examples/ compute, line by line and captured: the same bits on the reference, the same numbers
// within rounding by fused kernels.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "support/as_part.h"
#include "support/compare.h"
#include "support/example_functions.h"

namespace autograph {
namespace {

std::vector<Datum> results_of(const Example& example, const CaptureOptions* how, const std::string& device) {
  const EagerDevice scope(device);
  const ExampleFunction made = example.make();
  Captured graph = capture(made.function, how ? *how : CaptureOptions());
  std::vector<Datum> results;
  for (const std::vector<Var>& inputs : made.calls) {
    for (const Var& result : how ? graph(inputs) : made.function(inputs)) results.push_back(datum(result));
  }
  for (const Var& variable : made.variables) results.push_back(datum(variable));
  EXPECT_EQ(graph.num_captures() > 0, how != nullptr);
  return results;
}

TEST(ExamplesBothWays, TheSameBitsOnTheReference) {
  CaptureOptions options;
  options.compile.device = "reference";
  options.compile.expert.use_passes = false;
  for (const Example& example : example_functions()) {
    EXPECT_EQ(difference(results_of(example, &options, "reference"), results_of(example, nullptr, "reference"),
                         {.rtol = 0, .atol = 0}),
              "")
        << example.name;
  }
}

TEST(ExamplesBothWays, TheSameNumbersByFusedKernels) {
  const CaptureOptions options;
  for (const Example& example : example_functions()) {
    EXPECT_EQ(difference(results_of(example, &options, "cpu"), results_of(example, nullptr, "cpu"),
                         {.rtol = 1e-3, .atol = 1e-4}),
              "")
        << example.name;
  }
}

// Line by line and captured, of inputs that lie at odd places.
TEST(ExamplesBothWays, OfPartsOfLargerTensors) {
  const CaptureOptions options;
  for (const Example& example : example_functions()) {
    const Example of_parts{example.name, [&] {
                             ExampleFunction made = example.make();
                             for (std::vector<Var>& inputs : made.calls) {
                               for (Var& input : inputs) input = eager(as_part(datum(input)).tensor());
                             }
                             return made;
                           }};
    for (const CaptureOptions* how : {static_cast<const CaptureOptions*>(nullptr), &options}) {
      EXPECT_EQ(
          difference(results_of(of_parts, how, "cpu"), results_of(example, how, "cpu"), {.rtol = 1e-5, .atol = 1e-6}),
          "")
          << example.name << (how ? ", captured" : "");
    }
  }
}

// A new program has to be here, too, unless it computes nothing of its own.
TEST(ExamplesBothWays, AllProgramsAreThere) {
  std::set<std::string> programs{"inspect_graph", "print_plan", "tensor_files"}, found = programs;
  for (const Example& example : example_functions()) programs.insert(example.name);
  for (const auto& entry : std::filesystem::directory_iterator(AG_EXAMPLES_FOLDER)) {
    if (entry.path().extension() == ".cpp") found.insert(entry.path().stem());
  }
  EXPECT_EQ(programs, found);
}

}  // namespace
}  // namespace autograph
