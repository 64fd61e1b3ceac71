// Batches of a set, made ahead by threads and given in their order.
//
// Batches are numbered from the position where the loader was put. Threads take numbers one after the other, at most
// `prefetch` ahead of what has been given, and each makes its batch alone: which thread it was cannot show in it. The
// caller waits for the number that is next. Whatever changes the position ends the threads first; next() starts them.
#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "autograph/data.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/printable.h"
#include "base/rethrow.h"
#include "data/draws.h"
#include "data/sample_maker.h"

namespace autograph {
namespace {

constexpr int kMaxThreads = 256;
constexpr int64_t kMaxPrefetch = 1 << 16;

using Order = std::shared_ptr<const std::vector<int64_t>>;

// Orders of the epochs at work: the one that is given and the one that is made ahead.
class EpochOrders {
 public:
  EpochOrders(int64_t size, uint64_t seed) : size_(size), seed_(seed) {}

  /// Behind a change of the position: the oldest epoch is no longer the one that ends first.
  void clear() {
    const std::lock_guard lock(mutex_);
    orders_.clear();
  }
  Order get(int64_t epoch) {
    const std::lock_guard lock(mutex_);
    if (const auto found = orders_.find(epoch); found != orders_.end()) return found->second;
    if (orders_.size() == 2) orders_.erase(orders_.begin());
    return orders_[epoch] = std::make_shared<const std::vector<int64_t>>(draw_order(size_, seed_, epoch));
  }

 private:
  int64_t size_;
  uint64_t seed_;
  std::mutex mutex_;  // guards orders_
  std::map<int64_t, Order> orders_;
};

// Which samples.
struct BatchRange {
  DataPosition position;
  int64_t size = 0;
};

}  // namespace

class DataLoader::Impl {
 public:
  Impl(DatasetPtr dataset, LoaderOptions options)
      : dataset_(check(std::move(dataset), options)),
        options_(std::move(options)),
        maker_(dataset_, options_),
        orders_(dataset_->size(), options_.seed) {}
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::optional<Batch> next() {
    if (size_from(position_.sample) == 0) {
      AG_CHECK_USER(position_.epoch < kMaxEpoch, ValueError, "[data] epoch: expected at most {}, got one more",
                    kMaxEpoch);
      position_ = {position_.epoch + 1, 0};
      return std::nullopt;
    }
    Batch batch = options_.threads == 0 ? make(range_at(0, position_), scratch_) : take();
    position_.sample += batch.size;
    return batch;
  }

  void seek(DataPosition position) {
    AG_CHECK_USER(position.epoch >= 0 && position.epoch <= kMaxEpoch, ValueError,
                  "[data] position: epoch: expected 0 to {}, got {}", kMaxEpoch, position.epoch);
    AG_CHECK_USER(position.sample >= 0 && position.sample <= dataset_->size(), ValueError,
                  "[data] position: sample: expected 0 to {}, got {}", dataset_->size(), position.sample);
    stop();
    orders_.clear();
    position_ = position;
  }

  DataPosition position() const { return position_; }
  const std::vector<Field>& fields() const { return maker_.fields(); }
  const LoaderOptions& options() const { return options_; }
  const DatasetPtr& dataset() const { return dataset_; }
  int64_t batches_from(int64_t sample) const {
    const int64_t left = dataset_->size() - sample, size = options_.batch_size;
    return options_.drop_last ? left / size : left / size + (left % size > 0 ? 1 : 0);
  }

 private:
  struct Made {
    Batch batch;
    std::exception_ptr error;
  };

  static DatasetPtr check(DatasetPtr dataset, const LoaderOptions& options) {
    AG_CHECK_USER(dataset, ValueError, "[data] dataset: expected one, got null");
    AG_CHECK_USER(dataset->size() >= 1, ValueError, "[data] dataset: expected samples, got none");
    AG_CHECK_USER(options.batch_size >= 1, ValueError, "[data] batch_size: expected 1 or more, got {}",
                  options.batch_size);
    AG_CHECK_USER(!options.drop_last || options.batch_size <= dataset->size(), ValueError,
                  "[data] batch_size: expected at most the {} samples (drop_last leaves none), got {}", dataset->size(),
                  options.batch_size);
    AG_CHECK_USER(options.threads >= 0 && options.threads <= kMaxThreads, ValueError,
                  "[data] threads: expected 0 to {}, got {}", kMaxThreads, options.threads);
    AG_CHECK_USER(options.prefetch >= 1 && options.prefetch <= kMaxPrefetch, ValueError,
                  "[data] prefetch: expected 1 to {}, got {}", kMaxPrefetch, options.prefetch);
    return dataset;
  }

  // Samples of the batch that begins there; 0 at the end of an epoch.
  int64_t size_from(int64_t sample) const {
    const int64_t size = std::min(options_.batch_size, dataset_->size() - sample);
    return options_.drop_last && size < options_.batch_size ? 0 : size;
  }

  // The batch of that number, counted from `start`.
  BatchRange range_at(int64_t number, DataPosition start) const {
    DataPosition position = start;
    const int64_t rest = batches_from(start.sample);
    if (number < rest) {
      position.sample += number * options_.batch_size;
    } else {
      const int64_t whole = batches_from(0);
      position = {start.epoch + 1 + (number - rest) / whole, (number - rest) % whole * options_.batch_size};
    }
    return {position, size_from(position.sample)};
  }

  Batch make(const BatchRange& range, SampleMaker::Scratch& scratch) {
    const Order order = options_.shuffle ? orders_.get(range.position.epoch) : nullptr;
    Batch batch{.position = range.position, .size = range.size};
    for (const Field& field : fields()) {
      Dims dims{range.size};
      dims.insert(dims.end(), field.dims.begin(), field.dims.end());
      batch.tensors.emplace_back(field.name, Tensor::empty(field.dtype, std::move(dims)));
    }
    std::vector<TensorView> views(fields().size());
    for (int64_t row = 0; row < range.size; ++row) {
      for (size_t i = 0; i < views.size(); ++i) {
        const Field& field = fields()[i];
        const TensorView first(field.dtype, field.dims, batch.tensors[i].second.mutable_raw());
        char* memory = first.mutable_data<char>() + static_cast<size_t>(row) * first.size_bytes();
        views[i] = TensorView(field.dtype, field.dims, memory);
      }
      const int64_t place = range.position.sample + row;
      make_sample(range.position.epoch, order ? (*order)[static_cast<size_t>(place)] : place, views, scratch);
    }
    return batch;
  }

  // Errors of ours say which sample it was; others go through as they are.
  void make_sample(int64_t epoch, int64_t index, std::span<const TensorView> views, SampleMaker::Scratch& scratch) {
    try {
      maker_.make(epoch, index, views, scratch);
    } catch (const Error&) {
      rethrow_changed(
          [&](const std::string& message) { return fmt::format("{} (sample {}, epoch {})", message, index, epoch); });
    }
  }

  // The next batch from the threads.
  Batch take() {
    if (threads_.empty()) start();
    Made made;
    {
      std::unique_lock lock(mutex_);
      has_made_.wait(lock, [&] { return made_.contains(given_); });
      made = std::move(made_.extract(given_).mapped());
      ++given_;
    }
    may_make_.notify_one();
    if (!made.error) return std::move(made.batch);
    stop();  // what comes behind it is not wanted before it
    std::rethrow_exception(made.error);
  }

  void start() {
    start_ = position_;
    taken_ = given_ = 0;
    stopping_ = false;
    try {
      for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { work(); });
    } catch (...) {
      stop();
      throw;
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    may_make_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    made_.clear();
  }

  void work() {
    SampleMaker::Scratch scratch;
    std::unique_lock lock(mutex_);
    for (;;) {
      may_make_.wait(lock, [&] { return stopping_ || taken_ < given_ + options_.prefetch; });
      if (stopping_) return;
      const int64_t number = taken_++;
      lock.unlock();
      Made made;
      try {
        const BatchRange range = range_at(number, start_);
        // Behind the last epoch there is nothing, and nobody asks for it.
        if (range.position.epoch <= kMaxEpoch) made.batch = make(range, scratch);
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      made_.emplace(number, std::move(made));
      has_made_.notify_one();
    }
  }

  const DatasetPtr dataset_;
  const LoaderOptions options_;
  const SampleMaker maker_;
  EpochOrders orders_;
  DataPosition position_;         // the caller's
  SampleMaker::Scratch scratch_;  // the caller's, without threads
  DataPosition start_;            // of number 0; written while no thread runs
  std::vector<std::thread> threads_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable may_make_;
  std::condition_variable has_made_;
  bool stopping_ = false;
  int64_t taken_ = 0;  // numbers that threads have taken
  int64_t given_ = 0;  // numbers that the caller has got
  std::map<int64_t, Made> made_;
};

const Tensor& Batch::operator[](std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [known, tensor] : tensors) {
    if (known == name) return tensor;
    names.push_back(known);
  }
  throw ValueError(fmt::format("[data] batch: no field '{}'{}", printable(name), did_you_mean(name, names)));
}

DataLoader::DataLoader(DatasetPtr dataset, LoaderOptions options)
    : impl_(std::make_unique<Impl>(std::move(dataset), std::move(options))) {}
DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&&) noexcept = default;
DataLoader::~DataLoader() = default;

std::optional<Batch> DataLoader::next() { return impl_->next(); }
DataPosition DataLoader::position() const { return impl_->position(); }
void DataLoader::seek(DataPosition position) { impl_->seek(position); }
const std::vector<Field>& DataLoader::fields() const { return impl_->fields(); }
int64_t DataLoader::batches_per_epoch() const { return impl_->batches_from(0); }
int64_t DataLoader::samples_per_epoch() const {
  const int64_t size = impl_->dataset()->size(), batch = impl_->options().batch_size;
  return impl_->options().drop_last ? size / batch * batch : size;
}
const LoaderOptions& DataLoader::options() const { return impl_->options(); }
const DatasetPtr& DataLoader::dataset() const { return impl_->dataset(); }

}  // namespace autograph
