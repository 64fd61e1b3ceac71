// `diff`, `diff-runs` and what `run` shows of nodes.
#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/builder.h"
#include "autograph/model_io.h"
#include "autograph/ops/elementwise.h"
#include "autograph/tensor_io.h"
#include "cli/run_program.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

TEST(CliDiff, ModelsThatAreTheSameAndNot) {
  const ProgramResult same = run_program("diff zoo:mlp zoo:mlp --json");
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_TRUE(same.json()["ok"].get<bool>());
  EXPECT_TRUE(same.json()["changes"].empty());
  const ProgramResult other = run_program("diff zoo:mlp 'zoo:mlp?batch=3' --json");
  EXPECT_EQ(other.exit_code, 6) << other.err;
  const auto json = other.json();
  EXPECT_EQ(json["matched"], json["a"]["nodes"]);
  EXPECT_EQ(json["changes"][0]["part"], "input");
  EXPECT_EQ(json["changes"][0]["change"], "changed");
  EXPECT_NE(run_program("diff zoo:mlp 'zoo:mlp?batch=3'").out.find("type: f32["), std::string::npos);
}

TEST(CliDiff, SaysWhichFileIsBroken) {
  const TestFolder folder;
  const std::string broken = folder.write("b.onnx", "404: Not Found");
  for (const std::string verb : {"diff zoo:mlp ", "compare --strategies sequential --seconds 0 zoo:mlp "}) {
    const ProgramResult result = run_program(verb + broken);
    EXPECT_EQ(result.exit_code, 3) << verb;
    EXPECT_NE(result.err.find("a text that begins with '404: Not Found' (in '" + broken + "')"), std::string::npos)
        << result.err;
  }
  const std::string hashes = folder / "hashes";
  ASSERT_EQ(run_program("run zoo:mlp --hashes " + hashes).exit_code, 0);
  EXPECT_EQ(run_program("diff-runs " + hashes + " " + hashes + " --rtol -1").exit_code, 2);
}

TEST(CliDiffRuns, OneRunTwiceAndAnother) {
  const TestFolder folder;
  const auto write = [&](const std::string& name, const std::string& flags) {
    const ProgramResult run = run_program("run zoo:mlp --threads 1 " + flags + " --hashes " + (folder / name));
    EXPECT_EQ(run.exit_code, 0) << run.err;
  };
  write("one", "");
  write("same", "");
  write("other", "--seed 1");
  const ProgramResult same = run_program("diff-runs " + (folder / "one") + " " + (folder / "same") + " --json");
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_GT(same.json()["compared"].get<int>(), 2);
  EXPECT_TRUE(same.json()["first"].is_null());
  const ProgramResult other = run_program("diff-runs " + (folder / "one") + " " + (folder / "other") + " --json");
  EXPECT_EQ(other.exit_code, 6) << other.err;
  EXPECT_EQ(other.json()["first"]["node"], "");  // already its input
  EXPECT_EQ(other.json()["a"]["threads"], 1);
  EXPECT_NE(run_program("diff-runs " + (folder / "one") + " " + (folder / "other")).out.find("the runs part at input"),
            std::string::npos);
  EXPECT_EQ(run_program("diff-runs " + (folder / "one") + " " + (folder / "missing")).exit_code, 1);
  EXPECT_EQ(run_program("diff-runs " + (folder / "one") + " " + AG_PROGRAM).exit_code, 3);
  EXPECT_NE(
      run_program("diff-runs " + (folder / "one") + " " + AG_PROGRAM).err.find("line 1: expected what 'run --hashes'"),
      std::string::npos);
}

TEST(CliRun, WatchPrintsNodesAndWarnsWhereNoneFits) {
  const ProgramResult run = run_program("run zoo:mlp --no-optimize --watch relu --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto watched = run.json()["watched"];
  ASSERT_FALSE(watched.empty());
  EXPECT_EQ(watched[0]["op"], "relu");
  EXPECT_EQ(watched[0]["outputs"][0]["min"], 0);
  EXPECT_LT(watched[0]["inputs"][0]["min"].get<double>(), 0);
  const ProgramResult text = run_program("run zoo:mlp --no-optimize --watch relu");
  EXPECT_NE(text.out.find("rms "), std::string::npos) << text.out;
  // Weights are there, though kernels keep copies of them and a run that nobody looks at lets them go.
  const ProgramResult joined = run_program("run zoo:mlp --watch '*'");
  EXPECT_NE(joined.out.find("in  fc1/linear/weight f32[784,512]: min "), std::string::npos) << joined.out;
  EXPECT_EQ(joined.out.find(" none\n"), std::string::npos) << joined.out;
  EXPECT_NE(run_program("run zoo:mlp --watch nothing").err.find("no node fits 'nothing'"), std::string::npos);
  EXPECT_EQ(run_program("run zoo:mlp --watch relu --break relu").exit_code, 2);
}

TEST(CliRun, BreakReadsCommands) {
  const TestFolder folder;
  const std::string file = folder / "out.npy";
  const ProgramResult run =
      run_program("run zoo:mlp --no-optimize --break relu", "printf 'print\\nwrite " + file + "\\nstep\\nquit\\n' |");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.err.find("f32["), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("stopped"), std::string::npos) << run.err;
  EXPECT_EQ(read_text(file).substr(1, 5), "NUMPY");
  // Where the commands end, the run goes on.
  const ProgramResult on = run_program("run zoo:mlp --no-optimize --break relu --json");
  EXPECT_EQ(on.exit_code, 0) << on.err;
  EXPECT_FALSE(on.json()["outputs"].empty());
}

TEST(CliRun, BreakShowsWhatANodeReadAndSaysWhatIsWrong) {
  const TestFolder folder;
  const std::string read = folder / "in.npy", made = folder / "out.npy";
  const auto at_relu = [](const std::string& commands) {
    return run_program("run zoo:mlp --no-optimize --break relu", "printf '" + commands + "\\nquit\\n' |").err;
  };
  const std::string shown = at_relu("help");
  const size_t name = shown.find("  in  ") + 6;
  const std::string input = shown.substr(name, shown.find(' ', name) - name);
  EXPECT_NE(shown.find("c(ontinue) to the next that fits"), std::string::npos) << shown;
  at_relu("write " + made + "\\nwrite " + read + " " + input);
  const std::vector<double> before = read_npy(read).to_f64(), after = read_npy(made).to_f64();
  EXPECT_LT(*std::min_element(before.begin(), before.end()), 0);
  EXPECT_EQ(*std::min_element(after.begin(), after.end()), 0);
  const std::string wrong = at_relu("print " + input + "x\\nfoo\\nwrite\\nwrite /nowhere/x.npy");
  EXPECT_NE(wrong.find("(did you mean '" + input + "'?)"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("unknown command 'foo'"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("write: expected a FILE.npy"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("No such file or directory"), std::string::npos) << wrong;
}

TEST(CliRun, PatternsThatNoNodeFitsSayWhatWasMeant) {
  const std::string run = "run zoo:mlp --watch ";
  EXPECT_NE(run_program(run + "relv").err.find("no node fits 'relv' (did you mean 'relu'?)"), std::string::npos);
  const std::string joined = run_program("run zoo:squeezenet --watch reshape").err;
  EXPECT_NE(joined.find("'reshape' of the model takes no step of its own"), std::string::npos) << joined;
  EXPECT_NE(joined.find("--no-optimize"), std::string::npos) << joined;
}

TEST(CliRun, OutputsWithNanSaySo) {
  const TestFolder folder;
  Graph graph("nan");
  const Var x = input(graph, DType::f32, {3}, "x");
  graph.add_output(log(x).id(), "y");
  save_onnx(graph, folder / "nan.onnx");
  const std::string run = "run " + (folder / "nan.onnx") + " --input x=";
  const ProgramResult all = run_program(run + "-1");
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_NE(all.out.find("y: 3 of 3 elements are NaN"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("--check-nan"), std::string::npos) << all.out;
  EXPECT_EQ(run_program(run + "-1 --json").json()["outputs"][0]["nan"], 3);
  EXPECT_EQ(run_program(run + "1").out.find("NaN"), std::string::npos);
}

}  // namespace
}  // namespace autograph
