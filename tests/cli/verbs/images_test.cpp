// train, eval and predict of an imported model on a folder of images: their size, their numbers, how they are changed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "autograph/builder.h"
#include "autograph/model_io.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "cli/run_program.h"

namespace autograph {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// 24 images of each class, 9 x 7 pixels: one channel is brighter than the others.
std::string write_images(const TestFolder& folder) {
  uint32_t state = 1;
  for (int label = 0; label < 2; ++label) {
    const std::string of_class = folder / ("images/" + std::string(label == 0 ? "green" : "red"));
    std::filesystem::create_directories(of_class);
    for (int n = 0; n < 24; ++n) {
      std::ofstream file(of_class + "/" + std::to_string(n) + ".ppm", std::ios::binary);
      file << "P6\n9 7\n255\n";
      for (int k = 0; k < 9 * 7 * 3; ++k) {
        state = state * 1664525 + 1013904223;
        file << static_cast<char>((state >> 24) % 120 + (k % 3 == 1 - label ? 60 : 0));
      }
    }
  }
  return folder / "images";
}

// The mean of each channel of images of these extents, and scores of two classes, all 0.
std::string write_model(const TestFolder& folder, const Dim& height, const Dim& width) {
  GraphBuilder graph("means");
  const Var x = graph.input("x", DType::f32, Shape({Dim::symbol("n"), 3, height, width}));
  const Var means = flatten(global_average_pool(x), 1);
  graph.output("scores", gemm(means, graph.constant(Tensor::zeros(DType::f32, {3, 2}), "fc.weight"),
                              graph.constant(Tensor::zeros(DType::f32, {2}), "fc.bias")));
  save_onnx(graph.build(), folder / "m.onnx");
  return folder / "m.onnx";
}

struct CliImages : testing::Test {
  const TestFolder folder;
  const std::string rest = " --json --threads 1 --data " + write_images(folder);
  const std::string run = " --checkpoint " + (folder / "run");
};

TEST_F(CliImages, AreChangedWhileTrainingAndPreparedAlways) {
  const std::string model = write_model(folder, 5, 8);
  const std::string train = "train " + model + rest +
                            " --batch 8 --lr 0.3 --schedule constant --normalize 0.4:0.1,0.1,0.1 --crop 1 --flip 0.5";
  const ProgramResult trained = run_program(train + run + " --mixup 0.2 --epochs 12 -o " + (folder / "tuned.onnx"));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const nlohmann::json last = trained.json()["final"];
  EXPECT_GT(last["accuracy"].get<double>(), 0.9);

  // As the run did, without being told; and as it is told where there is no run.
  for (const std::string& learned : {model + run, (folder / "tuned.onnx") + " --normalize 0.4,0.4,0.4:0.1"}) {
    const ProgramResult evaluated = run_program("eval " + learned + rest);
    ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
    EXPECT_NEAR(evaluated.json()["loss"].get<double>(), last["loss"].get<double>(), 1e-5) << learned;
    const ProgramResult predicted = run_program("predict " + learned + rest + " --first 20 --count 8");
    ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
    const nlohmann::json predictions = predicted.json()["predictions"];
    ASSERT_EQ(predictions.size(), 8U);
    int right = 0;
    for (const auto& entry : predictions) right += entry["label"] == entry["predicted"] ? 1 : 0;
    EXPECT_GE(right, 7) << predicted.out;
    EXPECT_EQ(predictions[7]["name"], "red");
  }
  const ProgramResult other = run_program("eval " + model + run + rest + " --normalize 0.5:0.1");
  EXPECT_EQ(other.exit_code, 2) << other.out;
  EXPECT_TRUE(contains(other.err, "--normalize: expected 0.4:0.1,0.1,0.1, as the run that wrote the checkpoint"))
      << other.err;

  const ProgramResult resumed = run_program(train + run + " --epochs 13 --resume --flip 0.25");
  EXPECT_EQ(resumed.exit_code, 2) << resumed.out;
  EXPECT_TRUE(contains(resumed.err, "--flip: 0.5 before, 0.25 now; --mixup: 0.2 before, none now")) << resumed.err;
}

TEST_F(CliImages, GoOnBitForBit) {
  const std::string model = write_model(folder, 5, 8);
  const std::string train = "train " + model + rest + " --batch 8 --schedule constant --crop 1 --flip 0.5 --mixup 0.4";
  ASSERT_EQ(run_program(train + run + " --epochs 1").exit_code, 0);
  const ProgramResult longer = run_program(train + run + " --epochs 3 --resume");
  ASSERT_EQ(longer.exit_code, 0) << longer.err;
  const ProgramResult whole = run_program(train + " --epochs 3 --checkpoint " + (folder / "whole"));
  EXPECT_EQ(longer.json()["final"], whole.json()["final"]);
}

TEST_F(CliImages, HaveTheSizeOfTheModelOrTheOneThatIsAskedFor) {
  const std::string open = write_model(folder, Dim::symbol("h"), Dim::symbol("w"));
  const auto loss = [&](const std::string& size) {
    const ProgramResult trained = run_program("train " + open + rest + " --steps 2 --lr 0.1 --batch 8 " + size);
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
    return trained.json()["final"]["loss"].get<double>();
  };
  EXPECT_EQ(loss("--size 6"), loss("--size 6x6"));
  EXPECT_NE(loss("--size 6"), loss("--size 6x3"));
  write_model(folder, 6, 3);
  EXPECT_EQ(run_program("train " + open + rest + " --steps 1 --batch 8").exit_code, 0);
  EXPECT_EQ(run_program("train " + open + rest + " --steps 1 --batch 8 --size 6").exit_code, 2);
}

TEST_F(CliImages, SayWhatDoesNotFit) {
  const std::string model = write_model(folder, 6, 6);
  const auto refusal = [&](const std::string& arguments) {
    const ProgramResult result = run_program(arguments + rest);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    return result.err;
  };
  EXPECT_TRUE(
      contains(refusal("eval " + model + " --size 6y6"), "--size: expected pixels, 224 or HEIGHTxWIDTH, got '6y6'"));
  EXPECT_TRUE(contains(refusal("eval " + model + " --normalize 0.5"),
                       "--normalize: expected MEAN:DEVIATION, numbers with commas between, got '0.5'"));
  EXPECT_TRUE(contains(refusal("eval " + model + " --normalize 0.5,1:1"), "mean: expected 1 or 3 numbers, got 2"));
  EXPECT_TRUE(contains(refusal("train cifar10 --size 32"), "--size and --normalize: cifar10 has its own"));
  std::ofstream(folder / "t.csv") << "1,2,0\n3,4,1\n1,2,0\n3,4,1\n5,6,0\n";
  const ProgramResult table = run_program("eval " + model + " --size 6 --data " + (folder / "t.csv"));
  EXPECT_TRUE(contains(table.err, "--size: expected a folder of images, got samples 'x' of ")) << table.err;
}

TEST_F(CliImages, WithoutClassesArePredicted) {
  const std::string model = write_model(folder, 5, 8);
  const std::string images = folder / "images";
  const auto predicted = [&](const std::string& path) {
    const ProgramResult result = run_program("predict " + model + " --json --count 99 --data " + path);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json()["predictions"];
  };
  const nlohmann::json one = predicted(images + "/red/3.ppm");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_TRUE(one[0]["label"].is_null());
  EXPECT_EQ(predicted(images + "/red").size(), 24U);
}

TEST_F(CliImages, AreGreyForAModelOfOneChannel) {
  GraphBuilder graph("means");
  const Var x = graph.input("x", DType::f32, Shape({Dim::symbol("n"), 1, 5, 8}));
  graph.output("scores",
               gemm(flatten(global_average_pool(x), 1), graph.constant(Tensor::zeros(DType::f32, {1, 2}), "fc.weight"),
                    graph.constant(Tensor::zeros(DType::f32, {2}), "fc.bias")));
  save_onnx(graph.build(), folder / "grey.onnx");
  const std::string train = "train " + (folder / "grey.onnx") + rest + " --batch 8 --lr 0.3 --epochs 6 --size 7x9";
  EXPECT_EQ(run_program(train).exit_code, 2);  // another size than the model's
  const ProgramResult trained =
      run_program("train " + (folder / "grey.onnx") + rest + run + " --batch 8 --lr 1 --epochs 12");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  // Green weighs twice what red does.
  EXPECT_GT(trained.json()["final"]["accuracy"].get<double>(), 0.9);
  EXPECT_EQ(run_program("eval " + (folder / "grey.onnx") + rest + run).exit_code, 0);
}

TEST_F(CliImages, FewerThanABatchAreABatch) {
  const std::string train = "train " + write_model(folder, 5, 8) + rest;
  const ProgramResult trained = run_program(train + " --epochs 2");  // 38 of 48 samples; the usual batch has 64
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(trained.json()["steps"], 2);
  const ProgramResult refused = run_program(train + " --batch 64");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err, "--batch: expected at most the ")) << refused.err;
}

}  // namespace
}  // namespace autograph
