// The verb grad: what it writes gives a loss and its gradients.
#include <gtest/gtest.h>

#include <cmath>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/model_io.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/window.h"
#include "autograph/seeded_inputs.h"
#include "cli/run_program.h"

namespace autograph {
namespace {

TEST(CliGrad, WritesGradientsThatDifferencesConfirm) {
  const TestFolder folder;
  GraphBuilder graph("two_layers");
  const Var x = graph.input("x", DType::f64, {2, 3});
  const Var w = graph.constant(Tensor::of<double>({3, 4}, {1, -2, 3, 4, 5, -6, 7, 8, 9, 1, -2, 3}), "layer.weight");
  const Var v = graph.constant(Tensor::of<double>({4, 1}, {0.5, -1, 0.25, 2}), "head.weight");
  graph.output("y", matmul(tanh(matmul(x, w)), v));
  save_onnx(graph.build(), folder / "m.onnx");

  const std::string arguments = "grad " + (folder / "m.onnx") + " --loss sum1 --json -o " + (folder / "g.onnx");
  const ProgramResult result = run_program(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ASSERT_EQ(result.json()["gradients"].size(), 3U) << result.out;
  EXPECT_EQ(result.json()["gradients"][0]["name"], "x");

  const Graph gradients = load_onnx(folder / "g.onnx").graph;
  const Executable program = compile(gradients);
  const std::vector<double> at{0.1, -0.2, 0.3, -0.1, 0.05, 0.02};
  const Outputs outputs = program.run({{"x", Tensor::of<double>({2, 3}, at)}});
  const std::vector<double> slope = outputs["grad/x"].to_f64();
  EXPECT_EQ(outputs["grad/layer.weight"].dims(), (Dims{3, 4}));
  for (size_t i = 0; i < at.size(); ++i) {
    const auto loss = [&](double step) {
      std::vector<double> moved = at;
      moved[i] += step;
      return program.run({{"x", Tensor::of<double>({2, 3}, moved)}})["loss"].to_f64().front();
    };
    EXPECT_NEAR(slope[i], (loss(1e-6) - loss(-1e-6)) / 2e-6, 1e-6 * (1 + std::abs(slope[i])));
  }
}

// One file for images of all sizes, in ops of ONNX.
TEST(CliGrad, LeavesExtentsOpen) {
  const TestFolder folder;
  GraphBuilder graph("open");
  const Var x = graph.input("x", DType::f32, Shape({Dim::symbol("n"), 4, Dim::symbol("h"), Dim::symbol("w")}));
  std::vector<float> taps;
  for (int i = 0; i < 72; ++i) taps.push_back(static_cast<float>(i % 7) * 0.1F - 0.3F);
  const Var w = graph.constant(Tensor::of<float>({4, 2, 3, 3}, taps), "taps");
  const Var y = tanh(conv(x, w, {}, {.strides = {2, 2}, .pads = {1, 0, 1, 2}, .group = 2}));
  graph.output("y", average_pool(y, {.kernel = {2, 2}}));
  save_onnx(graph.build(), folder / "m.onnx");

  const ProgramResult result = run_program("grad " + (folder / "m.onnx") + " --loss mean -o " + (folder / "g.onnx"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Executable program = compile(load_onnx(folder / "g.onnx").graph);
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{8, 7}, {11, 12}}) {
    Tensor at = Tensor::zeros(DType::f32, {2, 4, height, width});
    const auto loss = [&] { return program.run({{"x", at}})["loss"].to_f64().front(); };
    for (int64_t i = 0; i < at.num_elements(); ++i) at.mutable_data<float>()[i] = std::sin(static_cast<float>(i));
    const std::vector<double> slope = program.run({{"x", at}})["grad/x"].to_f64();
    ASSERT_EQ(slope.size(), static_cast<size_t>(at.num_elements()));
    for (size_t i = 5; i < slope.size(); i += 37) {
      float& element = at.mutable_data<float>()[i];
      const float before = element;
      element = before + 0.05F;
      const double above = loss();
      element = before - 0.05F;
      EXPECT_NEAR(slope[i], (above - loss()) / 0.1, 2e-5) << i << " of " << height << " x " << width;
      element = before;
    }
  }
}

TEST(CliGrad, OfAConvolutionalModelOfTheZoo) {
  const TestFolder folder;
  const ProgramResult result =
      run_program("grad zoo:squeezenet --loss mean --wrt '*weight' --json -o " + (folder / "g.onnx"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(result.json()["gradients"].size(), 20U);
  EXPECT_EQ(run_program("info " + (folder / "g.onnx")).exit_code, 0);
}

TEST(CliGrad, NamesWhatDoesNotFit) {
  const TestFolder folder;
  const ProgramResult loss = run_program("grad zoo:mlp --loss summ -o " + (folder / "g.onnx"));
  EXPECT_EQ(loss.exit_code, 2);
  EXPECT_NE(loss.err.find("did you mean 'sum"), std::string::npos) << loss.err;
  const ProgramResult wanted = run_program("grad zoo:mlp --wrt nothing_like_it -o " + (folder / "g.onnx"));
  EXPECT_EQ(wanted.exit_code, 2);
  EXPECT_NE(wanted.err.find("nothing_like_it"), std::string::npos) << wanted.err;
}

TEST(CliCheck, GradientsOfLossesWithLabels) {
  const ProgramResult result = run_program("check zoo:mlp --gradients --loss cross_entropy --wrt '*bias' --json");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  const ProgramResult alone = run_program("check zoo:mlp --loss cross_entropy");
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_NE(alone.err.find("--loss: expected --gradients beside it"), std::string::npos) << alone.err;
}

TEST(CliCheck, GradientsAgree) {
  const ProgramResult result = run_program("check zoo:mlp --gradients --wrt '*weight' --json");
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const nlohmann::json rows = result.json()["gradients"];
  ASSERT_GE(rows.size(), 2U);
  for (const nlohmann::json& row : rows) {
    EXPECT_TRUE(row["agrees"]) << row;
    EXPECT_TRUE(row["told_apart"]) << row;
    EXPECT_GT(row["norm"], 0) << row;
  }
  EXPECT_EQ(run_program("check zoo:mlp --gradients --data .").exit_code, 2);
  const ProgramResult unknown = run_program("check zoo:mlp --gradients --wrt wieght");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("no float input or weight is called 'wieght'"), std::string::npos) << unknown.err;
}

TEST(CliCompare, StrategiesOnATrainingStep) {
  const ProgramResult result =
      run_program("compare zoo:mlp --train --batch 4 --strategies sequential,search --budget 1 --seconds 0.05 --json");
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(result.json()["train"]);
  EXPECT_GT(result.json()["rows"][0]["latency_ms"]["search"], 0) << result.out;
}

TEST(CliCompare, GoesOnBehindAModelThatCannotBeTrained) {
  const TestFolder folder;
  GraphBuilder graph;
  graph.output("y", relu(graph.input("x", DType::f32, {2, 3})));
  save_onnx(graph.build(), folder / "weightless.onnx");
  const std::string how = " --train --strategies sequential --seconds 0 --json";
  const ProgramResult result = run_program("compare " + (folder / "weightless.onnx") + " zoo:mlp" + how);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find("weightless.onnx is left out: [train] weights"), std::string::npos) << result.err;
  ASSERT_EQ(result.json()["rows"].size(), 1U) << result.out;
  EXPECT_EQ(result.json()["rows"][0]["model"], "zoo:mlp");
  EXPECT_EQ(result.json()["left_out"].size(), 1U);
  const ProgramResult alone = run_program("compare " + (folder / "weightless.onnx") + how);
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_TRUE(alone.json().contains("error")) << alone.out;
}

}  // namespace
}  // namespace autograph
