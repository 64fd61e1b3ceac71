#include "toy_device.h"

#include <autograph/error.h>
#include <autograph/executor.h>
#include <autograph/reference_kernel.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>

namespace toy {
namespace {

using autograph::DType;
using autograph::KernelArgs;
using autograph::KernelCall;
using autograph::TensorView;

constexpr size_t kBytes = size_t{1} << 30;  // reserved, not used
constexpr size_t kAlignment = 64;

uintptr_t reserve(int protection) {
  void* range = ::mmap(nullptr, kBytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) throw autograph::DeviceError("[toy] memory: no addresses left");
  return reinterpret_cast<uintptr_t>(range);
}

// Does `work` now, or when the stream comes to it.
void run(autograph::Stream* stream, std::function<void()> work) {
  if (stream) {
    static_cast<ToyStream&>(*stream).enqueue(std::move(work));
  } else {
    work();
  }
}

const float* in(const KernelArgs& args, size_t slot) { return toy_memory().at(args.inputs[slot].data<float>()); }
float* out(const KernelArgs& args) { return toy_memory().at(args.outputs[0].mutable_data<float>()); }

std::string only_equal_f32(const KernelCall& call) {
  for (const autograph::Type& type : call.inputs) {
    if (type.dtype() != DType::f32 || type.shape() != call.outputs[0].shape()) return "only f32 of equal shapes";
  }
  return "";
}

std::string only_f32_matrices(const KernelCall& call) {
  for (const autograph::Type& type : call.inputs) {
    if (type.dtype() != DType::f32 || type.shape().rank() != 2) return "only f32 matrices";
  }
  return "";
}

class ReluKernel : public autograph::Kernel {
 public:
  void run(const KernelArgs& args) const override {
    const int64_t count = args.outputs[0].num_elements();
    toy::run(args.stream, [x = in(args, 0), y = out(args), count] {
      for (int64_t i = 0; i < count; ++i) y[i] = x[i] < 0 ? 0 : x[i];
    });
  }
};

class AddKernel : public autograph::Kernel {
 public:
  void run(const KernelArgs& args) const override {
    const int64_t count = args.outputs[0].num_elements();
    toy::run(args.stream, [a = in(args, 0), b = in(args, 1), y = out(args), count] {
      for (int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
    });
  }
};

// Adds up products in one of two orders, of which it depends on the shapes which is faster.
class MatmulKernel : public autograph::Kernel {
 public:
  explicit MatmulKernel(bool by_rows) : by_rows_(by_rows) {}
  void run(const KernelArgs& args) const override {
    const int64_t rows = args.outputs[0].dim(0);
    const int64_t columns = args.outputs[0].dim(1);
    const int64_t inner = args.inputs[0].dim(1);
    const auto work = by_rows_ ? add_rows : add_products;
    toy::run(args.stream, [work, a = in(args, 0), b = in(args, 1), y = out(args), rows, columns, inner] {
      work(a, b, y, rows, columns, inner);
    });
  }

 private:
  static void add_products(const float* a, const float* b, float* y, int64_t rows, int64_t columns, int64_t inner) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        float sum = 0;
        for (int64_t k = 0; k < inner; ++k) sum += a[r * inner + k] * b[k * columns + c];
        y[r * columns + c] = sum;
      }
    }
  }
  static void add_rows(const float* a, const float* b, float* y, int64_t rows, int64_t columns, int64_t inner) {
    std::fill_n(y, rows * columns, 0.0F);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t k = 0; k < inner; ++k) {
        for (int64_t c = 0; c < columns; ++c) y[r * columns + c] += a[r * inner + k] * b[k * columns + c];
      }
    }
  }

  bool by_rows_;
};

std::vector<autograph::KernelVariant> orders(const KernelCall&) {
  return {{"products", {}, {}, 1, 0}, {"rows", {}, {}, 2, 1}};
}

autograph::Prepared make_matmul(const KernelCall& call) {
  return {std::make_unique<MatmulKernel>(call.variant->tag == 1), ""};
}

class ToyCapture : public autograph::CapturedWork {
 public:
  explicit ToyCapture(std::vector<std::function<void()>> work) : work_(std::move(work)) {}
  void replay(autograph::Stream& stream) override {
    ++count;
    for (const auto& work : work_) static_cast<ToyStream&>(stream).enqueue(work);
  }
  static inline std::atomic<size_t> count = 0;

 private:
  std::vector<std::function<void()>> work_;
};

template <class Kernel>
autograph::Prepared make(const KernelCall&) {
  return {std::make_unique<Kernel>(), ""};
}

std::vector<autograph::KernelDef> kernels() {
  return {
      {.name = "toy.relu", .op = "relu", .why_not = only_equal_f32, .prepare = make<ReluKernel>},
      {.name = "toy.add", .op = "add", .why_not = only_equal_f32, .prepare = make<AddKernel>},
      {.name = "toy.matmul", .op = "matmul", .why_not = only_f32_matrices, .prepare = make_matmul, .variants = orders},
      autograph::reference_kernel()};
}

}  // namespace

// ---- Memory ----------------------------------------------------------------------------------------------------

ToyMemory::ToyMemory() : addresses_(reserve(PROT_NONE)), bytes_(reserve(PROT_READ | PROT_WRITE)) {}

ToyMemory::~ToyMemory() {
  ::munmap(reinterpret_cast<void*>(addresses_), kBytes);
  ::munmap(reinterpret_cast<void*>(bytes_), kBytes);
}

const std::string& ToyMemory::name() const {
  static const std::string kName = "toy";
  return kName;
}

// The first gap that is large enough.
std::shared_ptr<void> ToyMemory::allocate(size_t bytes) const {
  if (bytes == 0) return nullptr;
  const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard lock(mutex_);
  uintptr_t address = addresses_;
  for (const auto& [begin, used] : used_) {
    if (begin - address >= size) break;
    address = begin + used;
  }
  if (address + size > addresses_ + kBytes)
    throw autograph::BudgetError("[toy] memory: no room for " + std::to_string(bytes) + " bytes");
  used_.emplace(address, size);
  return {reinterpret_cast<void*>(address), [this](void* p) { free(reinterpret_cast<uintptr_t>(p)); }};
}

void ToyMemory::free(uintptr_t address) const {
  const std::lock_guard lock(mutex_);
  used_.erase(address);
}

size_t ToyMemory::bytes_in_use() const {
  const std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const auto& [begin, used] : used_) bytes += used;
  return bytes;
}

void ToyMemory::write(void* to, const void* from_host, size_t bytes, autograph::Stream* stream) const {
  num_written_ += bytes;
  run(stream, [to = at(static_cast<char*>(to)), from_host, bytes] { std::memcpy(to, from_host, bytes); });
}

void ToyMemory::read(void* to_host, const void* from, size_t bytes, autograph::Stream* stream) const {
  num_read_ += bytes;
  run(stream, [to_host, from = at(static_cast<const char*>(from)), bytes] { std::memcpy(to_host, from, bytes); });
}

void ToyMemory::copy(void* to, const void* from, size_t bytes, autograph::Stream* stream) const {
  run(stream, [to = at(static_cast<char*>(to)), from = at(static_cast<const char*>(from)), bytes] {
    std::memcpy(to, from, bytes);
  });
}

const ToyMemory& toy_memory() {
  static const ToyMemory kMemory;
  return kMemory;
}

// ---- Streams ---------------------------------------------------------------------------------------------------

size_t ToyEvent::mark() {
  const std::lock_guard lock(mutex_);
  return ++marked_;
}

size_t ToyEvent::last_mark() const {
  const std::lock_guard lock(mutex_);
  return marked_;
}

void ToyEvent::finish(size_t mark) {
  const std::lock_guard lock(mutex_);
  finished_ = std::max(finished_, mark);
  changed_.notify_all();
}

void ToyEvent::wait(size_t mark) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished_ >= mark; });
}

ToyStream::ToyStream() : thread_([this] { serve(); }) {}

ToyStream::~ToyStream() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

// Only what happens on one stream, without the host.
void ToyStream::refuse_while_capturing() {
  if (!captured_) return;
  is_refused_ = true;
  throw autograph::DeviceError("[toy] capture: something waits");
}

std::unique_ptr<autograph::CapturedWork> ToyStream::capture(const std::function<void()>& enqueue) {
  std::vector<std::function<void()>> work;
  captured_ = &work;
  is_refused_ = false;
  try {
    enqueue();
  } catch (const autograph::DeviceError&) {
    captured_ = nullptr;
    if (!is_refused_) throw;
    return nullptr;
  }
  captured_ = nullptr;
  return std::make_unique<ToyCapture>(std::move(work));
}

size_t ToyStream::num_replayed() { return ToyCapture::count; }

void ToyStream::record(autograph::Event& event) {
  refuse_while_capturing();
  auto& place = static_cast<ToyEvent&>(event);
  enqueue([&place, mark = place.mark()] { place.finish(mark); });
}

void ToyStream::wait_for(const autograph::Event& event) {
  refuse_while_capturing();
  const auto& place = static_cast<const ToyEvent&>(event);
  enqueue([&place, mark = place.last_mark()] { place.wait(mark); });
}

void ToyStream::enqueue(std::function<void()> work) {
  if (captured_) {
    captured_->push_back(std::move(work));
    return;
  }
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  changed_.notify_all();
}

void ToyStream::wait() {
  refuse_while_capturing();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && is_idle_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ToyStream::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !queue_.empty() || has_ended_; });
    if (queue_.empty()) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    is_idle_ = false;
    lock.unlock();
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    is_idle_ = true;
    changed_.notify_all();
  }
}

// ---- Device ----------------------------------------------------------------------------------------------------

ToyDevice::ToyDevice(std::string name) : Device(std::move(name)), catalog_(kernels()) {}

std::shared_ptr<autograph::Launchable> ToyDevice::record(std::shared_ptr<const autograph::CompiledPlan> plan) const {
  return autograph::record_steps(*this, std::move(plan));
}

}  // namespace toy
