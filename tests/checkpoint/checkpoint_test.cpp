// Checkpoints: what is saved is loaded, which ones are kept, damaged ones are skipped and named.
#include "autograph/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "autograph/builder.h"
#include "autograph/error.h"
#include "autograph/ops/elementwise.h"
#include "checkpoint/crash_files.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Checkpoint at_step(int64_t step, std::optional<double> metric = {}) {
  return {.step = step,
          .tensors = {{"w", Tensor::of<float>({2, 2}, {static_cast<float>(step), 1, 2, 3})},
                      {"count", Tensor::scalar<int64_t>(step)},
                      {"none", Tensor::zeros(DType::f32, {0, 5})}},
          .data = {step / 10, step % 10},
          .random = {{"augment", "1 2 3"}},
          .config = R"({"model":"mlp","rate":0.1})",
          .metric = metric};
}

void expect_equal(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.data, b.data);
  EXPECT_EQ(a.random, b.random);
  EXPECT_EQ(a.config, b.config);
  EXPECT_EQ(a.metric, b.metric);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].first, b.tensors[i].first);
    EXPECT_TRUE(a.tensors[i].second.bitwise_equal(b.tensors[i].second)) << a.tensors[i].first;
  }
}

std::vector<int64_t> steps_of(const Checkpoints& checkpoints) {
  std::vector<int64_t> steps;
  for (const std::string& path : checkpoints.list()) steps.push_back(std::stoll(path.substr(path.rfind('-') + 1)));
  return steps;
}

TEST(Checkpoints, LoadWhatWasSaved) {
  const TestFolder folder;
  for (const bool asynchronous : {false, true}) {
    const std::string path = folder / (asynchronous ? "deep/later" : "deep/now/");
    Checkpoints checkpoints(path, {.asynchronous = asynchronous});
    EXPECT_FALSE(checkpoints.load_latest());
    EXPECT_FALSE(checkpoints.load_best());
    EXPECT_TRUE(checkpoints.list().empty());
    for (const int64_t step : {7, 23}) checkpoints.save(at_step(step, static_cast<double>(step) / 3));
    expect_equal(*checkpoints.load_latest(), at_step(23, 23.0 / 3));
    expect_equal(*Checkpoints(path).load_latest(), at_step(23, 23.0 / 3));
    EXPECT_EQ(steps_of(checkpoints), (std::vector<int64_t>{23, 7}));
    EXPECT_TRUE(checkpoints.damaged().empty());
  }
}

TEST(Checkpoints, AreSafetensorsFilesCutAtTheirSize) {
  const TestFolder folder;
  Checkpoints checkpoints(folder.path(), {.shard_bytes = 16, .asynchronous = false});
  Checkpoint saved = at_step(3);
  saved.tensors.emplace_back("large", Tensor::zeros(DType::f64, {10}));
  checkpoints.save(saved);
  expect_equal(*checkpoints.load_latest(), saved);
  const std::string own = checkpoints.list().front();
  EXPECT_EQ(read_safetensors(own + "/tensors-00001-of-00003.safetensors").tensors[0].first, "w");
  EXPECT_EQ(read_safetensors(own + "/tensors-00002-of-00003.safetensors").tensors[0].first, "count");
  EXPECT_EQ(read_safetensors(own + "/tensors-00003-of-00003.safetensors").tensors[0].first, "large");
  const Checkpoint empty;
  checkpoints.save(empty);
  expect_equal(*checkpoints.load_latest(), empty);
}

TEST(Checkpoints, KeepTheNewestAndTheBest) {
  const TestFolder folder;
  Checkpoints checkpoints(folder.path(), {.keep = 2});
  const std::vector<std::optional<double>> metrics{0.5, kNan, 0.9, 0.7, std::nullopt, 0.9, 0.1, 0.2, 0.3};
  for (size_t i = 0; i < 5; ++i) checkpoints.save(at_step(static_cast<int64_t>(i), metrics[i]));
  checkpoints.wait();
  EXPECT_EQ(steps_of(checkpoints), (std::vector<int64_t>{4, 3, 2}));
  for (size_t i = 5; i < metrics.size(); ++i) checkpoints.save(at_step(static_cast<int64_t>(i), metrics[i]));
  EXPECT_EQ(checkpoints.load_best()->step, 5);  // of two equal ones the newer
  EXPECT_EQ(steps_of(checkpoints), (std::vector<int64_t>{8, 7, 5}));
  // Another program, which must read the metrics, agrees; here smaller ones are better.
  Checkpoints other(folder.path(), {.keep = 1, .better = BetterMetric::smaller});
  EXPECT_EQ(other.load_best()->step, 7);
  EXPECT_THROW(other.save(at_step(9)), IoError);  // the first one has the lock
  checkpoints = Checkpoints(folder / "elsewhere");
  other.save(at_step(9, kNan));
  other.wait();
  EXPECT_EQ(steps_of(other), (std::vector<int64_t>{9, 7}));
}

TEST(Checkpoints, ARunFromAnOlderOneIsNewer) {
  const TestFolder folder;
  Checkpoints checkpoints(folder.path(), {.keep = 9, .asynchronous = false});
  for (const int64_t step : {100, 200, 50, 50}) checkpoints.save(at_step(step));
  EXPECT_EQ(checkpoints.load_latest()->step, 50);
  EXPECT_EQ(steps_of(checkpoints), (std::vector<int64_t>{50, 50, 200, 100}));
}

TEST(Checkpoints, DamageOfAnyByteIsFoundAndSkipped) {
  const auto files = std::make_shared<CrashFiles>();
  Checkpoints checkpoints("/run", {.asynchronous = false}, files);
  checkpoints.save(at_step(1, 1.0));
  checkpoints.save(at_step(2, 2.0));
  const std::string newest = checkpoints.list().front();
  for (const std::string file : {"/checkpoint.json", "/tensors-00001-of-00001.safetensors"}) {
    const size_t size = files->read(newest + file, 1 << 20).size();
    for (size_t at = 0; at < size; ++at) {
      files->damage(newest + file, at);
      const auto found = checkpoints.load_latest();
      expect_equal(*found, at_step(1, 1.0));
      ASSERT_EQ(checkpoints.damaged().size(), 1U) << file << " " << at;
      EXPECT_EQ(checkpoints.damaged()[0].path, newest);
      EXPECT_NE(checkpoints.damaged()[0].problem, "");
      EXPECT_EQ(checkpoints.load_best()->step, 1);
      files->damage(newest + file, at);
    }
  }
  expect_equal(*checkpoints.load_latest(), at_step(2, 2.0));
}

TEST(Checkpoints, MissingAndCutFilesAreSaidPlainly) {
  const TestFolder folder;
  Checkpoints checkpoints(folder.path(), {.asynchronous = false});
  for (const int64_t step : {1, 2, 3}) checkpoints.save(at_step(step));
  const std::string tensors = "/tensors-00001-of-00001.safetensors";
  const std::vector<std::string> all = checkpoints.list();
  const auto size = std::filesystem::file_size(all[0] + tensors);
  std::filesystem::resize_file(all[0] + tensors, 100);
  std::filesystem::remove(all[1] + "/checkpoint.json");
  EXPECT_EQ(checkpoints.load_latest()->step, 1);
  ASSERT_EQ(checkpoints.damaged().size(), 2U);
  EXPECT_EQ(checkpoints.damaged()[0].problem,
            "[checkpoint] 'tensors-00001-of-00001.safetensors': expected " + std::to_string(size) + " bytes, got 100");
  EXPECT_NE(checkpoints.damaged()[1].problem.find("checkpoint.json"), std::string::npos);
  std::filesystem::resize_file(all[2] + tensors, 0);
  const std::string message = message_of<IoError>([&] { checkpoints.load_latest(); });
  EXPECT_NE(message.find("expected a checkpoint that is whole, got 3 damaged"), std::string::npos) << message;
  // One that is damaged does not count among those that are kept, and goes when enough are newer.
  checkpoints.save(at_step(4));
  EXPECT_EQ(steps_of(checkpoints).size(), 4U);
  for (const int64_t step : {5, 6}) checkpoints.save(at_step(step));
  EXPECT_EQ(steps_of(checkpoints), (std::vector<int64_t>{6, 5, 4}));
}

TEST(Checkpoints, LeftoversAreClearedAndOtherFilesStay) {
  const TestFolder folder;
  folder.write("run/.partial-checkpoint-00000001-step-9/tensors", "cut");
  folder.write("run/.removed-checkpoint-00000002-step-9/tensors", "cut");
  folder.write("run/notes.txt", "mine");
  folder.write("run/checkpoint-old/notes.txt", "mine");
  Checkpoints checkpoints(folder / "run", {.keep = 1});
  EXPECT_FALSE(checkpoints.load_latest());
  for (const int64_t step : {1, 2, 3}) checkpoints.save(at_step(step));
  checkpoints.wait();
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run"))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{".lock", "checkpoint-00000003-step-3", "checkpoint-old", "notes.txt"}));
}

TEST(Checkpoints, ReadersMayLoadWhileAnotherOneSaves) {
  const TestFolder folder;
  Checkpoints writer(folder.path(), {.keep = 1});
  writer.save(at_step(0, 0));
  writer.wait();
  std::atomic<bool> ended = false;
  std::jthread saves([&] {
    for (int64_t step = 1; step <= 40; ++step) writer.save(at_step(step, static_cast<double>(step)));
    writer.wait();
    ended = true;
  });
  Checkpoints reader(folder.path());
  int64_t last = 0, loads = 0;
  for (bool was_ended = false; !was_ended; ++loads) {
    was_ended = ended;
    const auto found = reader.load_latest();
    ASSERT_TRUE(found);
    expect_equal(*found, at_step(found->step, static_cast<double>(found->step)));
    EXPECT_GE(found->step, last);
    last = found->step;
  }
  EXPECT_EQ(last, 40);
  EXPECT_GT(loads, 10);
}

TEST(Checkpoints, RefuseWhatCannotBeWritten) {
  const TestFolder folder;
  Checkpoints checkpoints(folder / "run");
  const auto error = [&](Checkpoint checkpoint) {
    return message_of<Error>([&] { checkpoints.save(std::move(checkpoint)); });
  };
  EXPECT_EQ(error({.step = -1}), "[checkpoint] step: expected 0 or more, got -1");
  EXPECT_EQ(error({.tensors = {{"a", Tensor::scalar(1.0F)}, {"a", Tensor::scalar(1.0F)}}}),
            "[checkpoint] tensor 'a': the name is taken");
  EXPECT_EQ(error({.tensors = {{"a", Tensor::zeros(DType::string, {1})}}}),
            "[checkpoint] tensor 'a': expected numbers, got string[1]");
  EXPECT_EQ(error({.tensors = {{"\xFF", Tensor::scalar(1.0F)}}}),
            "[checkpoint] tensor '\\xff': expected a name in UTF-8");
  EXPECT_NE(error({.tensors = {{"__metadata__", Tensor::scalar(1.0F)}}}), "");
  EXPECT_NE(error({.tensors = {{"c", Tensor::zeros(DType::c128, {1})}}}).find("c128"), std::string::npos);
  EXPECT_NE(error({.random = {{"a", "\xFF"}}}).find("expected texts in UTF-8"), std::string::npos);
  EXPECT_NE(error({.config = "{"}).find("config: expected a JSON document"), std::string::npos);
  EXPECT_NE(error({.config = std::string(1000, '[') + std::string(1000, ']')}).find("nested deeper"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  EXPECT_THROW(Checkpoints(""), ValueError);
  EXPECT_THROW(Checkpoints("x", {.keep = 0}), ValueError);
  EXPECT_THROW(Checkpoints("x", {.shard_bytes = 0}), ValueError);
  folder.write("file", "");
  Checkpoints impossible(folder / "file/run");
  EXPECT_THROW(impossible.save(at_step(1)), IoError);
}

TEST(Checkpoints, MetricsComeBackExactly) {
  const TestFolder folder;
  Checkpoints checkpoints(folder.path(), {.asynchronous = false});
  for (const double metric : {0.1 + 0.2, -0.0, 1e-310, 1e308, std::numeric_limits<double>::infinity(), kNan}) {
    checkpoints.save({.metric = metric});
    const double read = *checkpoints.load_latest()->metric;
    EXPECT_TRUE(std::isnan(metric) ? std::isnan(read) : std::memcmp(&read, &metric, sizeof read) == 0) << metric;
  }
}

TEST(Checkpoint, CapturesAndRestoresStates) {
  GraphBuilder builder("counter");
  const Var count = builder.state("count", Tensor::scalar<int64_t>(5));
  builder.state("w", Tensor::of<float>({2}, {1, 2}));
  builder.output("count", count);
  StateStore states;
  states.add(builder.build());
  Checkpoint checkpoint;
  checkpoint.capture(states);
  ASSERT_EQ(checkpoint.tensors.size(), 2U);
  states.set("count", Tensor::scalar<int64_t>(9));
  states.set("w", Tensor::of<float>({2}, {3, 4}));
  EXPECT_EQ(checkpoint.tensors[0].second.to_i64(), std::vector<int64_t>{5});  // a copy
  checkpoint.restore(states);
  EXPECT_EQ(states.get("count").to_i64(), std::vector<int64_t>{5});
  EXPECT_TRUE(states.get("w").bitwise_equal(Tensor::of<float>({2}, {1, 2})));
  // Nothing changes where one does not fit.
  const auto error = [&](NamedTensors tensors) {
    const Checkpoint other{.tensors = std::move(tensors)};
    return message_of<UserError>([&] { other.restore(states); });
  };
  const Tensor seven = Tensor::scalar<int64_t>(7);
  EXPECT_EQ(error({{"count", seven}}), "[checkpoint] state 'w': expected by the program, got none");
  EXPECT_EQ(error({{"count", seven}, {"w", Tensor::of<float>({3}, {1, 2, 3})}}),
            "[checkpoint] state 'w': expected f32[2], got f32[3]");
  EXPECT_EQ(error({{"count", seven}, {"w", Tensor::of<double>({2}, {1, 2})}}),
            "[checkpoint] state 'w': expected f32[2], got f64[2]");
  EXPECT_EQ(states.get("count").to_i64(), std::vector<int64_t>{5});
}

TEST(Checkpoint, RandomGeneratorsGoOn) {
  Random random;
  for (int i = 0; i < 1000; ++i) random();
  Random copy = random_from_state(random_state(random));
  EXPECT_THROW(random_from_state(random_state(random) + " 4"), FormatError);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(copy(), random());
  EXPECT_THROW(random_from_state("1 2 3"), FormatError);
  EXPECT_THROW(random_from_state(""), FormatError);
}

}  // namespace
}  // namespace autograph
