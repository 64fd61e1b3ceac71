// A backend outside the tree: a device with memory of its own, which the host cannot read, and streams that work while
// the host goes on. It multiplies, adds and rectifies; all else is done by the reference, on copies.
#pragma once

#include <autograph/device.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace toy {

/// Addresses that nobody may follow: the host would end with a fault. What they stand for lies elsewhere, and only
/// kernels know where.
class ToyMemory : public autograph::Memory {
 public:
  ToyMemory();
  ~ToyMemory() override;
  const std::string& name() const override;
  std::shared_ptr<void> allocate(size_t bytes) const override;
  void write(void* to, const void* from_host, size_t bytes, autograph::Stream* stream) const override;
  void read(void* to_host, const void* from, size_t bytes, autograph::Stream* stream) const override;
  void copy(void* to, const void* from, size_t bytes, autograph::Stream* stream) const override;

  /// Where the bytes behind an address are.
  template <class T>
  T* at(T* address) const {
    return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(address) - addresses_ + bytes_);
  }
  size_t num_written() const { return num_written_; }  ///< Bytes from the host so far.
  size_t num_read() const { return num_read_; }        ///< Bytes to the host so far.
  size_t bytes_in_use() const;

 private:
  void free(uintptr_t address) const;

  uintptr_t addresses_ = 0;
  uintptr_t bytes_ = 0;
  mutable std::mutex mutex_;                  // guards used_
  mutable std::map<uintptr_t, size_t> used_;  // address -> bytes
  mutable std::atomic<size_t> num_written_ = 0;
  mutable std::atomic<size_t> num_read_ = 0;
};

/// The memory of all toy devices.
const ToyMemory& toy_memory();

/// Is over when a stream has come to it. Who waits means the last mark of then, whatever is marked later.
class ToyEvent : public autograph::Event {
 public:
  /// The number of a new mark.
  size_t mark();
  size_t last_mark() const;
  void finish(size_t mark);
  void wait(size_t mark) const;

 private:
  mutable std::mutex mutex_;  // guards all below
  mutable std::condition_variable changed_;
  size_t marked_ = 0;
  size_t finished_ = 0;
};

/// A thread that does what it is told in order.
class ToyStream : public autograph::Stream {
 public:
  ToyStream();
  ~ToyStream() override;
  const autograph::Memory* memory() const override { return &toy_memory(); }
  void record(autograph::Event& event) override;
  void wait_for(const autograph::Event& event) override;
  void wait() override;
  std::unique_ptr<autograph::CapturedWork> capture(const std::function<void()>& enqueue) override;
  /// Adds work to the end, or to what is being captured.
  void enqueue(std::function<void()> work);
  /// Captured work that was enqueued again, by all streams so far.
  static size_t num_replayed();

 private:
  void serve();
  void refuse_while_capturing();

  std::vector<std::function<void()>>* captured_ = nullptr;  // of the thread that enqueues
  bool is_refused_ = false;                                 // likewise: was there what cannot be captured?
  std::mutex mutex_;                                        // guards all below
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool is_idle_ = true;
  bool has_ended_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

class ToyDevice : public autograph::Device {
 public:
  explicit ToyDevice(std::string name = "toy");
  std::string identity() const override { return "toy 1"; }
  autograph::DeviceProperties properties() const override { return {.max_streams = 4, .sync_us = 20}; }
  const autograph::KernelCatalog& catalog() const override { return catalog_; }
  const autograph::Memory* memory() const override { return &toy_memory(); }
  std::unique_ptr<autograph::Stream> new_stream() const override { return std::make_unique<ToyStream>(); }
  std::unique_ptr<autograph::Event> new_event() const override { return std::make_unique<ToyEvent>(); }
  std::shared_ptr<autograph::Launchable> record(std::shared_ptr<const autograph::CompiledPlan> plan) const override;

 private:
  autograph::KernelCatalog catalog_;
};

}  // namespace toy
