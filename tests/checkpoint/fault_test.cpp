// Every write, flush, rename and removal fails once, and the machine stops at every one of them: what was on disk
// stays, what was reported as saved is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "autograph/error.h"
#include "checkpoint/crash_files.h"
#include "support/message_of.h"

namespace autograph {
namespace {

using Fault = CrashFiles::Fault;

constexpr int64_t kSaves = 5;

// With one to keep, what is removed too early is all there was.
CheckpointOptions options_of(bool asynchronous, int keep = 2) {
  return {.keep = keep, .keep_best = keep > 1, .shard_bytes = 12, .asynchronous = asynchronous};
}

Checkpoint at_step(int64_t step) {
  const auto value = static_cast<float>(step);
  return {.step = step,
          .tensors = {{"w", Tensor::of<float>({3}, {value, 1, 2})}, {"m", Tensor::of<float>({3}, {4, value, 5})}},
          .data = {step, 3},
          .metric = step == 1 ? 10 : -static_cast<double>(step)};  // the first one stays the best
}

void expect_whole(const Checkpoint& found) {
  const Checkpoint expected = at_step(found.step);
  EXPECT_EQ(found.data, expected.data);
  EXPECT_EQ(found.metric, expected.metric);
  ASSERT_EQ(found.tensors.size(), expected.tensors.size());
  for (size_t i = 0; i < expected.tensors.size(); ++i) {
    EXPECT_TRUE(found.tensors[i].second.bitwise_equal(expected.tensors[i].second));
  }
}

// Saves steps 1 to kSaves, whatever fails; returns the last one that was reported to be on disk.
int64_t save_all(const std::shared_ptr<CrashFiles>& files, const CheckpointOptions& options) {
  int64_t saved = 0;
  try {
    Checkpoints checkpoints("/runs/a", options, files);
    for (int64_t step = 1; step <= kSaves; ++step) {
      try {
        checkpoints.save(at_step(step));
        checkpoints.wait();
        saved = step;
      } catch (const IoError&) {
      }
    }
  } catch (const Crash&) {
  }
  return saved;
}

std::vector<std::string> calls_of_all_saves(int keep = 2) {
  const auto files = std::make_shared<CrashFiles>();
  EXPECT_EQ(save_all(files, options_of(false, keep)), kSaves);
  return files->log();
}

TEST(CheckpointFaults, EveryKindOfCallIsAmongThem) {
  const std::vector<std::string> calls = calls_of_all_saves();
  EXPECT_GT(calls.size(), 60U);
  for (const std::string kind :
       {"make_folder ", "create ", "write ", "sync ", "close ", "sync_folder ", "rename ", "remove "}) {
    const auto has = [&](const std::string& call) { return call.starts_with(kind); };
    EXPECT_TRUE(std::any_of(calls.begin(), calls.end(), has)) << kind;
  }
}

TEST(CheckpointFaults, AnyCallMayFailOnce) {
  const std::vector<std::string> calls = calls_of_all_saves();
  for (const bool asynchronous : {false, true}) {
    for (const Fault fault : {Fault::error, Fault::torn_error}) {
      for (size_t call = 0; call < calls.size(); ++call) {
        SCOPED_TRACE(calls[call]);
        const auto files = std::make_shared<CrashFiles>();
        files->set_fault(fault, static_cast<int64_t>(call));
        const int64_t saved = save_all(files, options_of(asynchronous));
        Checkpoints checkpoints("/runs/a", options_of(false), files);
        const auto found = checkpoints.load_latest();
        ASSERT_TRUE(found);
        EXPECT_GE(found->step, saved);
        EXPECT_GE(saved, kSaves - 1);  // one fault costs one save at most
        expect_whole(*found);
        EXPECT_TRUE(checkpoints.damaged().empty());
        // One more save clears what the failure has left.
        checkpoints.save(at_step(kSaves + 1));
        EXPECT_LE(checkpoints.list().size(), 3U);
        for (const std::string& path : files->all_paths()) {
          EXPECT_TRUE(path.find("/.") == std::string::npos || path == "/runs/a/.lock") << path;
        }
      }
    }
  }
}

// A disk that stays full costs the saves to come and none before; with room again the run goes on.
TEST(CheckpointFaults, TheDiskMayBeFullFromAnyCallOn) {
  const std::vector<std::string> calls = calls_of_all_saves();
  for (const bool asynchronous : {false, true}) {
    for (size_t call = 0; call < calls.size(); ++call) {
      SCOPED_TRACE(calls[call]);
      const auto files = std::make_shared<CrashFiles>();
      files->set_fault(Fault::full, static_cast<int64_t>(call));
      const int64_t saved = save_all(files, options_of(asynchronous));
      Checkpoints checkpoints("/runs/a", options_of(false), files);
      const auto found = checkpoints.load_latest();
      ASSERT_EQ(found ? found->step : 0, saved);
      if (found) {
        expect_whole(*found);
        EXPECT_EQ(checkpoints.load_best()->step, 1);
      }
      EXPECT_TRUE(checkpoints.damaged().empty());
      for (const std::string& path : files->all_paths()) EXPECT_EQ(path.find(".partial"), std::string::npos) << path;
      files->set_fault(Fault::none, -1);
      checkpoints.save(at_step(kSaves + 1));
      EXPECT_EQ(checkpoints.load_latest()->step, kSaves + 1);
    }
  }
}

// A save that fails says so, and leaves those before it.
TEST(CheckpointFaults, AFailureIsReportedAndLosesNothing) {
  const auto calls_of = [](int64_t saves) {
    const auto files = std::make_shared<CrashFiles>();
    Checkpoints checkpoints("/runs/a", options_of(false), files);
    for (int64_t step = 1; step <= saves; ++step) checkpoints.save(at_step(step));
    return files->calls();
  };
  const int64_t begin = calls_of(1), end = calls_of(2);
  for (int64_t call = begin; call < end; ++call) {
    const auto files = std::make_shared<CrashFiles>();
    Checkpoints checkpoints("/runs/a", options_of(false), files);
    checkpoints.save(at_step(1));
    files->set_fault(Fault::error, call);
    // With two to keep nothing is removed yet: every call of the second save matters.
    const std::string message = message_of<IoError>([&] { checkpoints.save(at_step(2)); });
    EXPECT_EQ(message.find("[test] injected at "), 0U) << files->log()[static_cast<size_t>(call)];
    const auto found = checkpoints.load_latest();
    ASSERT_TRUE(found);
    expect_whole(*found);
  }
  EXPECT_GT(end - begin, 10);
}

// Stops at `call`, then looks at what the disk has kept.
void stop_at(int64_t call, uint64_t seed, const CheckpointOptions& options) {
  SCOPED_TRACE(testing::Message() << "call " << call << ", seed " << seed << ", keep " << options.keep);
  const auto files = std::make_shared<CrashFiles>();
  files->set_fault(Fault::crash, call);
  const int64_t saved = save_all(files, options);
  Checkpoints checkpoints("/runs/a", options, files->after_crash(seed));
  const auto found = checkpoints.load_latest();
  ASSERT_TRUE(found || saved == 0);
  // A name appears when all behind it is on disk: a crash leaves no damaged checkpoint.
  EXPECT_TRUE(checkpoints.damaged().empty());
  if (found) {
    EXPECT_GE(found->step, saved);
    EXPECT_LE(found->step, saved + 1);
    expect_whole(*found);
    if (options.keep_best) {
      EXPECT_EQ(checkpoints.load_best()->step, 1);
    }
  }
  // And the run goes on.
  checkpoints.save(at_step(100));
  EXPECT_EQ(checkpoints.load_latest()->step, 100);
}

TEST(CheckpointFaults, TheMachineMayStopAtAnyCall) {
  for (const int keep : {1, 2}) {
    const auto calls = static_cast<int64_t>(calls_of_all_saves(keep).size());
    for (const bool asynchronous : {false, true}) {
      for (int64_t call = 0; call <= calls; ++call) {
        for (uint64_t seed = 0; seed < 6; ++seed) stop_at(call, seed, options_of(asynchronous, keep));
      }
    }
  }
}

// Holds the writer until it is let go.
class GatedFiles : public CrashFiles {
 public:
  void make_folder(const std::string& path) override {
    {
      std::unique_lock lock(gate_);
      changed_.wait(lock, [this] { return is_open_; });
    }
    CrashFiles::make_folder(path);
  }
  void set_open(bool open) {
    {
      const std::lock_guard lock(gate_);
      is_open_ = open;
    }
    changed_.notify_all();
  }

 private:
  std::mutex gate_;
  std::condition_variable changed_;
  bool is_open_ = true;
};

TEST(CheckpointFaults, AsynchronousSavesKeepTheirOrderAndBoundTheirMemory) {
  const auto files = std::make_shared<GatedFiles>();
  Checkpoints checkpoints("/run", {.keep = 10}, files);
  checkpoints.save(at_step(1));
  checkpoints.wait();
  files->set_open(false);
  checkpoints.save(at_step(2));  // is being written
  checkpoints.save(at_step(3));  // waits
  std::atomic<bool> returned = false;
  std::thread fourth([&] {
    checkpoints.save(at_step(4));  // until there is room
    returned = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(returned);
  EXPECT_EQ(Checkpoints("/run", {}, files).load_latest()->step, 1);
  files->set_open(true);
  fourth.join();
  checkpoints.wait();
  EXPECT_EQ(checkpoints.list(),
            (std::vector<std::string>{"/run/checkpoint-00000004-step-4", "/run/checkpoint-00000003-step-3",
                                      "/run/checkpoint-00000002-step-2", "/run/checkpoint-00000001-step-1"}));
}

TEST(CheckpointFaults, ErrorsOfEarlierSavesComeAtTheNextCall) {
  const auto files = std::make_shared<CrashFiles>();
  Checkpoints checkpoints("/run", {}, files);
  checkpoints.save(at_step(1));
  checkpoints.wait();
  const auto fail_next = [&] {
    files->set_fault(Fault::error, files->calls());
    checkpoints.save(at_step(2));
  };
  const std::string expected =
      "[test] injected at make_folder /run/.partial-checkpoint-00000002-step-2 (an earlier save, of step 2; the "
      "checkpoints before it are whole)";
  fail_next();
  EXPECT_EQ(message_of<IoError>([&] { checkpoints.wait(); }), expected);
  checkpoints.wait();  // said once
  fail_next();
  EXPECT_EQ(message_of<IoError>([&] { checkpoints.load_latest(); }), expected);
  EXPECT_EQ(checkpoints.load_latest()->step, 1);
  fail_next();
  checkpoints.list();  // waits, and throws nothing of it
  EXPECT_EQ(message_of<IoError>([&] { checkpoints.save(at_step(3)); }), expected);
  EXPECT_EQ(checkpoints.load_latest()->step, 1);  // the one that threw was not saved
  checkpoints.save(at_step(3));
  EXPECT_EQ(checkpoints.load_latest()->step, 3);
}

TEST(CheckpointFaults, OneWriterAtATime) {
  const auto files = std::make_shared<CrashFiles>();
  auto first = std::make_unique<Checkpoints>("/run", CheckpointOptions{}, files);
  first->save(at_step(1));
  Checkpoints second("/run", {}, files);
  EXPECT_NE(message_of<IoError>([&] { second.save(at_step(2)); }).find("the lock is taken"), std::string::npos);
  first.reset();
  EXPECT_EQ(second.load_latest()->step, 1);
  second.save(at_step(2));
  EXPECT_EQ(second.load_latest()->step, 2);
}

}  // namespace
}  // namespace autograph
