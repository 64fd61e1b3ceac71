// A training run that is killed at random moments, 50 times, ends with the bits of one that never was.
//
// The run is this program again: with AG_TRAINING_RUN=FOLDER it trains a small network on augmented samples that
// threads make ahead, saves a checkpoint every few steps, asynchronously, and goes on from the last one when it begins.
#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "autograph/checkpoint.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/train.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

constexpr const char* kFolderVariable = "AG_TRAINING_RUN";
constexpr int64_t kSteps = 150;
constexpr int kKills = 50;

DatasetPtr make_samples() {
  Random random;
  Tensor images = Tensor::empty(DType::f32, {90, 1, 6, 6});
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < images.num_elements(); ++i) {
    images.mutable_data<float>()[i] = static_cast<float>(random() >> 40) * 0x1p-24F;
  }
  for (int64_t i = 0; i < 90; ++i) labels.push_back(i % 3);
  return tensor_dataset({{"image", images}, {"label", Tensor::vector(labels)}}, {"a", "b", "c"});
}

Graph make_model() {
  Random random;
  const auto weight = [&](Dims dims) {
    Tensor tensor = Tensor::empty(DType::f32, std::move(dims));
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      tensor.mutable_data<float>()[i] = static_cast<float>(random() >> 40) * 0x1p-25F - 0.25F;
    }
    return tensor;
  };
  GraphBuilder graph("small");
  const Var image = graph.input("image", DType::f32, {Dim::symbol("n"), 1, 6, 6});
  const Var hidden =
      relu(gemm(flatten(image), graph.constant(weight({36, 16}), "w1"), graph.constant(weight({16}), "b1")));
  graph.output("scores", gemm(hidden, graph.constant(weight({16, 3}), "w2"), graph.constant(weight({3}), "b2")));
  return graph.build();
}

// Trains to the end, or until it is killed. Says "go" when it has begun.
void train(const std::string& folder) {
  CompileOptions options;
  options.threads = 1;
  const Executable step = compile(training_graph(make_model(), {.optimizer = AdamW{.learning_rate = 0.01}}), options);
  StateStore states = step.states();
  DataLoader loader(make_samples(), {.batch_size = 8,
                                     .shuffle = true,
                                     .seed = 3,
                                     .transforms = {RandomCrop{.padding = 1}, HorizontalFlip{}},
                                     .threads = 2});
  Checkpoints checkpoints(folder, {.keep = 2, .shard_bytes = 1500});
  Random noise;  // a generator whose state must be kept, too
  int64_t done = 0;
  if (const auto found = checkpoints.load_latest()) {
    found->restore(states);
    loader.seek(found->data);
    noise = random_from_state(found->random.at("noise"));
    done = found->step;
  }
  if (!checkpoints.damaged().empty()) std::abort();  // a kill leaves no damaged checkpoint
  std::printf("go\n");
  std::fflush(stdout);
  while (done < kSteps) {
    const auto batch = loader.next();
    if (!batch) continue;
    const double rate = 0.001 + 0.01 * static_cast<double>(noise() % 1000) / 1000;
    states.set("optimizer/learning_rate", Tensor::scalar(rate));
    const double loss = step.run({{"image", (*batch)["image"]}, {"target", (*batch)["label"]}})["loss"].to_f64()[0];
    ++done;
    if (done % 3 != 0 && done != kSteps) continue;
    Checkpoint now{
        .step = done, .data = loader.position(), .random = {{"noise", random_state(noise)}}, .metric = -loss};
    now.capture(states);
    checkpoints.save(std::move(now));
  }
  checkpoints.wait();
}

// The child's side: it looks like a test, and does nothing when tests are run.
TEST(KilledRun, Child) {
  const char* folder = std::getenv(kFolderVariable);
  if (!folder) GTEST_SKIP() << "is started by the other test of this suite";
  train(folder);
}

// A run of the child that has begun.
class ChildRun {
 public:
  explicit ChildRun(const std::string& folder) {
    int pipe_ends[2];
    if (::pipe2(pipe_ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    const std::string variable = fmt::format("{}={}", kFolderVariable, folder);
    process_ = ::fork();
    if (process_ == 0) {
      // Between fork and exec only what is safe in a program of several threads.
      ::dup2(pipe_ends[1], STDOUT_FILENO);
      const char* const arguments[] = {"kill_test", "--gtest_filter=KilledRun.Child", nullptr};
      const char* const environment[] = {variable.c_str(), "OMP_NUM_THREADS=1", nullptr};
      ::execve("/proc/self/exe", const_cast<char* const*>(arguments), const_cast<char* const*>(environment));
      ::_exit(127);
    }
    ::close(pipe_ends[1]);
    std::string seen;
    char byte = 0;
    while (seen.find("go\n") == std::string::npos && ::read(pipe_ends[0], &byte, 1) == 1) seen += byte;
    has_begun_ = seen.find("go\n") != std::string::npos;
    output_ = pipe_ends[0];
  }
  ~ChildRun() { ::close(output_); }
  ChildRun(const ChildRun&) = delete;
  ChildRun& operator=(const ChildRun&) = delete;

  bool has_begun() const { return has_begun_; }
  void kill() const { ::kill(process_, SIGKILL); }
  /// 0 when it ended by itself, -1 when it was killed, something else when it failed.
  int wait() const {
    char bytes[256];
    while (::read(output_, bytes, sizeof bytes) > 0) {
    }
    int status = 0;
    ::waitpid(process_, &status, 0);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  }

 private:
  pid_t process_ = 0;
  int output_ = -1;
  bool has_begun_ = false;
};

void expect_same_end(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.step, kSteps);
  EXPECT_EQ(b.step, kSteps);
  EXPECT_EQ(a.data, b.data);
  EXPECT_EQ(a.random, b.random);
  EXPECT_EQ(a.metric, b.metric);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  EXPECT_GT(a.tensors.size(), 10U);  // weights, moments, counters
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_TRUE(a.tensors[i].second.bitwise_equal(b.tensors[i].second)) << a.tensors[i].first;
  }
}

TEST(KilledRun, FiftyKillsChangeNothing) {
  const TestFolder folder;
  std::chrono::microseconds whole_run{};
  {
    const ChildRun whole(folder / "whole");
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(whole.wait(), 0);
    whole_run = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  }
  const Checkpoint expected = *Checkpoints(folder / "whole").load_latest();
  std::mt19937 random(2024);
  int kills = 0, ends = 0;
  int64_t lowest = kSteps, highest = 0;
  // A run that comes to its end is compared, and another one begins.
  while (kills < kKills || ends == 0) {
    const std::string path = folder / fmt::format("run{}", ends);
    const ChildRun child(path);
    ASSERT_TRUE(child.has_begun());
    if (kills < kKills) {
      // Some before the first step, some behind many: a run is killed ten times or so before its end.
      std::this_thread::sleep_for(whole_run / 5 * (random() % 1000) / 1000);
      child.kill();
    }
    const int status = child.wait();
    ASSERT_TRUE(status == 0 || status == -1) << status;
    if (status == -1) {
      ++kills;
      const auto found = Checkpoints(path).load_latest();
      lowest = std::min(lowest, found ? found->step : 0);
      highest = std::max(highest, found ? found->step : 0);
      continue;
    }
    expect_same_end(*Checkpoints(path).load_latest(), expected);
    ++ends;
  }
  EXPECT_GT(highest, lowest);
  std::printf("%d kills, between steps %d and %d of %d; %d runs came to the same end\n", kills,
              static_cast<int>(lowest), static_cast<int>(highest), static_cast<int>(kSteps), ends);
}

}  // namespace
}  // namespace autograph
