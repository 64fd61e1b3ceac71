// The user's side of search: optimize, saved plans, compare, ablate, bisect.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <sstream>

#include "autograph/builder.h"
#include "autograph/model_io.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "autograph/tensor_io.h"
#include "cli/run_program.h"

namespace autograph {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class CliSearch : public testing::Test {
 protected:
  // Measurements of other runs would make a search quicker than the test expects.
  std::string here() const { return "XDG_CACHE_HOME=" + (folder_ / "cache"); }
  std::string path(const std::string& name) const { return folder_ / name; }
  ProgramResult run(const std::string& arguments) { return run_program(arguments, here()); }
  // A plan of a small model by a strategy that needs no search.
  std::string small_plan() {
    const ProgramResult made = run("optimize zoo:mlp --strategy greedy --budget 1 --threads 1 -o " + path("p.agplan"));
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return path("p.agplan");
  }
  TestFolder folder_;
};

TEST_F(CliSearch, OptimizeJsonHasEveryFieldOfTheContract) {
  const ProgramResult result = run("optimize --json zoo:mlp --budget 1 --explain -o " + path("p.agplan"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = result.json();
  for (const char* field : {"latency_before_ms", "latency_after_ms", "cost_before", "cost_after", "candidates",
                            "measured", "rules_applied", "partitions", "search_seconds", "max_abs", "max_rel",
                            "stop_reason", "simulated", "kept_plain", "rewrites", "streams", "compared_with"}) {
    EXPECT_TRUE(document.contains(field)) << field;
  }
  EXPECT_EQ(document["strategy"], "autograph");
  EXPECT_EQ(document["simulated"], false);
  // On a busy machine there may be no time to attest all kernels behind it, which it says then.
  EXPECT_TRUE(document["compared_with"].get<std::string>().starts_with("all outputs by the reference"));
  EXPECT_GT(document["latency_before_ms"], 0);
  EXPECT_GT(document["cost_before"], 0);
  int64_t applied = 0;
  for (const auto& rule : document["rules_applied"]) applied += rule["count"].get<int64_t>();
  EXPECT_EQ(applied, document["rewrites"].size());
}

// relu(x) at a rate of 16000; what else it could do fails for these shapes, as it would for a rate out of a hat.
TEST_F(CliSearch, SearchesOfARunHaveItsInputs) {
  Graph graph("rates"), usual("usual"), other("other");
  usual.add_output(relu(input(usual, DType::f32, Shape::unknown(), "x")).id());
  other.add_output(reshape(input(other, DType::f32, Shape::unknown(), "x"), {7}).id());
  const Var rate = input(graph, DType::i64, {}, "rate"), x = input(graph, DType::f32, {2, 3}, "x");
  const Var condition = equal(rate, constant(graph, Tensor::scalar<int64_t>(16000)));
  graph.add_output(if_else(condition, usual, other, {x})[0].id(), "y");
  save_onnx(graph, path("m.onnx"));
  write_npy(path("rate.npy"), Tensor::scalar<int64_t>(16000));
  const ProgramResult result =
      run("run " + path("m.onnx") + " --strategy list --budget 1 --input rate=" + path("rate.npy"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const ProgramResult drawn = run("run " + path("m.onnx"));
  EXPECT_EQ(drawn.exit_code, 2);
  EXPECT_TRUE(contains(drawn.err, "note: numbers that were not given: rate=")) << drawn.err;
}

TEST_F(CliSearch, WhyTellsTheLedgerOfANode) {
  const std::string ask = "optimize zoo:transformer --device sim:v100 --budget 3 --threads 1 --why ";
  const ProgramResult wrong = run(ask + "layer0/attention/matmull");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err, "did you mean 'layer0/attention/matmul'")) << wrong.err;
  const ProgramResult result = run(ask + "layer0/feed_forward/up/matmul --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = result.json();
  EXPECT_EQ(document["node"], "layer0/feed_forward/up/matmul");
  EXPECT_TRUE(document["file"].is_null());
  ASSERT_FALSE(document["became"].empty());
  ASSERT_TRUE(document.contains("ledger"));
  for (const auto& entry : document["ledger"]) {
    for (const char* field : {"rule", "nodes", "predicted_us", "measured_us", "accepted", "fate", "times"}) {
      EXPECT_TRUE(entry.contains(field)) << field;
    }
  }
  EXPECT_TRUE(document["trials"].is_array());
}

// Nothing lost where nothing was tried.
TEST_F(CliSearch, WhyTellsThatTheBudgetWasOverBeforeAnythingWasTried) {
  const ProgramResult brief =
      run("optimize zoo:nasnet_cell --device sim:h200 --threads 1 --why cell/add --budget 0.001");
  EXPECT_TRUE(contains(brief.out, "ended before it tried any rewrite: it needs a larger --budget")) << brief.out;
  EXPECT_FALSE(contains(brief.out, "nothing else was tried")) << brief.out;
  EXPECT_FALSE(contains(brief.out, "predicted:")) << "there is no table that this would explain";
}

TEST_F(CliSearch, WhyNamesSomeNodesWhereNoneIsNear) {
  const ProgramResult wrong = run("optimize zoo:nasnet_cell --device sim:h200 --budget 1 --why nosuch/node");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err, "no node 'nosuch/node' (of ")) << wrong.err;
  EXPECT_TRUE(contains(wrong.err, "cell/")) << wrong.err;
}

// Who gains beyond what a graph may cost is behind the limit; who is told to cost more than that gains nothing.
TEST_F(CliSearch, WhyTellsGainAndFateOfTheSameAttempt) {
  const ProgramResult result =
      run("optimize zoo:nasnet_cell --why cell/add --candidates 600 --device sim:h200 --json --threads 1");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json ledger = result.json()["ledger"];
  ASSERT_FALSE(ledger.empty());
  for (const auto& entry : ledger) {
    const bool is_tried_alone = entry["fate"] == "behind the limit" || entry["fate"] == "not chosen";
    EXPECT_EQ(entry["objective"].is_null(), !is_tried_alone) << entry;
    EXPECT_NE(entry["fate"], "slower by prediction");
  }
}

TEST_F(CliSearch, OptimizeWithoutOutputPrintsTheReportAlone) {
  const ProgramResult result = run("optimize zoo:mlp --budget 1 --threads 1");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "latency")) << result.out;
  EXPECT_FALSE(contains(result.out, "not saved")) << result.out;
  EXPECT_TRUE(run("optimize zoo:mlp --budget 1 --threads 1 --json").json()["file"].is_null());
  EXPECT_TRUE(contains(run("optimize zoo:mpl").err, "did you mean")) << "other mistakes come first";
}

TEST_F(CliSearch, LiteralIsRefusedWhereAlgorithmOneHasNoPart) {
  const ProgramResult taso = run("optimize zoo:mlp --strategy taso --literal");
  EXPECT_EQ(taso.exit_code, 2);
  EXPECT_TRUE(contains(taso.err, "got 'taso'")) << taso.err;
  const ProgramResult twice = run("compare zoo:mlp --strategies paper,search --literal");
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_TRUE(contains(twice.err, "--literal")) << twice.err;
}

TEST_F(CliSearch, ProfilesOfSimulatedDevicesSayWhoseTimesTheyShow) {
  const std::string ask = "profile zoo:mlp --device sim:h200 --runs 1 --warmup 0";
  const ProgramResult result = run(ask);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "THIS MACHINE")) << result.out;
  EXPECT_GT(run(ask + " --json").json()["simulated_latency_ms"], 0);
  EXPECT_TRUE(run("profile zoo:mlp --runs 1 --warmup 0 --json").json()["simulated_latency_ms"].is_null());
}

// The same cache, seed and number of candidates; the budget would end elsewhere each time.
TEST_F(CliSearch, CandidatesBoundASearchThatGivesTheSamePlanAgain) {
  const std::string ask =
      "optimize zoo:squeezenet --device sim:h200 --candidates 300 --seed 1 --threads 1 --strategy search --json "
      "--explain --cache-dir " +
      path("cache");
  std::string first;
  for (int time = 0; time < 3; ++time) {
    const ProgramResult result = run(ask);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    nlohmann::json document = result.json();
    EXPECT_EQ(document["stop_reason"], "budget");
    EXPECT_GE(document["candidates"], 200);
    EXPECT_LE(document["candidates"], 400);
    document.erase("search_seconds");
    if (time == 0) first = document.dump();
    EXPECT_EQ(document.dump(), first);
  }
}

// None finds in the cache what another has left there.
TEST_F(CliSearch, EntrantsOfACompareMayComeInAnyOrder) {
  const std::string ask = "compare zoo:squeezenet --device sim:h200 --candidates 1000 --threads 1 --json --cache-dir " +
                          path("cache") + " --strategies ";
  const auto latencies = [&](const std::string& strategies) {
    return run(ask + strategies).json()["rows"][0]["latency_ms"];
  };
  const nlohmann::json one_way = latencies("list,taso,search");
  const nlohmann::json other_way = latencies("search,list,taso");
  for (const char* name : {"list", "taso", "search"}) EXPECT_EQ(one_way[name], other_way[name]) << name;
  EXPECT_FALSE(std::filesystem::exists(path("cache") + "/measurements.sqlite"));
}

// The result is compiled once more where there is something to save: else the budget would have to leave time for that.
TEST_F(CliSearch, OptimizeCompilesAgainForPlansAlone) {
  const std::string ask = "optimize zoo:mlp --budget 1 --threads 1 --device sim:h200 --log compile,time";
  const std::string alone = run(ask).err;
  EXPECT_FALSE(contains(alone, "[compile] sim:h200: the result in")) << alone;
  for (const char* phase : {"loading", "the reference", "the search", "verifying the result", "saving"}) {
    EXPECT_TRUE(contains(alone, std::string("[time] ") + phase + " took")) << alone;
  }
  const std::string saved = run(ask + " -o " + path("p.agplan")).err;
  EXPECT_TRUE(contains(saved, "[compile] sim:h200: the result in")) << saved;
}

TEST_F(CliSearch, SavedPlansAreTakenByEveryVerb) {
  const std::string plan = small_plan();
  for (const std::string verb : {"info ", "check ", "run ", "bench --seconds 0 ", "profile "}) {
    const ProgramResult result = run(verb + plan);
    EXPECT_EQ(result.exit_code, 0) << verb << result.err;
    EXPECT_EQ(result.err, "") << verb;
  }
  const nlohmann::json bench = run("bench --json --seconds 0 " + plan).json();
  EXPECT_EQ(bench["strategy"], "greedy");
  EXPECT_EQ(bench["threads"], 1);
  ASSERT_EQ(run("viz " + plan + " -o " + path("p.dot")).exit_code, 0);
  EXPECT_TRUE(contains(read_text(path("p.dot")), "critical path"));
  ASSERT_EQ(run("viz --graph " + plan + " -o " + path("p.dot")).exit_code, 0);
  EXPECT_FALSE(contains(read_text(path("p.dot")), "critical path"));
}

TEST_F(CliSearch, PlanMadeElsewhereIsCheckedWithAWarning) {
  const ProgramResult result = run("bench --seconds 0 --threads 2 " + small_plan());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "threads was 1, is 2")) << result.err;
  EXPECT_EQ(run("-q run --threads 2 " + small_plan()).err, "");
}

TEST_F(CliSearch, DamagedPlanIsMalformed) {
  const std::string plan = small_plan();
  const std::string good = read_text(plan);
  std::string bad = good;
  bad[good.size() / 2] = static_cast<char>(bad[good.size() / 2] ^ 1);
  std::ofstream(path("bad.agplan"), std::ios::binary) << bad;
  const ProgramResult result = run("run " + path("bad.agplan"));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(contains(result.err, "damaged")) << result.err;
  std::ofstream(path("short.agplan"), std::ios::binary) << good.substr(0, good.size() - 10);
  EXPECT_EQ(run("bench " + path("short.agplan")).exit_code, 3);
  EXPECT_EQ(run("info /nowhere/p.agplan").exit_code, 1);
}

// Where the processor has no bf16, it is refused with exit code 7.
TEST_F(CliSearch, PlansKeepTheirPrecision) {
  const std::string plan = path("b.agplan");
  const ProgramResult made = run("optimize zoo:mlp --strategy greedy --budget 1 --precision bf16 -o " + plan);
  if (made.exit_code == 7) GTEST_SKIP() << made.err;
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(run("bench --json --seconds 0 " + plan).json()["precision"], "bf16");
  EXPECT_EQ(run("check " + plan).exit_code, 0);
}

TEST_F(CliSearch, PlanIsNoModelToOptimizeAgain) {
  const std::string plan = small_plan();
  const ProgramResult result = run("optimize " + plan + " -o " + path("again.agplan"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "zoo:mlp")) << result.err;
}

TEST_F(CliSearch, InterruptSavesTheBestSoFar) {
  const std::string command = here() + " timeout --preserve-status -s INT 4 " + AG_PROGRAM +
                              " optimize zoo:inception_v3 --threads 1 --budget 600 --json -o " + path("i.onnx") + " >" +
                              path("out") + " 2>" + path("err");
  ASSERT_EQ(WEXITSTATUS(std::system(command.c_str())), 130) << read_text(path("err"));
  const nlohmann::json document = nlohmann::json::parse(read_text(path("out")));
  EXPECT_EQ(document["stop_reason"], "cancelled");
  EXPECT_TRUE(std::filesystem::exists(path("i.onnx")));
}

// Kernels may use the stack pointer for other things: a signal must find a thread that does nothing else.
TEST_F(CliSearch, InterruptsReachNoThreadThatComputes) {
  const std::string command = std::string(AG_PROGRAM) + " bench zoo:mlp --seconds 60 --threads 2 >" + path("out") +
                              " 2>&1 & pid=$!; " + kUntilInterruptible + "; cat /proc/$pid/task/*/status >" +
                              path("status") + "; kill -INT $pid; wait $pid";
  ASSERT_EQ(WEXITSTATUS(std::system(command.c_str())), 130) << read_text(path("out"));
  std::stringstream status(read_text(path("status")));
  int admitting = 0;
  int threads = 0;
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigBlk:")) continue;
    ++threads;
    const uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
    admitting += (blocked >> (SIGINT - 1) & 1) == 0;
  }
  EXPECT_GE(threads, 2);
  EXPECT_EQ(admitting, 1);
}

TEST_F(CliSearch, StrategyIsTakenByBench) {
  const nlohmann::json document = run("bench --json --seconds 0 --strategy nimble --budget 1 zoo:mlp").json();
  EXPECT_EQ(document["strategy"], "nimble");
  EXPECT_GE(document["streams"], 1);
}

TEST_F(CliSearch, CompareMeasuresEachStrategyOnEachBatch) {
  const ProgramResult result =
      run("compare zoo:mlp --strategies sequential,greedy --batch 1,2 --seconds 0.01 --budget 1 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = result.json();
  EXPECT_EQ(document["device"], "cpu");
  EXPECT_EQ(document["simulated"], false);
  ASSERT_EQ(document["rows"].size(), 2U);
  for (const auto& row : document["rows"]) {
    EXPECT_EQ(row["model"], "zoo:mlp");
    EXPECT_GT(row["latency_ms"]["sequential"], 0);
    EXPECT_GT(row["latency_ms"]["greedy"], 0);
    // Of the makings of either half.
    ASSERT_EQ(row["halves_ms"]["greedy"].size(), 2U);
    for (const double ms : row["halves_ms"]["greedy"]) EXPECT_GT(ms, 0);
    const std::string best = row["best"];
    EXPECT_LE(row["latency_ms"][best], row["latency_ms"][best == "greedy" ? "sequential" : "greedy"]);
    EXPECT_LT(row["max_rel"], 1e-3);
    EXPECT_GE(row["search_seconds"], 0);
  }
  EXPECT_EQ(document["rows"][1]["batch"], 2);
  // Equal plans are one measurement.
  const nlohmann::json twice = run("compare zoo:mlp --strategies sequential,sequential --seconds 0.01 --json").json();
  EXPECT_EQ(twice["rows"][0]["same_as"]["sequential"], "sequential");
  // Files may fix their batch.
  const std::string fixed = folder_ / "fixed.onnx";
  ASSERT_EQ(run("zoo export mlp --batch 3 -o " + fixed).exit_code, 0);
  EXPECT_EQ(run("compare " + fixed + " --strategies sequential --seconds 0").exit_code, 0);
  const ProgramResult wrong = run("compare zoo:mlp --strategies sequential,swift");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err, "swift")) << wrong.err;
}

TEST_F(CliSearch, AblateHasARowForEachSetting) {
  const ProgramResult result = run("ablate zoo:mlp --budget 0.3 --seconds 0.01 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json rows = result.json()["rows"];
  ASSERT_EQ(rows.size(), 7U);
  EXPECT_EQ(rows[0]["setting"], "full");
  EXPECT_EQ(rows[1]["rewrites"], 0);  // without optimisation
  for (const auto& row : rows) EXPECT_GT(row["latency_ms"], 0) << row;
}

TEST_F(CliSearch, AblateLeavesOutEachPassThatChangesTheModel) {
  const ProgramResult result = run("ablate zoo:squeezenet --study passes --seconds 0.01 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json()["strategy"], "sequential");
  const nlohmann::json rows = result.json()["rows"];
  const auto has = [&](const std::string& setting) {
    return std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row["setting"] == setting; });
  };
  EXPECT_EQ(rows.front()["setting"], "full");
  EXPECT_TRUE(has("without fuse_epilogues")) << rows;
  EXPECT_FALSE(has("without fuse_recurrent")) << rows;  // there is nothing for it to do
  EXPECT_EQ(rows.back()["setting"], "without passes");
  for (const auto& row : rows) EXPECT_GT(row["latency_ms"], 0) << row;
}

TEST_F(CliSearch, BisectFindsNothingWhereNumbersAgree) {
  const ProgramResult result = run("bisect --json zoo:mlp");
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.json()["culprit"], "none");
  EXPECT_EQ(result.json()["ok"], true);
}

TEST_F(CliSearch, BisectWritesTheSmallestModelWithItsInputs) {
  // No kernel is exact enough for this, so that one is blamed.
  const ProgramResult result = run("bisect --json --rtol 0 --atol 0 zoo:mlp -o " + path("small.onnx"));
  ASSERT_EQ(result.exit_code, 6) << result.out << result.err;
  const nlohmann::json document = result.json();
  EXPECT_EQ(document["culprit"], "kernel");
  EXPECT_LT(document["nodes_after"], document["nodes_before"]);
  ASSERT_FALSE(document["inputs"].empty());
  const std::string input = document["inputs"][0];
  EXPECT_EQ(run("check --rtol 0 --atol 0 " + path("small.onnx") + " --input '" + input + "'").exit_code, 6);
}

}  // namespace
}  // namespace autograph
