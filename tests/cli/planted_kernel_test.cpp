// What the command line does on a machine with a wrong kernel: who finds it, and where it is shown.
#include "support/kernels/planted_kernel.h"

#include <gtest/gtest.h>

#include "autograph/model_io.h"
#include "cli/run_program.h"

namespace autograph {
namespace {

constexpr int kDiffers = 6;

class PlantedCli : public ::testing::Test {
 protected:
  void SetUp() override { save_onnx(planted_model(), model_); }

  ProgramResult run(const std::string& arguments) const {
    return run_program(arguments + " --device planted --threads 1 --cache-dir " + (folder_ / "cache"), "",
                       AG_PLANTED_PROGRAM);
  }
  static bool names_planted(const std::string& text) { return text.find(kPlantedKernel) != std::string::npos; }

  TestFolder folder_;
  const std::string model_ = folder_ / "model.onnx";
};

TEST_F(PlantedCli, TheProgramItselfHasNoSuchDevice) { EXPECT_NE(run_program("doctor --device planted").exit_code, 0); }

TEST_F(PlantedCli, CheckFindsIt) {
  const ProgramResult plain = run("check " + model_);
  EXPECT_EQ(plain.exit_code, kDiffers) << plain.out << plain.err;
  const ProgramResult attested = run("check --attest " + model_);
  EXPECT_EQ(attested.exit_code, 0) << attested.out << attested.err;
  EXPECT_EQ(run("check " + model_).exit_code, 0) << "once refused, it is in no plan";
}

TEST_F(PlantedCli, AttestationRefusesItAndProfileAndDoctorShowIt) {
  EXPECT_FALSE(names_planted(run("doctor").out));
  const ProgramResult profile = run("profile --attest " + model_);
  EXPECT_EQ(profile.exit_code, 0) << profile.err;
  EXPECT_TRUE(names_planted(profile.out)) << profile.out;
  EXPECT_NE(profile.out.find("wrong numbers on this machine: element ["), std::string::npos) << profile.out;
  EXPECT_TRUE(names_planted(run("doctor").out)) << run("doctor").out;
  const nlohmann::json refused = run("doctor --json").json()["attested"]["refused"];
  ASSERT_FALSE(refused.empty());
  EXPECT_TRUE(names_planted(refused[0]["kernel"])) << refused.dump();
}

TEST_F(PlantedCli, OptimizeLeavesItOut) {
  const std::string plan = folder_ / "model.agplan";
  const ProgramResult optimized = run("optimize --budget 2 " + model_ + " -o " + plan);
  EXPECT_EQ(optimized.exit_code, 0) << optimized.err;
  const ProgramResult check = run("check " + plan);
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
  EXPECT_TRUE(names_planted(run("doctor").out)) << run("doctor").out;
}

TEST_F(PlantedCli, BisectNamesIt) {
  const ProgramResult result = run("bisect " + model_ + " -o " + (folder_ / "smallest.onnx"));
  EXPECT_EQ(result.exit_code, kDiffers) << result.err;
  EXPECT_TRUE(names_planted(result.out)) << result.out;
}

}  // namespace
}  // namespace autograph
