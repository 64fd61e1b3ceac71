// Usage errors, help, completion, man page, streams and escapes.
#include <gtest/gtest.h>

#include <sstream>

#include "autograph/compile.h"
#include "autograph/devices.h"
#include "cli/run_program.h"
#include "engine/check/attestation.h"

namespace autograph {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const std::vector<std::string> kVerbs = {"info", "check",  "run",        "bench",   "profile", "optimize",
                                         "grad", "train",  "eval",       "predict", "viz",     "rules",
                                         "ops",  "doctor", "completion", "man"};

TEST(Cli, UnknownVerbIsUsageErrorWithTheNearestVerb) {
  const ProgramResult result = run_program("docter");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "did you mean 'doctor'?")) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST(Cli, UnknownFlagIsUsageErrorWithTheNearestFlag) {
  const ProgramResult result = run_program("doctor --thread=3");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "did you mean '--threads'?")) << result.err;
}

TEST(Cli, FlagValueThatIsNoNumberIsUsageError) {
  const ProgramResult result = run_program("doctor --threads many");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "many")) << result.err;
}

TEST(Cli, UnknownStrategyAndDeviceSuggestTheNearest) {
  EXPECT_TRUE(contains(run_program("doctor --strategy nimbl").err, "did you mean 'nimble'?"));
  EXPECT_TRUE(contains(run_program("doctor --device cpuu").err, "did you mean 'cpu'?"));
  EXPECT_EQ(run_program("doctor --device cpuu").exit_code, 2);
}

// Which devices there are depends on the machine; 'cpu' is none of those meant.
TEST(Cli, SuggestsTheGpusThatThereAre) {
  const std::string message = run_program("doctor --device gpu").err;
  EXPECT_FALSE(contains(message, "did you mean 'cpu'")) << message;
  EXPECT_TRUE(contains(message, "did you mean 'cuda") || contains(message, "did you mean 'opencl") ||
              contains(message, "GPUs are 'cuda' and 'opencl', of which this machine has none"))
      << message;
}

TEST(Cli, KnowsEveryDeviceOfTheBuild) {
  const std::string message = run_program("doctor --device cpuu").err;
  for (const std::string& device : available_devices()) {
    EXPECT_TRUE(contains(message, device)) << device;
    EXPECT_EQ(run_program("doctor --device " + device).exit_code, 0) << device;
  }
}

// The loader of Debian reads where drivers are announced from a variable.
TEST(Cli, SaysWhatItLookedForWithoutOpenCl) {
  const std::string no_driver = "OCL_ICD_VENDORS=/no/such/folder";
  for (const std::string device : {"opencl", "opencl:3"}) {
    const ProgramResult result = run_program("run zoo:mlp --device " + device, no_driver);
    EXPECT_EQ(result.exit_code, 7) << device;
    EXPECT_TRUE(contains(result.err, "[opencl] ")) << result.err;
    EXPECT_TRUE(contains(result.err, "pocl-opencl-icd") || contains(result.err, "headers of OpenCL")) << result.err;
  }
  EXPECT_FALSE(contains(run_program("doctor", no_driver).out, "opencl:"));
  const nlohmann::json doctor = run_program("doctor --json", no_driver).json();
  for (const nlohmann::json& device : doctor["devices"]) EXPECT_NE(device, "opencl") << doctor;
}

TEST(Cli, NoArgumentsIsUsageError) { EXPECT_EQ(run_program("").exit_code, 2); }

TEST(Cli, ExtraArgumentIsUsageError) {
  const ProgramResult result = run_program("man surplus");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "surplus")) << result.err;
}

TEST(Cli, HelpShowsExamplesBeforeUsageAndEveryVerb) {
  const ProgramResult result = run_program("--help");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_LT(result.out.find("Examples:"), result.out.find("Usage:"));
  for (const std::string& verb : kVerbs) {
    EXPECT_TRUE(contains(result.out, "\n  " + verb + " ")) << verb;
    const ProgramResult help = run_program(verb + " --help");
    EXPECT_EQ(help.exit_code, 0) << verb;
    EXPECT_TRUE(contains(help.out, "Examples:\n  ")) << verb;
    EXPECT_LT(help.out.find("Examples:"), help.out.find("Usage:")) << verb;
  }
}

TEST(Cli, HelpIsAVerbTooAndAsWideAsTheTerminal) {
  EXPECT_EQ(run_program("help").out, run_program("--help").out);
  const ProgramResult wide = run_program("help rules verify");
  EXPECT_EQ(wide.exit_code, 0);
  EXPECT_EQ(wide.out, run_program("rules verify --help").out);
  const auto longest = [](const std::string& text) {
    std::istringstream lines(text);
    size_t columns = 0;
    for (std::string line; std::getline(lines, line);) columns = std::max(columns, line.size());
    return columns;
  };
  EXPECT_GT(longest(run_program("optimize --help").out), 90U);
  EXPECT_LE(longest(run_program("info --help", "COLUMNS=80").out), 80U);
  EXPECT_EQ(run_program("info --help", "COLUMNS=0").out, run_program("info --help", "COLUMNS=40").out);
  EXPECT_EQ(run_program("info --help", "COLUMNS=wide").out, run_program("info --help").out);
}

TEST(Cli, CompletionAndManNameEveryVerb) {
  for (const std::string command : {"completion bash", "completion zsh", "completion fish", "man"}) {
    const ProgramResult result = run_program(command);
    EXPECT_EQ(result.exit_code, 0) << command;
    for (const std::string& verb : kVerbs) EXPECT_TRUE(contains(result.out, verb)) << command << ": " << verb;
    EXPECT_TRUE(contains(result.out, "threads")) << command;
  }
}

TEST(Cli, BashCompletionScriptParsesAndCompletesVerbs) {
  const TestFolder folder;
  std::ofstream(folder / "script") << run_program("completion bash").out;
  const std::string script = "bash -c 'source " + (folder / "script") +
                             "; COMP_WORDS=(autograph doc); COMP_CWORD=1; _autograph; echo ${COMPREPLY[@]} > " +
                             (folder / "reply") + "'";
  ASSERT_EQ(std::system(script.c_str()), 0);
  EXPECT_EQ(read_text(folder / "reply"), "doctor\n");
}

TEST(Cli, BashCompletionKeepsNamesWithBlanksWhole) {
  const TestFolder folder;
  folder.write("files/my model.onnx", "");
  folder.write("files/my other.onnx", "");
  std::ofstream(folder / "script") << "cd " << (folder / "files") << "\nPATH=" << folder.path() << ":$PATH\n"
                                   << run_program("completion bash").out
                                   << "COMP_WORDS=(autograph info my); COMP_CWORD=2; _autograph\n"
                                   << "printf '%s\\n' \"${COMPREPLY[@]}\" | sort | tr '\\n' '|'\n"
                                   << "COMP_WORDS=(autograph run m --input my); COMP_CWORD=4; _autograph\n"
                                   << "printf '%s\\n' \"${COMPREPLY[@]}\" | sort | tr '\\n' '|'\n";
  std::filesystem::create_symlink(AG_PROGRAM, folder / "autograph");
  ASSERT_EQ(std::system(("bash " + (folder / "script") + " >" + (folder / "reply")).c_str()), 0);
  EXPECT_EQ(read_text(folder / "reply"), "my model.onnx|my other.onnx|my model.onnx|my other.onnx|");
}

TEST(Cli, CompletionValuesListOperators) {
  EXPECT_TRUE(contains(run_program("completion --values op").out, "\nsoftmax\n"));
}

TEST(Cli, OpsJsonDescribesAnOperator) {
  const ProgramResult result = run_program("ops Softmax --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = result.json();
  EXPECT_EQ(document["schema"], 1);
  ASSERT_EQ(document["ops"].size(), 1u);
  EXPECT_EQ(document["ops"][0]["name"], "softmax");
  EXPECT_EQ(document["ops"][0]["onnx"][0]["name"], "Softmax");
  EXPECT_EQ(document["ops"][0]["dtypes"]["T"], (std::vector<std::string>{"f32", "f64", "f16", "bf16"}));
  EXPECT_EQ(document["ops"][0]["on_gpu"], "kernel");
  EXPECT_EQ(run_program("ops unique --json").json()["ops"][0]["on_gpu"], "host");
}

TEST(Cli, OpsListsThoseOfOtherDomains) {
  const ProgramResult all = run_program("ops");
  for (const char* name : {"FusedConv", "DynamicQuantizeLSTM", "MatMulNBits", "com.microsoft.nchwc"}) {
    EXPECT_TRUE(contains(all.out, name)) << name;
  }
  for (const std::string name : {"FusedMatMul", "com.microsoft::FusedMatMul"}) {
    const ProgramResult one = run_program("ops --json " + name);
    ASSERT_EQ(one.exit_code, 0) << one.err;
    const nlohmann::json document = one.json();
    EXPECT_TRUE(document["ops"].empty());
    ASSERT_EQ(document["other_domains"].size(), 1u);
    EXPECT_EQ(document["other_domains"][0]["name"], "FusedMatMul");
    EXPECT_EQ(document["other_domains"][0]["domain"], "com.microsoft");
    EXPECT_EQ(document["other_domains"][0]["becomes"], (std::vector<std::string>{"matmul", "mul"}));
    EXPECT_TRUE(contains(run_program("ops " + name).out, "matmul mul")) << name;
  }
  // A name of ours may be one of theirs, too.
  const nlohmann::json conv = run_program("ops --json Conv").json();
  EXPECT_EQ(conv["ops"][0]["name"], "conv");
  EXPECT_EQ(conv["other_domains"].size(), 2u);
  const ProgramResult main_domain = run_program("ops --json ai.onnx::Conv");
  ASSERT_EQ(main_domain.exit_code, 0) << main_domain.err;
  EXPECT_EQ(main_domain.json()["ops"][0]["name"], "conv");
  EXPECT_TRUE(main_domain.json()["other_domains"].empty());
}

TEST(Cli, UnknownOperatorIsUnsupportedWithTheNearest) {
  const ProgramResult result = run_program("ops sofmax");
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_TRUE(contains(result.err, "did you mean 'softmax'?")) << result.err;
  const ProgramResult contrib = run_program("ops FusedCnv");
  EXPECT_EQ(contrib.exit_code, 4);
  EXPECT_TRUE(contains(contrib.err, "did you mean 'FusedConv'?")) << contrib.err;
}

TEST(Cli, DoctorJsonNamesOriginsOfSettings) {
  const ProgramResult result = run_program("doctor --json --seed 7", "AUTOGRAPH_NUM_THREADS=3");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = result.json();
  for (const char* field : {"schema", "isa", "libraries", "settings"}) EXPECT_TRUE(document.contains(field)) << field;
  ASSERT_EQ(document["backends"].size(), document["devices"].size());
  EXPECT_EQ(document["backends"][0]["name"], "cpu");
  EXPECT_FALSE(document["backends"][0]["own_kernels"].empty());
  std::string names;
  for (const auto& library : document["libraries"]) names += library["name"].get<std::string>() + " ";
  EXPECT_TRUE(contains(names, "protobuf ") && contains(names, "zlib ")) << names;
  for (const auto& setting : document["settings"]) {
    if (setting["name"] == "seed") {
      EXPECT_EQ(setting["origin"], "flag --seed");
    }
    if (setting["name"] == "threads") {
      EXPECT_EQ(setting["origin"], "env AUTOGRAPH_NUM_THREADS");
      EXPECT_EQ(setting["value"], "3");
    }
    if (setting["name"] == "device") {
      EXPECT_EQ(setting["origin"], "default");
    }
  }
}

// OpenMP then binds the first thread before main() begins.
TEST(Cli, BoundThreadsDoNotHideProcessors) {
  const nlohmann::json free = run_program("doctor --json").json();
  const nlohmann::json bound = run_program("doctor --json", "OMP_PROC_BIND=close").json();
  EXPECT_EQ(bound["cpus"]["allowed"], free["cpus"]["allowed"]);
}

// What differs from machine to machine is left out: the first word of every line but those of devices with drivers, and
// the settings as they stand. Kernels that other tests have had refused are in another cache.
TEST(Cli, DoctorTextNamesEveryPartAndEverySetting) {
  const TestFolder cache;
  const ProgramResult result =
      run_program("doctor --seed 7", "AUTOGRAPH_NUM_THREADS=3 XDG_CACHE_HOME=" + (cache / "c"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const size_t table = result.out.find("\n\n");
  ASSERT_NE(table, std::string::npos) << result.out;
  std::istringstream facts(result.out.substr(0, table));
  std::string words;
  for (std::string line; std::getline(facts, line);) {
    const std::string word = line.substr(0, line.find(' '));
    if (word != "opencl" && word != "cuda" && word != "not") words += word + " ";
  }
  std::string backends;
  for (size_t n = available_devices().size(); n > 0; --n) backends += "backend ";
  EXPECT_EQ(words, "autograph processor isa cpus memory devices " + backends +
                       "strategies operators libraries cache attested ");
  EXPECT_EQ(result.out.substr(table + 2),
            "setting           value  origin\n"
            "device            cpu    default\n"
            "threads           3      env AUTOGRAPH_NUM_THREADS\n"
            "pin               false  default\n"
            "fixed-threads     false  default\n"
            "seed              7      flag --seed\n"
            "memory-budget     0      default\n"
            "check-nan         false  default\n"
            "check-every-node  false  default\n"
            "attest            false  default\n"
            "cache-dir                default\n"
            "log                      default\n");
}

TEST(Cli, AttestsKernelsOnceAndTellsSo) {
  const TestFolder folder;
  const std::string cache = " --cache-dir " + (folder / "cache");
  EXPECT_EQ(run_program("doctor --json" + cache).json()["attested"]["trusted"], 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "cache")) << "asking makes no cache";
  EXPECT_EQ(run_program("run zoo:mlp" + cache).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "cache")) << "neither does running";
  ASSERT_EQ(run_program("run zoo:mlp" + cache, "AUTOGRAPH_ATTEST=1").exit_code, 0);
  const nlohmann::json once = run_program("doctor --json" + cache).json()["attested"];
  EXPECT_GT(once["trusted"], 0);
  EXPECT_TRUE(once["refused"].empty()) << once.dump();
  ASSERT_EQ(run_program("check zoo:mlp --attest" + cache).exit_code, 0);
  EXPECT_EQ(run_program("doctor --json" + cache).json()["attested"], once);
}

TEST(Cli, DoctorListsRefusedKernels) {
  const TestFolder folder;
  CompileOptions options;
  options.cache_folder = folder / "cache";
  verdicts_of(get_device("cpu"), options)->keep("key", "cpu.some_kernel | relu: f32[4]", "expected 1, got 2");
  const std::string doctor = "doctor --cache-dir " + options.cache_folder;
  EXPECT_TRUE(contains(run_program(doctor).out, "refused     cpu.some_kernel for relu: f32[4]: expected 1, got 2"))
      << run_program(doctor).out;
  const nlohmann::json refused = run_program(doctor + " --json").json()["attested"]["refused"];
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0]["kernel"], "cpu.some_kernel");
  EXPECT_EQ(refused[0]["call"], "relu: f32[4]");
  EXPECT_EQ(refused[0]["fault"], "expected 1, got 2");
}

TEST(Cli, DoctorMeasuresThePeakOnlyWhenAsked) {
  EXPECT_TRUE(run_program("doctor --json").json()["peak"].is_null());
  const nlohmann::json peak = run_program("doctor --json --peak --threads 1").json()["peak"];
  ASSERT_EQ(peak["compute"].size(), 1u);
  EXPECT_EQ(peak["compute"][0]["threads"], 1);
  EXPECT_GT(peak["compute"][0]["gflops"], 0.1);
  EXPECT_EQ(peak["memory"][0]["level"], "L1");
  EXPECT_EQ(peak["memory"].back()["level"], "memory");
  EXPECT_TRUE(contains(run_program("doctor --peak --threads 1").out, "f32 GFLOP/s"));
}

TEST(Cli, SaysWhereNothingIsKept) {
  const TestFolder folder;
  folder.write("file", "");
  const std::string in_file = " --cache-dir " + (folder / "file/cache");
  const std::string why = "'" + (folder / "file") + "' is no folder";
  EXPECT_TRUE(contains(run_program("doctor" + in_file).out, why));
  EXPECT_EQ(run_program("doctor --json" + in_file).json()["cache"]["problem"], why);
  const std::string nowhere = "env -u HOME -u XDG_CACHE_HOME";
  EXPECT_TRUE(contains(run_program("doctor", nowhere).out, "neither HOME nor XDG_CACHE_HOME is set"));
  EXPECT_EQ(run_program("doctor --json --cache-dir " + (folder / "new")).json()["cache"],
            (nlohmann::json{{"folder", folder / "new"}, {"problem", ""}}));
  folder.write("damaged/measurements.sqlite", "no database at all");
  EXPECT_TRUE(
      contains(run_program("doctor --cache-dir " + (folder / "damaged")).out, "measurements.sqlite' is damaged"));
  ASSERT_EQ(run_program("run zoo:mlp --attest --cache-dir " + (folder / "new")).exit_code, 0);
  EXPECT_EQ(run_program("doctor --json --cache-dir " + (folder / "new")).json()["cache"]["problem"], "");
  // Verbs that measure say so, others do not.
  const ProgramResult attested = run_program("run zoo:mlp --attest" + in_file);
  EXPECT_EQ(attested.exit_code, 0) << attested.err;
  EXPECT_TRUE(contains(attested.err, "warning: what is measured is not kept: " + why)) << attested.err;
  EXPECT_EQ(run_program("run zoo:mlp" + in_file).err, "");
  const ProgramResult optimized = run_program("optimize zoo:mlp --budget 0.2" + in_file);
  EXPECT_EQ(optimized.exit_code, 0) << optimized.err;
  EXPECT_TRUE(contains(optimized.err, why)) << optimized.err;
}

TEST(Cli, UnknownEnvironmentVariableWarnsWithTheNearest) {
  const ProgramResult result = run_program("doctor --json", "AUTOGRAPH_NUM_THREAD=3");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(contains(result.err, "did you mean 'AUTOGRAPH_NUM_THREADS'?")) << result.err;
  EXPECT_EQ(run_program("doctor --quiet", "AUTOGRAPH_NUM_THREAD=3").err, "");
}

TEST(Cli, EnvironmentVariableThatDoesNotConvertIsUsageError) {
  EXPECT_EQ(run_program("doctor", "AUTOGRAPH_NUM_THREADS=x").exit_code, 2);
}

TEST(Cli, EscapesOnlyWhereAskedFor) {
  EXPECT_FALSE(contains(run_program("ops").out, "\033"));
  EXPECT_TRUE(contains(run_program("ops", "CLICOLOR_FORCE=1").out, "\033"));
  EXPECT_FALSE(contains(run_program("ops", "CLICOLOR_FORCE=1 NO_COLOR=1").out, "\033"));
  EXPECT_TRUE(contains(run_program("ops --color always", "NO_COLOR=1").out, "\033"));
  EXPECT_FALSE(contains(run_program("frobnicate").err, "\033"));
}

TEST(Cli, FailureWithJsonIsStillOneDocument) {
  const ProgramResult result = run_program("doctor --frobnicate --json");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.json()["error"]["kind"], "usage");
}

TEST(Cli, UnknownLogTopicIsUsageError) {
  const ProgramResult result = run_program("doctor --log=+kernel");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "did you mean 'kernels'?")) << result.err;
}

TEST(Cli, FullDiskOnStdoutIsFailure) {
  const std::string command = std::string(AG_PROGRAM) + " ops >/dev/full 2>/dev/null";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
}

TEST(Cli, SaysWhatAFlagTakes) {
  const auto message = [](const std::string& arguments) {
    return run_program("train m.onnx --data x " + arguments).err;
  };
  EXPECT_EQ(message("--epochs x"), "error: [cli] --epochs: expected an integer, got 'x'\n");
  EXPECT_EQ(message("--epochs 1.5"), "error: [cli] --epochs: expected an integer, got '1.5'\n");
  EXPECT_EQ(message("--lr fast"), "error: [cli] --learning-rate: expected a number, got 'fast'\n");
  EXPECT_EQ(message("--schedule plateu"),
            "error: [cli] schedule: expected one of constant step cosine one_cycle plateau, got 'plateu' (did you mean "
            "'plateau'?)\n");
}

}  // namespace
}  // namespace autograph
