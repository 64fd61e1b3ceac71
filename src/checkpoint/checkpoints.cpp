// The public face: saves in their order, on a thread of their own where they are asynchronous.
//
// One slot waits and one save is being written, so that memory is bounded by two checkpoints and an order cannot
// change. The folder belongs to the thread while a save is there or waits, to the caller otherwise: every call that
// looks into it waits first.
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "autograph/checkpoint.h"
#include "base/check.h"
#include "base/rethrow.h"
#include "checkpoint/checkpoint_files.h"
#include "checkpoint/checkpoint_folder.h"

namespace autograph {

class Checkpoints::Impl {
 public:
  Impl(std::string folder, CheckpointOptions options, std::shared_ptr<FileSystem> files)
      : folder_(std::move(folder), options, std::move(files)) {}
  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    if (writer_.joinable()) writer_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void save(Checkpoint checkpoint) {
    check_content(checkpoint);
    std::unique_lock lock(mutex_);
    // With a slot to wait in, a save need not wait for the one that is being written.
    changed_.wait(lock, [this] { return !waiting_; });
    throw_earlier_error(lock);
    if (!is_open_) {
      folder_.open_for_writing();  // the first save: no thread yet
      is_open_ = true;
    }
    if (!folder_.options().asynchronous) return folder_.write(checkpoint);
    if (!writer_.joinable()) writer_ = std::thread([this] { write_all(); });
    waiting_ = std::move(checkpoint);
    lock.unlock();
    changed_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !waiting_ && !writing_; });
    throw_earlier_error(lock);
  }

  std::optional<Checkpoint> load(bool by_metric) {
    wait();
    return folder_.read_first(by_metric, damaged_);
  }

  std::vector<std::string> list() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !waiting_ && !writing_; });
    std::vector<std::string> paths;
    for (const std::string& name : folder_.names()) paths.push_back(folder_.path() + "/" + name);
    return paths;
  }

  const std::vector<DamagedCheckpoint>& damaged() const { return damaged_; }
  const std::string& path() const { return folder_.path(); }

 private:
  void write_all() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return waiting_ || ending_; });
      if (!waiting_) return;
      const Checkpoint checkpoint = std::move(*waiting_);
      waiting_.reset();
      writing_ = true;
      lock.unlock();
      changed_.notify_all();
      std::exception_ptr error;
      try {
        folder_.write(checkpoint);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      writing_ = false;
      if (error && !error_) {  // the first one stays: what comes behind it is most often its consequence
        error_ = error;
        error_step_ = checkpoint.step;
      }
      changed_.notify_all();
    }
  }

  void throw_earlier_error(std::unique_lock<std::mutex>& lock) {
    if (!error_) return;
    const std::exception_ptr error = std::exchange(error_, nullptr);
    const int64_t step = error_step_;
    lock.unlock();
    try {
      std::rethrow_exception(error);
    } catch (const Error&) {
      rethrow_changed([step](const std::string& message) {
        return fmt::format("{} (an earlier save, of step {}; the checkpoints before it are whole)", message, step);
      });
    }
  }

  CheckpointFolder folder_;  // of the thread while a save is there or waits, else of the caller
  std::vector<DamagedCheckpoint> damaged_;
  bool is_open_ = false;
  std::thread writer_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::optional<Checkpoint> waiting_;
  bool writing_ = false;
  bool ending_ = false;
  std::exception_ptr error_;
  int64_t error_step_ = 0;
};

Checkpoints::Checkpoints(std::string folder, CheckpointOptions options)
    : Checkpoints(std::move(folder), options, system_files()) {}
Checkpoints::Checkpoints(std::string folder, CheckpointOptions options, std::shared_ptr<FileSystem> files)
    : impl_(std::make_unique<Impl>(std::move(folder), options, std::move(files))) {}
Checkpoints::Checkpoints(Checkpoints&&) noexcept = default;
Checkpoints& Checkpoints::operator=(Checkpoints&&) noexcept = default;
Checkpoints::~Checkpoints() = default;

void Checkpoints::save(Checkpoint checkpoint) { impl_->save(std::move(checkpoint)); }
void Checkpoints::wait() { impl_->wait(); }
std::optional<Checkpoint> Checkpoints::load_latest() { return impl_->load(false); }
std::optional<Checkpoint> Checkpoints::load_best() { return impl_->load(true); }
const std::vector<DamagedCheckpoint>& Checkpoints::damaged() const { return impl_->damaged(); }
std::vector<std::string> Checkpoints::list() const { return impl_->list(); }
const std::string& Checkpoints::folder() const { return impl_->path(); }

}  // namespace autograph
