// Hashes of runs: what is the same in two of them, where they part, and the file in between.
#include "autograph/run_hashes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

// Two branches of x, added: relu(x) + neg(exp(x) * factor), on x of 40 elements.
Graph branches(float factor) {
  Graph graph("branches");
  const auto named = [&](const Var& value, const std::string& name) {
    graph.set_provenance(graph.value(value.id()).producer(), Provenance::named(name));
    return value;
  };
  const Var x = input(graph, DType::f32, {40}, "x");
  const Var left = named(relu(x), "relu");
  const Var scaled = named(named(exp(x), "exp") * constant(graph, Tensor::scalar(factor)), "mul");
  graph.add_output(named(left + named(neg(scaled), "neg"), "add").id(), "y");
  return graph;
}

RunHashes hashes_of(const Graph& graph, float first = -1) {
  CompileOptions options;
  options.expert.use_passes = false;
  options.threads = 1;
  const Executable program = compile(graph, options);
  std::vector<float> elements;
  for (int i = 0; i < 40; ++i) elements.push_back(first + 0.05F * static_cast<float>(i));
  const Tensor x = Tensor::of<float>({40}, elements);
  RunHashes run{.model = "branches", .version = "1", .machine = "m", .device = "cpu", .threads = 1};
  RunHasher hasher(run);
  hasher.add_input("x", x);
  program.run({x});
  return run;
}

TEST(RunHashes, EqualRunsAreEqual) {
  const RunHashes run = hashes_of(branches(2));
  EXPECT_EQ(run.inputs.size(), 1U);
  EXPECT_EQ(run.nodes.size(), 5U);
  const RunComparison found = compare_runs(run, hashes_of(branches(2)));
  EXPECT_EQ(found.num_compared, 6U);
  EXPECT_TRUE(found.differences.empty());
  EXPECT_EQ(found.first(), nullptr);
}

TEST(RunHashes, TheFirstDifferenceIsTheNodeThatMakesIt) {
  RunHashes a = hashes_of(branches(2));
  RunHashes b = a;
  // A kernel that gives other numbers: all behind it differs, too.
  for (HashedNode& node : b.nodes) {
    if (node.op != "mul" && node.op != "neg" && node.op != "add") continue;
    for (HashedValue& output : node.outputs) output.hash.low ^= 1;
    if (node.op != "mul") node.inputs[0].low ^= 1;
  }
  const RunComparison found = compare_runs(a, b);
  ASSERT_EQ(found.differences.size(), 3U);
  EXPECT_EQ(found.first()->name, "mul");
  EXPECT_TRUE(found.first()->inputs_agree);
  EXPECT_FALSE(found.differences.back().inputs_agree);
  EXPECT_EQ(found.first()->relative, 0);  // of what was kept, nothing differs
}

TEST(RunHashes, OtherWeightsAndOtherInputs) {
  const RunComparison weights = compare_runs(hashes_of(branches(2)), hashes_of(branches(2.5F)));
  ASSERT_EQ(weights.differences.size(), 3U);
  EXPECT_EQ(weights.differences[0].name, "mul");
  EXPECT_FALSE(weights.differences[0].inputs_agree);
  EXPECT_NEAR(weights.differences[0].relative, 0.2, 1e-6);
  const RunComparison inputs = compare_runs(hashes_of(branches(2)), hashes_of(branches(2), -0.5F));
  ASSERT_NE(inputs.first(), nullptr);
  EXPECT_EQ(inputs.first()->value, "x");
  EXPECT_EQ(inputs.first()->name, "");
}

TEST(RunHashes, ToleranceLeavesOutRounding) {
  const RunHashes a = hashes_of(branches(2));
  const RunHashes b = hashes_of(branches(2.00002F));
  EXPECT_EQ(compare_runs(a, b).differences.size(), 3U);
  const RunComparison close = compare_runs(a, b, 1e-3);
  EXPECT_TRUE(close.differences.empty());
  EXPECT_EQ(close.num_close, 3U);
  EXPECT_THROW(compare_runs(a, b, -1), ValueError);
}

TEST(RunHashes, NodesThatOneRunJoinedAreLeftOut) {
  CompileOptions options;
  const Executable program = compile(branches(2), options);
  RunHashes joined{.model = "branches"};
  const Tensor x = Tensor::zeros(DType::f32, {40});
  {
    RunHasher hasher(joined);
    program.run({x});
  }
  const RunHashes plain = hashes_of(branches(2));
  EXPECT_LT(joined.nodes.size(), plain.nodes.size());
  const RunComparison found = compare_runs(joined, plain);
  EXPECT_GE(found.num_compared, 1U);
  EXPECT_FALSE(found.only_in_b.empty());
  EXPECT_NE(message_of<ValueError>([&] { compare_runs(RunHashes{.model = "other"}, plain); }).find("'other'"),
            std::string::npos);
}

TEST(RunHashes, NodesThatHaveOnlyTheirOpAsNameAreNotMixedUp) {
  // Two casts in A of which a pass has left the second in B.
  RunHashes a = hashes_of(branches(2)), b = a;
  const auto unnamed = [](const char* type, float value) {
    const Tensor tensor = Tensor::scalar(value);
    return HashedNode{"cast", "cast", "cpu.cast", {}, {{"cast", type, tensor.content_hash(), {}, {}}}};
  };
  a.nodes.push_back(unnamed("i64[]", 1));
  a.nodes.push_back(unnamed("f32[]", 2));
  b.nodes.push_back(unnamed("f32[]", 2));
  const RunComparison found = compare_runs(a, b);
  EXPECT_TRUE(found.differences.empty()) << found.differences.front().value;
  EXPECT_EQ(found.only_in_a, (std::vector<std::string>{"cast", "cast"}));
  EXPECT_EQ(found.only_in_b, (std::vector<std::string>{"cast"}));
  // As many in both: their number tells them apart.
  b.nodes.push_back(unnamed("f32[]", 3));
  EXPECT_EQ(compare_runs(a, b).differences.size(), 2U);
}

TEST(RunHashes, TurnsOfALoopAreComparedOneByOne) {
  RunHashes a = hashes_of(branches(2));
  const std::vector<HashedNode> turn = a.nodes;
  a.nodes.insert(a.nodes.end(), turn.begin(), turn.end());
  RunHashes b = a;
  b.nodes.back().outputs[0].hash.high ^= 4;
  const RunComparison found = compare_runs(a, b);
  ASSERT_EQ(found.differences.size(), 1U);
  EXPECT_EQ(found.differences[0].turn, 1U);
}

class HashFile : public ::testing::Test {
 protected:
  TestFolder folder_;
  std::string path_ = folder_ / "hashes";
};

TEST_F(HashFile, ReadsBackWhatWasWritten) {
  RunHashes run = hashes_of(branches(2));
  run.model = "a \"model\"\nwith lines";
  run.nodes[1].outputs[0].sample[0] = std::numeric_limits<double>::quiet_NaN();
  run.nodes[1].outputs[0].sample[1] = -std::numeric_limits<double>::infinity();
  run.nodes[2].outputs[0].statistics.reset();
  write_run_hashes(path_, run);
  const RunHashes read = read_run_hashes(path_);
  EXPECT_EQ(read.model, run.model);
  EXPECT_EQ(read.threads, 1);
  ASSERT_EQ(read.nodes.size(), run.nodes.size());
  EXPECT_TRUE(std::isnan(read.nodes[1].outputs[0].sample[0]));
  EXPECT_EQ(read.nodes[1].outputs[0].sample[1], run.nodes[1].outputs[0].sample[1]);
  EXPECT_FALSE(read.nodes[2].outputs[0].statistics);
  EXPECT_EQ(read.nodes[0].outputs[0].statistics->rms, run.nodes[0].outputs[0].statistics->rms);
  EXPECT_EQ(read.nodes[3].inputs, run.nodes[3].inputs);
  const RunComparison found = compare_runs(run, read);
  EXPECT_EQ(found.num_compared, 6U);
  EXPECT_TRUE(found.differences.empty());
}

TEST_F(HashFile, DamagedFilesAreRefusedByLine) {
  write_run_hashes(path_, hashes_of(branches(2)));
  std::string text;
  {
    std::ifstream file(path_);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  const auto message = [&](const std::string& content) {
    std::ofstream(path_, std::ios::trunc) << content;
    return message_of<FormatError>([&] { read_run_hashes(path_); });
  };
  EXPECT_NE(message("").find("empty"), std::string::npos);
  EXPECT_NE(message("{\"a\": 1}\n").find("line 1"), std::string::npos);
  EXPECT_NE(message(text.substr(0, text.size() - 20)).find("line 7"), std::string::npos);
  const size_t hash = text.find("\"hash\":\"");
  EXPECT_NE(message(text.substr(0, hash + 8) + "xy" + text.substr(hash + 10)).find("hexadecimal"), std::string::npos);
  // Cut anywhere, it is refused or read, and nothing else.
  for (size_t end = 1; end < text.size(); end += 37) {
    std::ofstream(path_, std::ios::trunc) << text.substr(0, end);
    try {
      read_run_hashes(path_);
    } catch (const FormatError&) {
    }
  }
}

}  // namespace
}  // namespace autograph
