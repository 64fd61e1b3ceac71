// A kernel that is wrong, as one of a library was, and who finds it.
#include "support/kernels/planted_kernel.h"

#include <gtest/gtest.h>

#include "autograph/attested_kernels.h"
#include "autograph/bisect.h"
#include "autograph/builder.h"
#include "autograph/compare_values.h"
#include "autograph/devices.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/reference_kernel.h"
#include "autograph/search.h"
#include "autograph/seeded_inputs.h"
#include "autograph/truth.h"
#include "backends/cpu/cpu_device.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

class PlantedKernelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.device = planted_device();
    options_.cache_folder = folder_.path();
    options_.threads = 1;
    CompileOptions reference;
    reference.device = "reference";
    reference.expert.use_passes = false;
    inputs_ = seeded_inputs(model_);
    expected_ = compile(model_, reference).run(inputs_);
  }

  bool is_right(const Executable& executable) const { return compare_all(executable.run(inputs_), expected_, {}).ok; }
  static bool uses_planted(const Executable& executable) {
    for (const KernelChoice& choice : executable.kernel_choices()) {
      if (choice.kernel.starts_with(kPlantedKernel)) return true;
    }
    return false;
  }

  Graph model_ = planted_model();
  TestFolder folder_;
  CompileOptions options_;
  std::vector<Datum> inputs_;
  std::vector<Datum> expected_;
};

TEST_F(PlantedKernelTest, IsWrongWhereNobodyLooks) {
  const Executable executable = compile(model_, options_);
  EXPECT_TRUE(uses_planted(executable));
  EXPECT_FALSE(is_right(executable));
}

TEST_F(PlantedKernelTest, AttestationRefusesIt) {
  CompileOptions attested = options_;
  attested.attest = true;
  attested.release_weights = true;
  const Executable executable = compile(model_, attested);
  EXPECT_FALSE(uses_planted(executable));
  EXPECT_TRUE(is_right(executable));
  std::string reasons;
  for (const KernelChoice& choice : executable.kernel_choices()) {
    for (const std::string& reason : choice.refusals) reasons += reason + "\n";
  }
  EXPECT_NE(reasons.find("cpu.planted"), std::string::npos) << reasons;
  EXPECT_NE(reasons.find("wrong numbers on this machine: element ["), std::string::npos) << reasons;

  const AttestedKernels found = attested_kernels(attested);
  EXPECT_GT(found.trusted, 0);
  ASSERT_GT(found.refused.size(), 0U);
  EXPECT_TRUE(found.refused[0].kernel.starts_with(kPlantedKernel));
  // From then on, without asking for it.
  const Executable plain = compile(model_, options_);
  EXPECT_FALSE(uses_planted(plain));
  EXPECT_TRUE(is_right(plain));
}

TEST_F(PlantedKernelTest, CheckFindsIt) {
  const Truth truth = Truth::of(model_, inputs_, options_);
  EXPECT_FALSE(truth.compare_all(compile(model_, options_).run(inputs_)).ok);
}

TEST_F(PlantedKernelTest, MeasuringKernelsFindsIt) {
  CompileOptions tuned = options_;
  tuned.tune = true;
  const Executable executable = compile(model_, tuned);
  EXPECT_FALSE(uses_planted(executable));
  EXPECT_TRUE(is_right(executable));
}

TEST_F(PlantedKernelTest, SearchesFindIt) {
  SearchOptions search;
  search.budget_seconds = 2;
  const Optimized found = optimize(model_, options_, search);
  EXPECT_TRUE(found.report.agrees);
  EXPECT_EQ(found.report.compared_with, "all outputs by the reference");
  EXPECT_FALSE(uses_planted(compile(found, options_)));
  EXPECT_TRUE(is_right(compile(found, options_)));
}

// relu, with 1 added.
class WrongRelu : public Kernel {
 public:
  explicit WrongRelu(const KernelCall&) {}
  void run(const KernelArgs& args) const override {
    for (int64_t i = 0; i < args.inputs[0].num_elements(); ++i) {
      args.outputs[0].mutable_data<float>()[i] = std::max(args.inputs[0].data<float>()[i], 0.0F) + 1;
    }
  }
};

TEST(WrongKernel, IsRefusedWhereShapesAreKnownWhileRunning) {
  const KernelDef wrong{.name = "cpu.wrong_relu",
                        .op = "relu",
                        .why_not = [](const KernelCall&) { return std::string(); },
                        .prepare =
                            [](const KernelCall& call) {
                              return Prepared{std::make_unique<WrongRelu>(call), ""};
                            }};
  add_device(std::make_unique<CpuDevice>("wrong_relu", std::vector<KernelDef>{wrong}, "a machine with a wrong relu"));
  Graph graph("dynamic");
  const Var x = input(graph, DType::f32, {6}, "x");
  const Var positions = apply(get_op("non_zero"), {x});
  graph.add_output(relu(apply(get_op("cast"), {positions}, {{"to", DType::f32}})).id(), "y");
  const std::vector<Datum> inputs{Tensor::of<float>({6}, {0, 1, 0, 1, 1, 0})};
  CompileOptions options;
  options.device = "wrong_relu";
  options.cache_folder = "/dev/null/none";  // kept in memory
  EXPECT_EQ(compile(graph, options).run(inputs)[0].tensor().to_f64(), (std::vector<double>{2, 4, 5}));
  options.attest = true;
  EXPECT_EQ(compile(graph, options).run(inputs)[0].tensor().to_f64(), (std::vector<double>{1, 3, 4}));
}

TEST_F(PlantedKernelTest, BisectNamesIt) {
  const BisectReport report = bisect(model_, options_, inputs_);
  EXPECT_EQ(report.culprit, Culprit::kernel);
  EXPECT_NE(report.name.find(kPlantedKernel), std::string::npos) << report.name;
  EXPECT_FALSE(report.difference.ok);
}

}  // namespace
}  // namespace autograph
