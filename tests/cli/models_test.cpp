// The verbs that take a model, on the ONNX file below: written byte by byte, since this is what a user's file is.
#include <gtest/gtest.h>

#include <filesystem>

#include "autograph/builder.h"
#include "autograph/model_io.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/tensor_io.h"
#include "cli/run_program.h"

namespace autograph {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// ---- A few lines of protobuf -----------------------------------------------------------------------------------

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string number(int field, uint64_t value) { return varint(static_cast<uint64_t>(field) << 3) + varint(value); }
std::string bytes(int field, const std::string& value) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(value.size()) + value;
}

// NodeProto: input 1, output 2, name 3, op_type 4.
std::string node(const std::string& op, const std::string& in, const std::string& out, const std::string& name) {
  return bytes(1, bytes(1, in) + bytes(2, out) + bytes(3, name) + bytes(4, op));
}

// ValueInfoProto of f32[batch, 3].
std::string value_info(int field, const std::string& name) {
  const std::string shape = bytes(1, bytes(2, "batch")) + bytes(1, number(1, 3));
  return bytes(field, bytes(1, name) + bytes(2, bytes(1, number(1, 1) + bytes(2, shape))));
}

// ModelProto with opset 17: x -> the given nodes -> y.
std::string model(const std::string& nodes) {
  const std::string graph = nodes + bytes(2, "tiny") + value_info(11, "x") + value_info(12, "y");
  return number(1, 8) + bytes(7, graph) + bytes(8, number(2, 17));
}

// TensorProto of f32[1, 3].
std::string tensor(const std::vector<float>& elements) {
  const std::string raw(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(float));
  return number(1, 1) + number(1, elements.size()) + number(2, 1) + bytes(9, raw);
}

// A .npy file of f32 of this shape.
std::string npy(const std::string& shape, const std::vector<float>& elements) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}";
  header.resize(117, ' ');
  header += '\n';
  const std::string raw(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(float));
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + raw;
}

std::string npy_row(const std::vector<float>& elements) {
  return npy("(1, " + std::to_string(elements.size()) + ")", elements);
}

std::string npy_vector(const std::vector<float>& elements) {
  return npy("(" + std::to_string(elements.size()) + ",)", elements);
}

class CliModel : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  void SetUp() override {
    write("m.onnx", model(node("Relu", "x", "a", "/block/Relu") + node("Softmax", "a", "y", "/block/Softmax")));
  }
  std::string path(const std::string& name) const { return folder_ / name; }
  TestFolder folder_;
};

TEST_F(CliModel, InfoJsonHasEveryFieldOfTheContract) {
  const ProgramResult result = run_program("info --json " + path("m.onnx"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = result.json();
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["opset"], 17);
  EXPECT_EQ(document["nodes"], 2);
  EXPECT_EQ(document["ops"], (nlohmann::json{{"Relu", 1}, {"Softmax", 1}}));
  EXPECT_EQ(document["inputs"][0], (nlohmann::json{{"name", "x"}, {"dtype", "f32"}, {"shape", {"batch", 3}}}));
  EXPECT_EQ(document["outputs"][0]["name"], "y");
  EXPECT_EQ(document["parameters"], 0);
  EXPECT_EQ(document["parameter_bytes"], 0);
  EXPECT_GT(document["flops"], 0);
  EXPECT_EQ(document["width"], 1);
  EXPECT_EQ(document["depth"], 2);
}

TEST_F(CliModel, InfoBatchFillsSymbolicExtents) {
  const nlohmann::json document = run_program("info --json --batch 4 " + path("m.onnx")).json();
  EXPECT_EQ(document["inputs"][0]["shape"], (std::vector<int>{4, 3}));
  EXPECT_EQ(document["outputs"][0]["shape"], (std::vector<int>{4, 3}));
}

TEST_F(CliModel, InfoTellsTheRooflineOnlyWhenAsked) {
  EXPECT_TRUE(run_program("info --json " + path("m.onnx")).json()["roofline"].is_null());
  const nlohmann::json roofline =
      run_program("info --json --roofline --threads 1 " + path("m.onnx")).json()["roofline"];
  EXPECT_EQ(roofline["threads"], 1);
  EXPECT_GT(roofline["compute_ms"], 0);
  // An input and an output of 3 floats each, nothing else.
  const double l1 = std::max(roofline["peak"]["memory"][0]["read_gb_per_s"].get<double>(),
                             roofline["peak"]["memory"][0]["copy_gb_per_s"].get<double>());
  EXPECT_NEAR(roofline["memory_ms"].get<double>(), 24 / l1 / 1e6, 1e-9);
  EXPECT_EQ(roofline["bound_ms"], std::max(roofline["compute_ms"], roofline["memory_ms"]));
}

TEST_F(CliModel, InfoTellsWhatPassesDo) {
  EXPECT_TRUE(run_program("info --json " + path("m.onnx")).json()["compiled"].is_null());
  const ProgramResult text = run_program("info --passes zoo:squeezenet");
  EXPECT_NE(text.out.find("fuse_epilogues"), std::string::npos) << text.out;
  const nlohmann::json compiled = run_program("info --json --passes zoo:squeezenet").json()["compiled"];
  const auto& passes = compiled["passes"];
  const auto found =
      std::find_if(passes.begin(), passes.end(), [](const auto& p) { return p["name"] == "fuse_epilogues"; });
  ASSERT_NE(found, passes.end());
  EXPECT_TRUE((*found)["changed"]);
  EXPECT_LT((*found)["ops"]["relu"], 0);
  EXPECT_GT((*found)["ops"]["fused"], 0);
  EXPECT_GT(compiled["plan_ms"], 0);
}

TEST_F(CliModel, UnknownDimSuggestsTheNearest) {
  const ProgramResult result = run_program("info --dim batc=4 " + path("m.onnx"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "batch")) << result.err;
}

TEST_F(CliModel, CheckAgreesWithTheReference) {
  const ProgramResult result = run_program("check --json " + path("m.onnx"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = result.json();
  EXPECT_EQ(document["ok"], true);
  EXPECT_EQ(document["outputs"][0]["name"], "y");
  EXPECT_LE(document["outputs"][0]["max_abs"], 1e-5);
  EXPECT_TRUE(document["unsupported"].empty());
}

TEST_F(CliModel, CheckWithDataComparesWithStoredOutputs) {
  write("input_0.pb", tensor({-1, 0, -2}));
  write("output_0.pb", tensor({1.0F / 3, 1.0F / 3, 1.0F / 3}));
  EXPECT_EQ(run_program("check " + path("m.onnx") + " --data " + path("")).exit_code, 0);
  write("output_0.pb", tensor({1.0F / 3, 1.0F / 3, 0.5F}));
  const ProgramResult result = run_program("check --json " + path("m.onnx") + " --data " + path(""));
  EXPECT_EQ(result.exit_code, 6) << result.err;
  EXPECT_EQ(result.json()["ok"], false);
  EXPECT_NEAR(result.json()["outputs"][0]["max_abs"].get<double>(), 0.5 - 1.0 / 3, 1e-6);
  EXPECT_EQ(run_program("check --atol 0.2 " + path("m.onnx") + " --data " + path("")).exit_code, 0);
}

TEST_F(CliModel, CheckSaysWhereTheFirstDifferenceIs) {
  write("input_0.pb", tensor({0, 0, 0}));
  write("output_0.pb", tensor({1.0F / 3, 1.0F / 3, 0.5F}));
  const ProgramResult result = run_program("check " + path("m.onnx") + " --data " + path(""));
  EXPECT_EQ(result.exit_code, 6);
  EXPECT_EQ(result.out,
            "output  max abs  max rel  wrong  first difference\n"
            "y         0.167    0.333      1  element 2: expected 0.5, got 0.333333\n"
            "\n"
            "NUMBERS DIFFER\n");
}

TEST_F(CliModel, CheckWithoutAllDataFilesIsMalformed) {
  write("input_0.pb", tensor({-1, 0, -2}));
  const ProgramResult result = run_program("check " + path("m.onnx") + " --data " + path(""));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(contains(result.err, "output_0.pb is missing")) << result.err;
}

TEST_F(CliModel, UnsupportedOpsAreListedTogetherWithCounts) {
  write("odd.onnx", model(node("Frob", "x", "a", "f1") + node("Frob", "a", "b", "f2") + node("Nicate", "b", "y", "n")));
  const ProgramResult result = run_program("check --json " + path("odd.onnx"));
  EXPECT_EQ(result.exit_code, 4) << result.err;
  const nlohmann::json document = result.json();
  EXPECT_EQ(document["ok"], false);
  ASSERT_EQ(document["unsupported"].size(), 2u);
  EXPECT_EQ(document["unsupported"][0]["op"], "Frob");
  EXPECT_EQ(document["unsupported"][0]["count"], 2);
  EXPECT_EQ(document["unsupported"][0]["opset"], 17);
  EXPECT_EQ(run_program("info " + path("odd.onnx")).exit_code, 4);
}

TEST_F(CliModel, MalformedFileIsExitThree) {
  write("bad.onnx", "this is no protobuf");
  const ProgramResult result = run_program("info --json " + path("bad.onnx"));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.json()["error"]["kind"], "malformed");
}

TEST_F(CliModel, MissingFileFailsWithItsName) {
  const ProgramResult result = run_program("info /nowhere/m.onnx");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "/nowhere/m.onnx")) << result.err;
}

TEST_F(CliModel, BudgetTooSmallIsExitFive) {
  // 2^20 rows of 3 floats: 12 MiB for the tensor between the two ops.
  const ProgramResult result = run_program("run --json --batch 1048576 --memory-budget 1 " + path("m.onnx"));
  EXPECT_EQ(result.exit_code, 5) << result.err;
  EXPECT_EQ(result.json()["error"]["kind"], "over_budget");
}

TEST_F(CliModel, RunsWithMeasuredAndWithExactKernels) {
  EXPECT_EQ(run_program("run --exact " + path("m.onnx")).exit_code, 0);
  const ProgramResult result = run_program("run --tune --cache-dir " + path("cache") + " " + path("m.onnx"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(std::filesystem::exists(path("cache/measurements.sqlite")));
}

TEST_F(CliModel, InterruptEndsWithExitOneHundredAndThirty) {
  const std::string command = std::string(AG_PROGRAM) + " bench --seconds 60 " + path("m.onnx") + " >/dev/null 2>" +
                              path("err") + " & pid=$!; " + kUntilInterruptible + "; kill -INT $pid; wait $pid";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 130);
  EXPECT_EQ(read_text(path("err")), "\ninterrupted\n");
}

TEST_F(CliModel, ResultsOfEveryVerbAreWithoutEscapes) {
  for (const std::string verb : {"info ", "check ", "run ", "bench --seconds 0 ", "profile "}) {
    const ProgramResult result = run_program(verb + path("m.onnx"));
    EXPECT_EQ(result.exit_code, 0) << verb << result.err;
    EXPECT_FALSE(contains(result.out + result.err, "\033")) << verb;
    EXPECT_EQ(result.err, "") << verb;
  }
}

TEST_F(CliModel, MissingFileThatIsAZooNameSuggestsIt) {
  EXPECT_EQ(run_program("info squeezenet").err,
            "error: [cli] model: no file 'squeezenet' (did you mean 'zoo:squeezenet'?)\n");
}

TEST_F(CliModel, UnknownStrategySuggestsTheNearest) {
  const ProgramResult result = run_program("bench --strategy nimbel " + path("m.onnx"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "did you mean 'nimble'?")) << result.err;
}

TEST_F(CliModel, DeviceThatIsNotThereIsExitSeven) {
  EXPECT_EQ(run_program("bench --device cuda " + path("m.onnx")).exit_code, 7);
}

TEST_F(CliModel, BenchJsonHasEveryFieldOfTheContract) {
  const ProgramResult result = run_program("bench --json --seconds 0 --batch 2 " + path("m.onnx"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = result.json();
  for (const char* field :
       {"model", "device", "strategy", "threads", "streams", "batch", "iterations", "compile_ms", "first_run_ms",
        "latency_ms", "peak_bytes", "weight_bytes", "arena_bytes", "sum_of_tensors_bytes", "lower_bound_bytes"}) {
    EXPECT_TRUE(document.contains(field)) << field;
  }
  for (const char* field : {"min", "median", "p90", "p99", "mean"}) {
    EXPECT_GT(document["latency_ms"][field], 0) << field;
  }
  EXPECT_EQ(document["batch"], 2);
  EXPECT_EQ(document["precision"], "f32");
  EXPECT_GE(document["iterations"], 3);
  EXPECT_GT(document["peak_bytes"], 0);
}

TEST_F(CliModel, BenchTrains) {
  const ProgramResult result =
      run_program("bench --json --seconds 0 --train --loss cross_entropy --optimizer adamw --batch 3 zoo:mlp");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = result.json();
  EXPECT_EQ(document["batch"], 3);
  EXPECT_EQ(document["optimizer"], "adamw");
  EXPECT_GT(document["samples_per_second"], 0);
  // Weights and two moments of each, in f32.
  EXPECT_GT(document["state_bytes"], 3 * 4 * 600'000);
  const ProgramResult wrong = run_program("bench --train --optimizer adamm zoo:mlp");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err, "did you mean 'adam'?")) << wrong.err;
}

TEST_F(CliModel, PrecisionIsRefusedWhereTheCpuHasNone) {
  const std::string command = "bench --seconds 0 --precision bf16 --json " + path("m.onnx");
  const ProgramResult without = run_program(command, "ONEDNN_MAX_CPU_ISA=AVX2");
  EXPECT_EQ(without.exit_code, 7) << without.err;
  EXPECT_TRUE(contains(without.json()["error"]["message"], "avx512_bf16")) << without.out;
  EXPECT_EQ(run_program("bench --precision f8 " + path("m.onnx")).exit_code, 2);
  EXPECT_EQ(run_program("bench --precision bf16 --device reference " + path("m.onnx")).exit_code, 4);
  const ProgramResult result = run_program(command);
  if (result.exit_code == 7) return;
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json()["precision"], "bf16");
  // The reference that results are compared with stays in f32.
  EXPECT_EQ(run_program("check --precision bf16 " + path("m.onnx")).exit_code, 0);
}

// They take memory, threads and time, which a run on the processor does not owe.
TEST_F(CliModel, RunsOnTheProcessorStartNoDriversOfOtherDevices) {
  const auto loads = [&](const std::string& verb) {
    const ProgramResult result = run_program(verb, "LD_DEBUG=files");
    EXPECT_EQ(result.exit_code, 0) << verb;
    EXPECT_TRUE(contains(result.err, "calling init")) << "the loader says nothing";
    return contains(result.err, "libpocl") || contains(result.err, "libcuda.so");
  };
  for (const char* verb : {"run ", "check ", "info ", "bench --seconds 0 ", "run --device reference "}) {
    EXPECT_FALSE(loads(verb + path("m.onnx"))) << verb;
  }
}

TEST_F(CliModel, BenchServesALineOfJsonForEachLine) {
  write("lines", "0 0\n0.001 0.001\n");
  write("x.npy", npy_row({1, 2, 3}));
  const std::string command = "bench --serve --input x=" + path("x.npy") + " " + path("m.onnx");
  const ProgramResult result = run_program(command, "cat " + path("lines") + " |");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream lines(result.out);
  std::vector<nlohmann::json> documents;
  for (std::string line; std::getline(lines, line);) documents.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(documents.size(), 3u);
  for (const char* field : {"load_ms", "compile_ms", "first_run_ms", "peak_bytes"}) {
    EXPECT_GT(documents[0][field], 0) << field;
  }
  EXPECT_FALSE(documents[0].contains("latency_ms"));
  for (size_t i : {1u, 2u}) {
    EXPECT_EQ(documents[i]["schema"], 1);
    EXPECT_GE(documents[i]["iterations"], 3);
    EXPECT_GT(documents[i]["latency_ms"]["min"], 0);
  }
  write("lines", "1 soon\n");
  EXPECT_EQ(run_program(command, "cat " + path("lines") + " |").exit_code, 2);
}

TEST_F(CliModel, ProfileWritesAChromeTrace) {
  const ProgramResult result = run_program("profile --json " + path("m.onnx") + " --trace " + path("t.json"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = result.json();
  EXPECT_EQ(document["ops"].size(), 2u);
  EXPECT_GT(document["total_ms"], 0);
  EXPECT_NEAR(document["critical_path_ms"].get<double>(), document["total_ms"].get<double>(), 1e-9);
  const nlohmann::json trace = nlohmann::json::parse(read_text(path("t.json")));
  size_t events = 0;
  for (const auto& event : trace["traceEvents"]) events += event["ph"] == "X";
  EXPECT_EQ(events, 2u);
}

TEST_F(CliModel, ProfileTellsWorkSpeedLayoutAndRefusals) {
  const nlohmann::json document = run_program("profile --json --batch 5 --threads 1 " + path("m.onnx")).json();
  double shares = 0;
  for (const auto& op : document["ops"]) {
    shares += op["share"].get<double>();
    EXPECT_EQ(op["bytes"], 2 * 5 * 3 * 4) << op;  // f32[5, 3] in and out
    EXPECT_GT(op["flops"], 0) << op;
    EXPECT_NEAR(op["gflops"].get<double>() * op["ms"].get<double>() * 1e6, op["flops"].get<double>(), 1e-6) << op;
    EXPECT_EQ(op["level"], "L1") << op;
    EXPECT_EQ(op["layout"], "row_major") << op;
    EXPECT_TRUE(op["refused"].is_array()) << op;
  }
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_EQ(document["by_op"].size(), 2u);
  EXPECT_EQ(document["threads"], 1);
  EXPECT_GE(document["run_ms"], document["total_ms"]);
  EXPECT_NEAR(document["between_share"].get<double>(),
              1 - document["total_ms"].get<double>() / document["run_ms"].get<double>(), 1e-9);
}

TEST_F(CliModel, RunIsTheSameForASeedAndReadsWhatItWrote) {
  const std::string run = "run --json " + path("m.onnx") + " --output-dir " + path("out");
  const ProgramResult first = run_program(run + " --seed 3");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const nlohmann::json output = first.json()["outputs"][0];
  EXPECT_EQ(output["name"], "y");
  EXPECT_EQ(output["shape"], (std::vector<int>{1, 3}));
  EXPECT_NEAR(output["mean"].get<double>(), 1.0 / 3, 1e-6);
  EXPECT_EQ(run_program(run + " --seed 3").json()["outputs"][0]["max"], output["max"]);
  EXPECT_NE(run_program(run + " --seed 4").json()["outputs"][0]["max"], output["max"]);
  const std::string file = output["file"];
  const ProgramResult again = run_program("run --json " + path("m.onnx") + " --input x=" + file);
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(CliModel, RunWithAnUnknownInputSuggestsTheNearest) {
  const ProgramResult result = run_program("run " + path("m.onnx") + " --input xx=x.npy");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "did you mean 'x'?")) << result.err;
  const ProgramResult far = run_program("run " + path("m.onnx") + " --input something=1");
  EXPECT_TRUE(contains(far.err, "none named 'something' (there are: x)")) << far.err;
  const ProgramResult nothing = run_program("run " + path("m.onnx") + " --input x.npz");
  EXPECT_TRUE(contains(nothing.err, "expected NAME=FILE.npy, NAME=FILE.npz or NAME=NUMBER, got 'x.npz'"))
      << nothing.err;
}

// Arrays by their names, as np.savez writes them.
TEST_F(CliModel, InputMayBeAnArrayOfAnArchive) {
  const Tensor row = Tensor::of<float>({1, 3}, {0, 0, 4}), other = Tensor::of<float>({1, 2}, {0, 0});
  write_npz(path("both.npz"), {{"other", other}, {"x", row}});
  write_npz(path("one.npz"), {{"arr_0", row}});
  write_npz(path("wrong.npz"), {{"y", row}, {"z", row}});
  const std::string run = "run --json " + path("m.onnx") + " --input x=";
  for (const char* name : {"both.npz", "one.npz"}) {
    const ProgramResult result = run_program(run + path(name));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NEAR(result.json()["outputs"][0]["max"].get<double>(), 0.9646, 1e-4) << name;
  }
  const ProgramResult wrong = run_program(run + path("wrong.npz"));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err, "expected an array of its name, got y, z (input 'x' from '")) << wrong.err;
  write("x.npy", "no array");
  const ProgramResult broken = run_program(run + path("x.npy"));
  EXPECT_EQ(broken.exit_code, 3);
  EXPECT_TRUE(contains(broken.err, "(input 'x' from '" + path("x.npy") + "')")) << broken.err;
}

TEST_F(CliModel, ContradictionsBetweenFlagsAreUsageErrors) {
  const std::string run = "run " + path("m.onnx");
  const ProgramResult dims = run_program(run + " --dim batch=2 --dim batch=3");
  EXPECT_EQ(dims.exit_code, 2);
  EXPECT_TRUE(contains(dims.err, "dim: 'batch' is given twice, as 2 and as 3")) << dims.err;
  EXPECT_EQ(run_program(run + " --dim batch=2 --dim batch=2").exit_code, 0);
  const ProgramResult inputs = run_program(run + " --input x=1 --input x=2");
  EXPECT_EQ(inputs.exit_code, 2);
  EXPECT_TRUE(contains(inputs.err, "input: 'x' is given twice")) << inputs.err;
  const ProgramResult batch = run_program(run + " --batch 0");
  EXPECT_EQ(batch.exit_code, 2);
  EXPECT_TRUE(contains(batch.err, "batch: expected 1 or more, got 0")) << batch.err;
  const ProgramResult both = run_program("info 'zoo:mlp?batch=4' --batch 8");
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_TRUE(contains(both.err, "expected one number, got 'zoo:mlp?batch=4' and --batch 8")) << both.err;
  EXPECT_EQ(run_program("info 'zoo:mlp?batch=4' --batch 4").exit_code, 0);
  for (const std::string flag : {"--memory-budget -1", "--memory-budget 17592186044417"}) {
    EXPECT_EQ(run_program(run + " " + flag).exit_code, 2) << flag;
  }
}

TEST_F(CliModel, FolderIsNoModel) {
  const std::string folder = path("models");
  std::filesystem::create_directory(folder);
  const ProgramResult empty = run_program("info " + folder);
  EXPECT_EQ(empty.exit_code, 1);
  EXPECT_TRUE(contains(empty.err, "model: expected a file, got the folder '" + folder + "'")) << empty.err;
  EXPECT_FALSE(contains(empty.err, "did you mean")) << empty.err;
  std::filesystem::copy(path("m.onnx"), folder + "/m.onnx");
  const ProgramResult one = run_program("info " + folder);
  EXPECT_TRUE(contains(one.err, "did you mean '" + folder + "/m.onnx'?")) << one.err;
}

// ValueInfoProto of f32 with named dims.
std::string named_info(int field, const std::string& name, const std::vector<std::string>& dims) {
  std::string shape;
  for (const std::string& dim : dims) shape += bytes(1, bytes(2, dim));
  return bytes(field, bytes(1, name) + bytes(2, bytes(1, number(1, 1) + bytes(2, shape))));
}

// y = relu(x) + bias, where the file has a value for the input bias; extents without names but for y's.
std::string open_model() {
  const std::string add =
      bytes(1, bytes(1, "a") + bytes(1, "bias") + bytes(2, "y") + bytes(3, "sum") + bytes(4, "Add"));
  const std::vector<float> bias{10, 20, 30};
  const std::string raw(reinterpret_cast<const char*>(bias.data()), bias.size() * sizeof(float));
  const std::string initializer = bytes(5, number(1, 3) + number(2, 1) + bytes(8, "bias") + bytes(9, raw));
  const std::string graph = node("Relu", "x", "a", "relu") + add + bytes(2, "open") + initializer +
                            named_info(11, "x", {"?", "?"}) + named_info(11, "bias", {"n"}) +
                            named_info(12, "y", {"m", "k"});
  return number(1, 8) + bytes(7, graph) + bytes(8, number(2, 17));
}

TEST_F(CliModel, ExtentsWithoutNamesAreUnequal) {
  write("open.onnx", open_model());
  write("x.npy", npy_row({-1, 2, -3}));
  const std::string model = path("open.onnx") + " --input x=" + path("x.npy");
  for (const std::string verb : {"run ", "check ", "bench --seconds 0 ", "profile ", "bisect "}) {
    const ProgramResult result = run_program(verb + model);
    EXPECT_EQ(result.exit_code, 0) << verb << result.err;
  }
  EXPECT_NEAR(run_program("run --json " + model).json()["outputs"][0]["mean"].get<double>(), 62.0 / 3, 1e-4);
  const ProgramResult optimized =
      run_program("optimize --budget 0.2 --cache-dir " + path("cache") + " " + model + " -o " + path("o.agplan"));
  EXPECT_EQ(optimized.exit_code, 0) << optimized.err;
  EXPECT_EQ(run_program("run --json " + path("o.agplan")).json()["outputs"][0]["shape"], (std::vector<int>{1, 3}));
}

TEST_F(CliModel, ExtentsAreGivenByPlaceToo) {
  write("open.onnx", open_model());
  const ProgramResult result = run_program("run --json " + path("open.onnx") + " --dim 'x[1]=3' --dim 'x[0]=2'");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json()["outputs"][0]["shape"], (std::vector<int>{2, 3}));
  EXPECT_EQ(run_program("info --json --dim 'x[0]=5' " + path("m.onnx")).json()["inputs"][0]["shape"],
            (std::vector<int>{5, 3}));
  const ProgramResult wrong = run_program("run " + path("open.onnx") + " --dim 'x[2]=3'");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err, "x[2]")) << wrong.err;
  // A search binds them once.
  const ProgramResult optimized = run_program("optimize --budget 0.2 --dim batch=4 --cache-dir " + path("cache") + " " +
                                              path("m.onnx") + " -o " + path("o.agplan"));
  EXPECT_EQ(optimized.exit_code, 0) << optimized.err;
}

TEST_F(CliModel, BisectAllowsForHalfPrecisionAsCheckDoes) {
  // Rounded after every node by the reference, at the end by kernels that compute in f32.
  Graph graph;
  std::vector<float> weights;
  std::vector<float> bias;
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 64; ++j) weights.push_back(static_cast<float>((i * 37 + j * 11) % 64 - 32) / 8);
  }
  for (int j = 0; j < 64; ++j) bias.push_back(static_cast<float>((j * 29) % 64 - 32));
  const Var x = input(graph, DType::f16, {64, 16}, "x");
  const Var w = cast(constant(graph, Tensor::of<float>({16, 64}, weights)), DType::f16);
  const Var b = cast(constant(graph, Tensor::of<float>({64}, bias)), DType::f16);
  graph.add_output(add(matmul(x, w), b).id(), "y");
  save_onnx(graph, path("half.onnx"));
  for (const std::string verb : {"check ", "bisect "}) {
    const ProgramResult result = run_program(verb + path("half.onnx"));
    EXPECT_EQ(result.exit_code, 0) << verb << result.out << result.err;
  }
}

TEST_F(CliModel, FailureSaysWhichExtentsNobodyGave) {
  // Sums x, whose extents have no names, and a row of three.
  write("open.onnx", open_model());
  const ProgramResult wrong = run_program("run " + path("open.onnx") + " --dim 'x[1]=2'");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err, "\nnote: extents that were not given: x[0]=1 (--input NAME=FILE.npy or --dim x[0]=N"))
      << wrong.err;
  EXPECT_FALSE(contains(run_program("run " + path("m.onnx") + " --input x=/nowhere.npy").err, "note:"));
}

TEST_F(CliModel, NumberFillsAnInput) {
  Graph graph("numbers");
  const Var rate = input(graph, DType::i64, {}, "rate");
  const Var gain = input(graph, DType::f32, {2, Dim::symbol("n")}, "gain");
  const Var on = input(graph, DType::boolean, {1}, "on");
  graph.add_output(where(on, cast(rate, DType::f32) * gain, gain).id(), "y");
  save_onnx(graph, path("numbers.onnx"));
  const std::string run =
      "run --json " + path("numbers.onnx") + " --dim n=3 --input rate=16000 --input gain=0.5 --input on=";
  const ProgramResult filled = run_program(run + "true");
  ASSERT_EQ(filled.exit_code, 0) << filled.err;
  EXPECT_EQ(filled.json()["outputs"][0]["min"], 8000);
  EXPECT_EQ(filled.json()["outputs"][0]["max"], 8000);
  EXPECT_EQ(filled.json()["outputs"][0]["shape"], nlohmann::json({2, 3}));
  const ProgramResult wrong = run_program("run " + path("numbers.onnx") + " --input rate=1.5");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err, "input 'rate': expected an element of i64[], or a FILE.npy, got '1.5'")) << wrong.err;
}

TEST_F(CliModel, InputWithAValueOfTheFileCanBeGiven) {
  write("open.onnx", open_model());
  write("x.npy", npy_row({-1, 2, -3}));
  const std::string model = path("open.onnx") + " --input x=" + path("x.npy");
  EXPECT_EQ(run_program("info --json " + path("open.onnx")).json()["optional_inputs"][0]["name"], "bias");
  write("bias.npy", npy_vector({1}));  // another extent than the file's: a row that broadcasts
  for (const std::string verb : {"run ", "check ", "bisect "}) {
    const ProgramResult result = run_program(verb + "--json " + model + " --input bias=" + path("bias.npy"));
    ASSERT_EQ(result.exit_code, 0) << verb << result.err;
    if (verb == "run ") {
      EXPECT_NEAR(result.json()["outputs"][0]["max"].get<double>(), 3, 1e-6);
    }
  }
}

// y = x + bias, for which the file has three numbers; both have the extent n.
void save_with_optional_bias(const std::string& path) {
  Graph graph;
  const Var x = input(graph, DType::f32, {Dim::symbol("m"), Dim::symbol("n")}, "x");
  graph.add_output(add(x, input(graph, DType::f32, {Dim::symbol("n")}, "bias")).id(), "y");
  save_onnx(graph, path, {.input_defaults = {{"bias", Tensor::of<float>({3}, {10, 20, 30})}}});
}

// Not those of the value that the file has, unless nobody says what they are.
TEST_F(CliModel, NumberForAnInputWithAValueFillsTheExtentsThatOthersHave) {
  const std::string model = "run --json --input bias=2 " + path("bias.onnx");
  save_with_optional_bias(path("bias.onnx"));
  write("x.npy", npy_row({-1, 2, -3, 4, 5}));
  const std::pair<std::string, int> cases[] = {{"", 3},
                                               {" --input x=" + path("x.npy"), 5},
                                               {" --dim n=7", 7},
                                               {" --dim 'x[1]=4'", 4},
                                               {" --dim 'bias[0]=6'", 6}};
  for (const auto& [flags, extent] : cases) {
    const ProgramResult result = run_program(model + flags);
    ASSERT_EQ(result.exit_code, 0) << flags << result.err;
    EXPECT_EQ(result.json()["outputs"][0]["shape"], (std::vector<int>{1, extent})) << flags;
  }
}

// Whether the model reads the value as a constant or, from a plan, as an input.
TEST_F(CliModel, ExtentsThatContradictTheValueOfAnInputAreToldWithBoth) {
  const std::string file = path("bias.onnx");
  save_with_optional_bias(file);
  for (const std::string flags : {"--dim n=7", "--dim 'bias[0]=7'"}) {
    const ProgramResult result = run_program("run " + file + " " + flags);
    EXPECT_EQ(result.exit_code, 2) << flags;
    EXPECT_NE(result.err.find("is 7, but the value that the file has for input 'bias' has 3 there"), std::string::npos)
        << result.err;
  }
  EXPECT_EQ(run_program("run " + file + " --dim n=3").exit_code, 0);
  EXPECT_EQ(run_program("run " + file + " --dim n=7 --input bias=2").exit_code, 0);
}

TEST_F(CliModel, SavedResultsKeepTheValueOfAnInputThatWasGiven) {
  write("open.onnx", open_model());
  write("x.npy", npy_row({-1, 2, -3}));
  write("bias.npy", npy_vector({1, 1, 1}));
  const std::string x = " --input x=" + path("x.npy");
  const std::string given = x + " --input bias=" + path("bias.npy");
  for (const std::string file : {"o.agplan", "o.onnx"}) {
    const ProgramResult optimized =
        run_program("optimize --strategy sequential --seconds 0 " + path("open.onnx") + given + " -o " + path(file));
    ASSERT_EQ(optimized.exit_code, 0) << optimized.err;
    EXPECT_EQ(run_program("info --json " + path(file)).json()["optional_inputs"][0]["name"], "bias") << file;
    for (const std::string verb : {"run --json ", "check --json ", "bench --seconds 0 --json "}) {
      const ProgramResult left_out = run_program(verb + path(file) + x);
      ASSERT_EQ(left_out.exit_code, 0) << verb << file << left_out.err;
      if (verb != "run --json ") continue;
      EXPECT_EQ(left_out.json()["outputs"][0]["min"], 10) << file;
      EXPECT_EQ(left_out.json()["outputs"][0]["max"], 30) << file;
    }
    const ProgramResult replaced = run_program("run --json " + path(file) + given);
    ASSERT_EQ(replaced.exit_code, 0) << replaced.err;
    EXPECT_EQ(replaced.json()["outputs"][0]["max"], 3) << file;
  }
}

TEST_F(CliModel, PlanTellsThatAValueOfTheFileDoesNotFitAnyMore) {
  write("open.onnx", open_model());
  write("x.npy", npy_row({-1, 2, -3}));
  write("bias.npy", npy_vector({1}));
  const ProgramResult optimized =
      run_program("optimize --strategy sequential --seconds 0 " + path("open.onnx") + " --input x=" + path("x.npy") +
                  " --input bias=" + path("bias.npy") + " -o " + path("o.agplan"));
  ASSERT_EQ(optimized.exit_code, 0) << optimized.err;
  EXPECT_TRUE(contains(optimized.err, "input 'bias': the file has f32[3] for it, the result takes f32[1]"))
      << optimized.err;
  EXPECT_TRUE(run_program("info --json " + path("o.agplan")).json()["optional_inputs"].empty());
}

TEST_F(CliModel, MissingExternalDataIsExitThree) {
  const std::string location = bytes(13, bytes(1, "location") + bytes(2, "weights.bin"));
  const std::string initializer = bytes(5, number(1, 3) + number(2, 1) + bytes(8, "w") + location + number(14, 1));
  const std::string add = bytes(1, bytes(1, "x") + bytes(1, "w") + bytes(2, "y") + bytes(4, "Add"));
  const std::string graph = add + bytes(2, "g") + initializer + value_info(11, "x") + value_info(12, "y");
  write("external.onnx", number(1, 8) + bytes(7, graph) + bytes(8, number(2, 17)));
  const ProgramResult result = run_program("info " + path("external.onnx"));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(contains(result.err, "external_data of 'w': no file 'weights.bin'")) << result.err;
}

TEST_F(CliModel, OptimizeSavesAModelThatChecks) {
  const std::string command =
      "optimize --json --seconds 0 --strategy sequential " + path("m.onnx") + " -o " + path("o.onnx");
  const ProgramResult result = run_program(command);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* field : {"latency_before_ms", "latency_after_ms", "search_seconds", "max_abs", "max_rel"}) {
    EXPECT_TRUE(result.json().contains(field)) << field;
  }
  // No search runs, so that nothing may look like the result of one.
  for (const char* field : {"candidates", "measured", "partitions", "search_seconds"}) {
    EXPECT_EQ(result.json()[field], 0) << field;
  }
  EXPECT_TRUE(result.json()["cost_before"].is_null());
  EXPECT_EQ(run_program("check " + path("o.onnx")).exit_code, 0);
}

TEST_F(CliModel, VizWritesDotSvgAndHtml) {
  ASSERT_EQ(run_program("viz " + path("m.onnx") + " -o " + path("m.dot")).exit_code, 0);
  EXPECT_TRUE(contains(read_text(path("m.dot")), "Softmax"));
  ASSERT_EQ(run_program("viz " + path("m.onnx") + " -o " + path("m.html")).exit_code, 0);
  EXPECT_TRUE(contains(read_text(path("m.html")), "<svg"));
  EXPECT_FALSE(contains(read_text(path("m.html")), "<?xml"));
  ASSERT_EQ(run_program("viz " + path("m.onnx") + " -o " + path("m.svg")).exit_code, 0);
  EXPECT_TRUE(contains(read_text(path("m.svg")), "block/Softmax"));
  EXPECT_TRUE(contains(read_text(path("m.svg")), ">colours<"));  // the legend
}

TEST_F(CliModel, VizThatTakesTooLongIsExitEight) {
  write("dot", "#!/bin/sh\nexec sleep 20\n");
  std::filesystem::permissions(path("dot"), std::filesystem::perms::owner_all);
  const ProgramResult result =
      run_program("viz " + path("m.onnx") + " -o " + path("m.svg") + " --timeout 0.2", "PATH=" + path("") + ":$PATH");
  EXPECT_EQ(result.exit_code, 8);
  EXPECT_EQ(result.err,
            "error: [viz] layout: graphviz took longer than 0.2 s (a smaller --depth or an output ending in .dot needs "
            "less)\n");
  EXPECT_FALSE(std::filesystem::exists(path("m.svg")));
}

TEST_F(CliModel, VizCollapsesToTheDepthAskedFor) {
  ASSERT_EQ(run_program("viz --depth 1 " + path("m.onnx") + " -o " + path("m.dot")).exit_code, 0);
  EXPECT_TRUE(contains(read_text(path("m.dot")), "2 nodes: 1 Relu, 1 Softmax"));
  const ProgramResult result = run_program("viz --expand blok " + path("m.onnx") + " -o " + path("m.dot"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "did you mean 'block'?")) << result.err;
}

TEST_F(CliModel, VizRefusesNumbersThatMakeNoPicture) {
  const std::string viz = "viz " + path("m.onnx") + " -o " + path("m.dot");
  for (const std::string flag : {"--max-boxes 0", "--max-boxes -5", "--depth -2", "--timeout 0", "--timeout 1e300"}) {
    const ProgramResult result = run_program(viz + " " + flag);
    EXPECT_EQ(result.exit_code, 2) << flag << result.err;
    EXPECT_FALSE(std::filesystem::exists(path("m.dot"))) << flag;
  }
}

TEST_F(CliModel, OutputsMayGoIntoAPipe) {
  ASSERT_EQ(std::system(("mkfifo " + path("pipe")).c_str()), 0);
  const ProgramResult result = run_program("profile " + path("m.onnx") + " -o " + path("pipe"),
                                           "timeout 20 cat " + path("pipe") + " >" + path("t.json") + " &");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe"))) << "a file took its place";
  std::system(("for i in $(seq 100); do test -s " + path("t.json") + " && break; sleep 0.1; done").c_str());
  EXPECT_TRUE(nlohmann::json::parse(read_text(path("t.json"))).contains("traceEvents"));
}

TEST_F(CliModel, OutputThatCannotBeWrittenFailsBeforeTheModelIsLoaded) {
  const ProgramResult result = run_program("viz /nowhere/m.onnx -o /nowhere/m.dot");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "no folder '/nowhere'")) << result.err;
}

}  // namespace
}  // namespace autograph
