#include "cost/measured_cost.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>

#include "cost/call_key.h"

namespace autograph {
namespace {

// Rounds in which every candidate runs once; its least time counts. After kTrialRounds those that take kHopeless times
// the best one are out. Fast calls get more rounds.
constexpr int kTrialRounds = 3;
constexpr int kRounds = 8;
constexpr int kMaxRounds = 24;
constexpr double kEnoughUs = 4e3;
constexpr double kHopeless = 1.6;
// Slow calls are told apart by the trial rounds: so much time is plenty.
constexpr double kPlentyUs = 3e4;
// Read between runs, so that weights do not stay in cache: more than the last level holds.
constexpr size_t kFlushBytes = size_t{64} << 20;
constexpr int kWakingRuns = 3;
// Where the device captures work, so many runs are replayed at once: what the host takes to ask for a run, longer than
// most kernels, would count else, and in a plan that is replayed it does not.
constexpr int kReplayedRuns = 5;
// Below this, weights are small enough to stay in cache from run to run of a whole network.
constexpr size_t kColdWeightBytes = size_t{64} << 10;

// Small numbers of both signs for floats, zeros for the rest (indices that are legal everywhere).
void fill(Tensor& tensor) {
  if (tensor.dtype() == DType::f32) {
    float* x = tensor.mutable_data<float>();
    for (int64_t i = 0; i < tensor.num_elements(); ++i) x[i] = static_cast<float>(i % 17 - 8) * 0.125F;
  } else {
    std::memset(tensor.mutable_raw(), 0, tensor.size_bytes());
  }
}

}  // namespace

// A kernel with tensors of its own.
class MeasuredCost::Candidate {
 public:
  Candidate(const Memory* memory, Stream& stream, std::unique_ptr<Kernel> kernel, const KernelCall& call,
            const KernelVariant& variant)
      : memory_(memory), stream_(stream), kernel_(std::move(kernel)), state_(kernel_->new_state()) {
    scratch_ = Buffer::allocate(kernel_->scratch_bytes() + 64, memory);
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      if (!call.has_input(k)) {
        inputs_.emplace_back();
      } else if (call.constant(k)) {
        weight_bytes_ += call.constant(k)->size_bytes();
        weights_.push_back(call.constant(k)->to(memory_));
        inputs_.push_back(view(weights_.back(), weights_.back().dims()));
      } else {
        inputs_.push_back(make(call.inputs[k], variant.input(k)));
      }
    }
    for (size_t k = 0; k < call.outputs.size(); ++k) outputs_.push_back(make(call.outputs[k], variant.output(k)));
    run();
    if (memory_) replayed_ = stream_.capture([this] { enqueue(kReplayedRuns); });
  }

  // One timed run.
  void run(Caches& caches);
  // One that does not count.
  void run() {
    enqueue(1);
    stream_.wait();
  }
  double least_us() const { return least_us_; }
  bool is_out = false;

 private:
  TensorView make(const Type& type, Layout layout) {
    const Dims dims = type.shape().static_dims();
    Tensor tensor = Tensor::empty(type.dtype(), layout == Layout::row_major ? dims : padded_dims(layout, dims));
    fill(tensor);
    storage_.push_back(tensor.to(memory_));
    return view(storage_.back(), dims);
  }

  // With dims of its own to refer to.
  TensorView view(const Tensor& tensor, const Dims& dims) {
    dims_.push_back(std::make_unique<Dims>(dims));
    return {tensor.dtype(), *dims_.back(), tensor.buffer().data()};
  }

  void enqueue(int runs) const {
    const KernelArgs args{inputs_, outputs_, scratch_.data(), state_.get(), &stream_};
    for (int i = 0; i < runs; ++i) kernel_->run(args);
  }

  const Memory* memory_;
  Stream& stream_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<KernelState> state_;
  std::vector<Tensor> weights_;
  std::vector<Tensor> storage_;
  std::vector<std::unique_ptr<Dims>> dims_;
  std::vector<TensorView> inputs_;
  std::vector<TensorView> outputs_;
  Buffer scratch_;
  std::unique_ptr<CapturedWork> replayed_;  // null: the device captures nothing, or not this
  size_t weight_bytes_ = 0;
  double least_us_ = kLastResortUs;
};

// Puts weights out of the caches and activations back in.
class MeasuredCost::Caches {
 public:
  // `waker` runs on all threads: those that have slept during the flush must not be waited for in a timed run.
  explicit Caches(std::unique_ptr<Candidate> waker) : waker_(std::move(waker)) {}

  void flush(const std::vector<Tensor>& activations) {
    sum_ += read(memory_);
    for (const Tensor& tensor : activations) sum_ += read(tensor);
    for (int i = 0; waker_ && i < kWakingRuns; ++i) waker_->run();
  }

 private:
  static uint64_t read(const Tensor& tensor) {
    if (!tensor.is_on_host()) return 0;
    const auto* data = static_cast<const unsigned char*>(tensor.raw());
    uint64_t sum = 0;
    for (size_t i = 0; i < tensor.size_bytes(); i += 64) sum += data[i];
    return sum;
  }

  std::unique_ptr<Candidate> waker_;
  Tensor memory_ = Tensor::zeros(DType::u8, {static_cast<int64_t>(kFlushBytes)});
  std::atomic<uint64_t> sum_ = 0;  // keeps the reads
};

void MeasuredCost::Candidate::run(Caches& caches) {
  if (!memory_ && weight_bytes_ > kColdWeightBytes) caches.flush(storage_);
  const double us = stream_.time_us([&] { replayed_ ? replayed_->replay(stream_) : enqueue(1); });
  least_us_ = std::min(least_us_, replayed_ ? us / kReplayedRuns : us);
}

MeasuredCost::Candidate MeasuredCost::make_reorder(const KernelCatalog& catalog, const ReorderCall& call) const {
  static const Attributes kNone;
  static const OpDef kReorder;
  const KernelVariant variant{.name = "", .inputs = {call.from}, .outputs = {call.to}};
  const KernelCall as_call{kReorder, kNone, {&call.type, 1}, {&call.type, 1}, {}, call.threads};
  return {device_.memory(), *stream_, catalog.prepare_reorder(call), as_call, variant};
}

MeasuredCost::MeasuredCost(const Device& device, MeasurementCache& cache, OnMeasure progress,
                           std::function<bool()> may_measure)
    : device_(device),
      identity_(device.identity()),
      stream_(device.new_stream()),
      cache_(cache),
      progress_(std::move(progress)),
      may_measure_(std::move(may_measure)) {}

MeasuredCost::~MeasuredCost() = default;

void MeasuredCost::begin_step(size_t step, size_t num_steps) {
  step_ = step;
  num_steps_ = num_steps;
  if (progress_) progress_(step_, num_steps_, num_measured_);
}

std::optional<double> MeasuredCost::find(const std::string& key) {
  if (const auto found = used_.find(key); found != used_.end()) return found->second;
  const auto given = given_.find(key);
  const auto found = given != given_.end() ? std::optional(given->second) : cache_.find(identity_, key);
  if (found) used_[key] = *found;
  return found;
}

void MeasuredCost::keep(const std::string& key, double us) {
  used_[key] = us;
  cache_.store(identity_, key, us);
}

void MeasuredCost::store(const std::string& key, double us) {
  ++num_measured_;
  keep(key, us);
  if (progress_) progress_(step_, num_steps_, num_measured_);
}

void MeasuredCost::make_caches(const KernelCatalog& catalog, int threads) {
  if (caches_) return;
  std::unique_ptr<Candidate> waker;
  if (catalog.can_reorder()) {
    const Type type(DType::f32, {1, 64, 32, 32});
    waker =
        std::make_unique<Candidate>(make_reorder(catalog, {type, Layout::row_major, Layout::channels_last, threads}));
  }
  caches_ = std::make_unique<Caches>(std::move(waker));
}

void MeasuredCost::measure(std::vector<Candidate>& timed) {
  double best = kLastResortUs;
  double spent_us = 0;
  for (int round = 0; round < kMaxRounds && (round < kRounds || spent_us < kEnoughUs); ++round) {
    for (Candidate& candidate : timed) {
      if (candidate.is_out) continue;
      candidate.run(*caches_);
      best = std::min(best, candidate.least_us());
    }
    spent_us += best * static_cast<double>(timed.size());
    if (round + 1 < kTrialRounds) continue;
    if (spent_us > kPlentyUs) break;
    for (Candidate& candidate : timed) candidate.is_out = candidate.least_us() > kHopeless * best;
  }
}

std::vector<double> MeasuredCost::candidates_us(const KernelCatalog& catalog, const KernelCall& call,
                                                std::span<const KernelCandidate> candidates) {
  const std::string of_call = call_key(call);
  std::vector<std::string> keys;
  bool all_known = true;
  for (const KernelCandidate& candidate : candidates) {
    keys.push_back(fmt::format("{} | {}", of_call, candidate_key(candidate)));
    all_known = all_known && find(keys.back());
  }
  if (!all_known && may_measure_ && !may_measure_()) return KernelCost::candidates_us(catalog, call, candidates);
  if (!all_known) {
    // Times of different moments cannot be compared: what is known is measured again along with the rest.
    std::vector<Candidate> timed;
    std::vector<size_t> numbers;
    for (size_t i = 0; i < candidates.size(); ++i) {
      // oneDNN would give the implementation made first for all that differ in nothing else.
      device_.forget_kernels();
      Prepared prepared = catalog.prepare(call, candidates[i]);
      if (!prepared.kernel) {
        store(keys[i], kLastResortUs);
        continue;
      }
      timed.emplace_back(device_.memory(), *stream_, std::move(prepared.kernel), call, candidates[i].variant);
      numbers.push_back(i);
    }
    make_caches(catalog, call.threads);
    device_.forget_kernels();
    measure(timed);
    for (size_t c = 0; c < timed.size(); ++c) store(keys[numbers[c]], timed[c].least_us());
  }
  std::vector<double> costs;
  for (const std::string& key : keys) costs.push_back(*find(key));
  return costs;
}

double MeasuredCost::reorder_us(const KernelCatalog& catalog, const ReorderCall& call) {
  const std::string key = fmt::format("reorder {} {} {} t{}", to_string(call.type), static_cast<int>(call.from),
                                      static_cast<int>(call.to), call.threads);
  if (const auto known = find(key)) return *known;
  if (may_measure_ && !may_measure_()) return KernelCost::reorder_us(catalog, call);
  std::vector<Candidate> timed;
  timed.push_back(make_reorder(catalog, call));
  make_caches(catalog, call.threads);
  measure(timed);
  store(key, timed[0].least_us());
  return timed[0].least_us();
}

}  // namespace autograph
