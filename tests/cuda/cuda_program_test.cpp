// What the program says where there is no device, or a device fails: exit codes, what was looked for, and where.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "cli/run_program.h"

namespace autograph {
namespace {

constexpr const char* kBench = "bench --device cuda zoo:mlp --json";
// With kernels of its own, which no library computes.
constexpr const char* kGenerated = "bench --device cuda zoo:mlp --json --disable-pass fuse_epilogues";

ProgramResult run_with(const std::string& settings, const std::string& arguments = kBench) {
  return run_program(arguments,
                     "AUTOGRAPH_CUDA_PATH=" AG_STANDIN_FOLDER " XDG_CACHE_HOME=" AG_STANDIN_CACHE " " + settings);
}

// A driver of this machine would be found behind the stand-in that was refused.
bool has_driver() {
  return ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) == nullptr && ::access("/dev/nvidiactl", F_OK) == 0;
}

std::string message_with(const std::string& settings, const std::string& arguments = kBench) {
  const ProgramResult result = run_with(settings, arguments);
  EXPECT_EQ(result.exit_code, 7) << result.out << result.err;
  return result.exit_code == 7 ? result.json()["error"]["message"].get<std::string>() : "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(CudaProgram, SaysWhereItLookedForADriver) {
  if (has_driver()) GTEST_SKIP() << "there is one here";
  const TestFolder empty;
  const ProgramResult result =
      run_program(kBench, "AUTOGRAPH_CUDA_PATH=" + (empty / "") + " CUDA_PATH= VIRTUAL_ENV= PATH=/usr/bin:/bin");
  EXPECT_EQ(result.exit_code, 7);
  const std::string message = result.json()["error"]["message"];
  EXPECT_TRUE(has(message, "[cuda] driver: no driver of NVIDIA found (looked for libcuda.so.1")) << message;
  EXPECT_TRUE(has(message, empty / "")) << message;
}

TEST(CudaProgram, SaysThatThereIsNoDevice) {
  const std::string message = message_with("AG_STANDIN_DEVICES=0");
  EXPECT_TRUE(has(message, "cuInit fails with CUDA_ERROR_NO_DEVICE (100)")) << message;
  EXPECT_TRUE(has(message, "nvidia-smi")) << message;
  const std::string one = message_with("AG_STANDIN_DEVICES=2", "bench --device cuda:2 zoo:mlp --json");
  EXPECT_TRUE(has(one, "expected one of [cuda,cuda:1], got 'cuda:2'")) << one;
}

TEST(CudaProgram, SaysThatTheDriverIsTooOld) {
  if (has_driver()) GTEST_SKIP() << "another driver would be found";
  const std::string message = message_with("AG_STANDIN_DRIVER=11040");
  EXPECT_TRUE(has(message, AG_STANDIN_FOLDER "/libcuda.so.1: is a driver for CUDA 11.4, expected 12.0")) << message;
}

TEST(CudaProgram, SaysThatTheCompilerIsMissing) {
  const std::string message = message_with("AG_STANDIN_DRIVER=12020 AG_STANDIN_NVRTC=14010");
  EXPECT_TRUE(has(message, "NVRTC was not found (looked for libnvrtc.so.13, libnvrtc.so.12")) << message;
  EXPECT_TRUE(has(message, "compiles for CUDA 14.1, the driver takes code up to CUDA 12.2")) << message;
  EXPECT_TRUE(has(message, "nvidia-cuda-nvrtc")) << message;
}

TEST(CudaProgram, SaysThatTheArchitectureIsWrong) {
  const std::string message = message_with("AG_STANDIN_ARCHITECTURE=70");
  EXPECT_TRUE(has(message, "'Stand-in' has the architecture sm_70, expected one of sm_75..sm_121")) << message;
}

TEST(CudaProgram, NamesTheLargestTensorsWhereMemoryEnds) {
  const ProgramResult result = run_with("AG_STANDIN_MEMORY=2000");
  EXPECT_EQ(result.exit_code, 5) << result.out << result.err;
  const std::string message = result.json()["error"]["message"];
  EXPECT_TRUE(has(message, "no room for")) << message;
  EXPECT_TRUE(has(message, "the largest tensors are:")) << message;
}

TEST(CudaProgram, NamesKernelsOfWhichOneFailed) {
  const std::string message = message_with("AG_STANDIN_FAIL_LAUNCH=3", kGenerated);
  EXPECT_TRUE(has(message, "CUDA_ERROR_ILLEGAL_ADDRESS (700)")) << message;
  EXPECT_TRUE(has(message, "the device takes no more work from this process")) << message;
  EXPECT_TRUE(has(message, "CUDA_LAUNCH_BLOCKING=1")) << message;
  EXPECT_TRUE(has(message, "fused") || has(message, "relu")) << message;
}

TEST(CudaProgram, NamesTheStepThatFailedWhereLaunchesAreWaitedFor) {
  const std::string message = message_with("AG_STANDIN_FAIL_LAUNCH=1 CUDA_LAUNCH_BLOCKING=1", kGenerated);
  EXPECT_TRUE(has(message, "CUDA_ERROR_ILLEGAL_ADDRESS (700)")) << message;
  EXPECT_TRUE(has(message, " (in ")) << message;
}

TEST(CudaProgram, TellsVersionsInTheDoctor) {
  const ProgramResult result = run_with("", "doctor --json");
  const std::string text = result.json()["identities"].dump();
  for (const char* part : {"Stand-in sm_90", "(CUDA 13.0)", "nvrtc 12.99", "cublasLt 13.0.0", "cudnn 9.19.0"}) {
    EXPECT_TRUE(has(text, part)) << text;
  }
  EXPECT_TRUE(result.json()["warnings"].empty()) << result.json()["warnings"].dump();
  const ProgramResult missing = run_with("AG_STANDIN_DEVICES=0", "doctor --json");
  EXPECT_TRUE(has(missing.json()["missing"].dump(), "cuInit")) << missing.out;
}

TEST(CudaProgram, ChecksModels) {
  const ProgramResult result = run_with("", "check zoo:mlp --device cuda --strict --json");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

}  // namespace
}  // namespace autograph
