// Every verb on a file whose names hold escapes, line feeds and bytes that are no UTF-8: what it prints and writes
// holds none of them, and JSON stays JSON.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "autograph/builder.h"
#include "autograph/model_io.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "base/printable.h"
#include "cli/run_program.h"

namespace autograph {
namespace {

const std::string kBad =
    "b\xff"
    "d\033[31m\nname\xc2\x9b\xe2\x80\xae";
const std::string kShown = "b\\xffd\\x1b[31m\\nname\\u009b\\u202e";

// Picks rows of an input by another, all with names of that kind. ONNX holds such names where a writer does not check.
class HostileNames : public testing::Test {
 protected:
  void SetUp() override {
    Graph graph(kBad + "graph");
    const Var x = input(graph, DType::f32, {Dim::symbol(kBad + "dim"), 4}, kBad + "x");
    const Var rows = input(graph, DType::i64, {2}, kBad + "rows");
    const Var picked = gather(relu(x), rows);
    graph.set_provenance(graph.value(picked.id()).producer(), Provenance::named(kBad + "scope/" + kBad + "gather"));
    graph.add_output(picked.id(), kBad + "y");
    save_onnx(graph, folder_ / "m.onnx", {.doc = kBad});
  }

  static std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

  static void expect_clean(const std::string& text, const std::string& what) {
    EXPECT_EQ(printable_lines(text), text) << what;
  }

  TestFolder folder_;
};

TEST_F(HostileNames, NoVerbPrintsThem) {
  const std::string model = folder_ / "m.onnx";
  for (const std::string verb : {"info ", "check ", "run ", "bench --seconds 0 ", "profile ", "bisect ",
                                 "run --log=+kernels,+plan,+load,+compile,+time "}) {
    const ProgramResult result = run_program(verb + model);
    EXPECT_EQ(result.exit_code, 0) << verb << result.err;
    expect_clean(result.out, verb);
    expect_clean(result.err, verb);
    const bool shows_names = verb != "bench --seconds 0 " && verb != "bisect ";
    EXPECT_EQ((result.out + result.err).find(kShown) != std::string::npos, shows_names) << verb << result.out;
    if (verb.starts_with("run --log")) continue;
    const ProgramResult as_json = run_program(verb + "--json " + model);
    EXPECT_NO_THROW(as_json.json()) << verb << as_json.out;
    expect_clean(as_json.out, verb + "--json");
  }
  EXPECT_EQ(run_program("info --json " + model).json()["outputs"][0]["name"],
            "b\\xffd\033[31m\nname\xc2\x9b\xe2\x80\xaey");
}

TEST_F(HostileNames, NeitherDoVerbsThatSearchCompareOrDifferentiate) {
  const std::string model = folder_ / "m.onnx", plan = folder_ / "m.agplan", cache = " --cache-dir " + (folder_ / "c ");
  const std::string node = "'" + kBad + "scope/" + kBad + "gather'";
  const std::vector<std::string> commands = {
      "optimize --budget 0.3 --explain --why " + node + cache + model + " -o " + plan,
      "run " + plan,
      "info " + plan,
      "check " + plan,
      "info --passes " + model,
      "bench --seconds 0 --memory " + model,
      "compare --strategies sequential,taso --seconds 0.1 --budget 0.1 " + cache + model,
      "check --gradients --seconds 1 " + model,
      "grad " + model + " -o " + (folder_ / "g.onnx"),
      "diff " + model + " " + plan,
      "viz " + plan + " -o " + (folder_ / "p.svg"),
  };
  for (const std::string& command : commands) {
    for (const std::string json : {"", " --json"}) {
      const ProgramResult result = run_program(command + json);
      EXPECT_TRUE(result.exit_code == 0 || (result.exit_code == 6 && command.starts_with("diff ")))
          << command << result.err;
      expect_clean(result.out, command + json);
      expect_clean(result.err, command + json);
      for (const std::string& line : lines_of(result.out))
        EXPECT_FALSE(line.starts_with("name")) << command << result.out;
      if (json.empty()) continue;
      EXPECT_NO_THROW(result.json()) << command << result.out;
    }
  }
  expect_clean(read_text(folder_ / "p.svg"), "picture of a plan");
  const ProgramResult near = run_program("run " + plan + " --input '" + kBad + "rowz=1'");
  EXPECT_EQ(near.exit_code, 2);
  EXPECT_NE(near.err.find("did you mean '" + kShown + "rows'"), std::string::npos) << near.err;
  EXPECT_EQ(std::count(near.err.begin(), near.err.end(), '\n'), 1) << near.err;
}

TEST_F(HostileNames, ObservedRunsShowThemEscaped) {
  const std::string model = folder_ / "m.onnx";
  for (const std::string verb : {"run --watch '*' ", "run --break '*' "}) {
    const ProgramResult result = run_program(verb + model);
    EXPECT_EQ(result.exit_code, 0) << verb << result.err;
    expect_clean(result.out, verb);
    expect_clean(result.err, verb);
    EXPECT_NE((result.out + result.err).find("gather " + kShown), std::string::npos)
        << verb << result.out << result.err;
  }
  const std::string a = folder_ / "a.json", b = folder_ / "b.json";
  ASSERT_EQ(run_program("run --hashes " + a + " " + model).exit_code, 0);
  ASSERT_EQ(run_program("run --seed 7 --hashes " + b + " " + model).exit_code, 0);
  expect_clean(read_text(a), "hashes");
  const ProgramResult parted = run_program("diff-runs " + a + " " + b);
  EXPECT_EQ(parted.exit_code, 6) << parted.err;
  expect_clean(parted.out, "diff-runs");
  EXPECT_NE(parted.out.find("the runs part at"), std::string::npos);
  // JSON has no bytes that are no UTF-8.
  EXPECT_NE(parted.out.find("d\\x1b[31m\\nname\\u009b\\u202ex"), std::string::npos) << parted.out;
}

TEST_F(HostileNames, NoErrorShowsThem) {
  const std::string model = folder_ / "m.onnx";
  const ProgramResult unknown = run_program("run " + model + " --dim " + "nam=3");
  EXPECT_EQ(unknown.exit_code, 2);
  const ProgramResult wrong = run_program("run --json " + model + " --batch 3");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NO_THROW(wrong.json());
  for (const ProgramResult& result : {unknown, wrong}) {
    expect_clean(result.err, "error");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

// A line for what was expected and one for each tensor, whatever stands in their names.
TEST_F(HostileNames, TensorsOfErrorsAboutMemoryAreLines) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {1 << 19});
  graph.output(kBad + "y", exp(x));
  save_onnx(graph.build(), folder_ / "large.onnx");
  const std::string over = "run --memory-budget 1 " + (folder_ / "large.onnx");
  const ProgramResult result = run_program(over);
  EXPECT_EQ(result.exit_code, 5) << result.err;
  expect_clean(result.err, "error");
  EXPECT_NE(result.err.find(kShown + "y made by "), std::string::npos) << result.err;
  const std::vector<std::string> lines = lines_of(result.err);
  ASSERT_GT(lines.size(), 1U);
  for (size_t i = 1; i < lines.size(); ++i) EXPECT_NE(lines[i].find(" made by "), std::string::npos) << lines[i];
  const std::string message = run_program(over + " --json").json()["error"]["message"];
  expect_clean(message, "the message");
}

TEST_F(HostileNames, LinesOfLoggedPlansAreOfPlans) {
  const ProgramResult result = run_program("run --log=+plan " + (folder_ / "m.onnx"));
  EXPECT_NE(result.err.find("\"" + kShown + "y\""), std::string::npos) << result.err;
  for (const std::string& line : lines_of(result.err)) EXPECT_FALSE(line.starts_with("name")) << result.err;
}

TEST_F(HostileNames, PicturesAndTracesHoldNone) {
  const std::string model = folder_ / "m.onnx";
  for (const std::string file : {"v.dot", "v.svg", "v.html"}) {
    const ProgramResult result = run_program("viz " + model + " -o " + (folder_ / file));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "") << "graphviz complains of what it was given";
    expect_clean(read_text(folder_ / file), file);
  }
  EXPECT_NE(read_text(folder_ / "v.dot").find("\\\\xff"), std::string::npos);
  ASSERT_EQ(run_program("profile " + model + " -o " + (folder_ / "t.json")).exit_code, 0);
  expect_clean(read_text(folder_ / "t.json"), "trace");
  EXPECT_NO_THROW(nlohmann::json::parse(read_text(folder_ / "t.json")));
}

}  // namespace
}  // namespace autograph
