#include "tune/measured_cost.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "base/hash.h"
#include "schedule/plan.h"

namespace autograph {
namespace {

// Timed runs of an offer; the least counts. One that takes kHopeless times the best offer of the same call is run once.
constexpr int kRuns = 5;
constexpr double kHopeless = 2.0;
// Read between runs, so that weights do not stay in cache: more than the last level holds.
constexpr size_t kFlushBytes = size_t{64} << 20;
// Below this, weights are small enough to stay in cache from run to run of a whole network.
constexpr size_t kColdWeightBytes = size_t{64} << 10;

std::string describe_types(std::span<const Type> types) {
  std::string text;
  for (const Type& type : types) text += to_string(type) + ";";
  return text;
}

Hash128 hash_attributes(const Attributes& attributes) {
  // A graph with one node has a hash of its own for every value of an attribute; texts are enough for the others.
  Hasher hasher;
  for (const auto& [name, value] : attributes) {
    hasher.add(name);
    if (const auto* graph = std::get_if<GraphRef>(&value)) {
      hasher.add(structural_hash(**graph));
      continue;
    }
    std::visit(
        [&]<class T>(const T& v) {
          if constexpr (std::is_same_v<T, int64_t>) hasher.add(v);
          if constexpr (std::is_same_v<T, float>) hasher.add(fmt::format("{}", v));
          if constexpr (std::is_same_v<T, std::string>) hasher.add(v);
          if constexpr (std::is_same_v<T, DType>) hasher.add(to_string(v));
          if constexpr (std::is_same_v<T, Tensor>) hasher.add(v.content_hash());
          if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<float>> ||
                        std::is_same_v<T, std::vector<std::string>>) {
            for (const auto& element : v) hasher.add(fmt::format("{}", element));
          }
        },
        value);
  }
  return hasher.finish();
}

std::string call_key(const KernelCall& call) {
  std::string constants;
  for (const Tensor& tensor : call.constants) constants += tensor.is_present() ? 'c' : '-';
  return fmt::format("{} {} {} {} {} t{}", call.op.name, to_string(hash_attributes(call.attributes)),
                     describe_types(call.inputs), describe_types(call.outputs), constants, call.threads);
}

// Small numbers of both signs for floats, zeros for the rest (indices that are legal everywhere).
void fill(Tensor& tensor) {
  if (tensor.dtype() == DType::f32) {
    float* x = tensor.mutable_data<float>();
    for (int64_t i = 0; i < tensor.num_elements(); ++i) x[i] = static_cast<float>(i % 17 - 8) * 0.125F;
  } else {
    std::memset(tensor.mutable_raw(), 0, tensor.size_bytes());
  }
}

Tensor bytes(size_t count) { return Tensor::zeros(DType::u8, {static_cast<int64_t>(count)}); }

}  // namespace

// Runs kernels on tensors of its own.
class MeasuredCost::Bench {
 public:
  Bench() : flush_(bytes(kFlushBytes)) {}

  // Microseconds of a run; `best` is the best of the offers before it, 0 when it is the first.
  double time(const Kernel& kernel, const KernelCall& call, const KernelVariant& variant, double best) {
    std::vector<Tensor> storage;
    std::vector<TensorView> inputs;
    std::vector<TensorView> outputs;
    size_t weight_bytes = 0;
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      if (!call.has_input(k)) {
        inputs.emplace_back();
      } else if (call.constant(k)) {
        weight_bytes += call.constant(k)->size_bytes();
        inputs.push_back(call.constant(k)->view());
      } else {
        inputs.push_back(make(call.inputs[k], variant.input(k), storage));
      }
    }
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      outputs.push_back(make(call.outputs[k], variant.output(k), storage));
    }
    Tensor scratch = bytes(kernel.scratch_bytes() + 64);
    const auto state = kernel.new_state();
    const KernelArgs args{inputs, outputs, scratch.mutable_raw(), state.get()};
    const bool is_cold = weight_bytes > kColdWeightBytes;
    kernel.run(args);
    double least = 0;
    for (int i = 0; i < kRuns; ++i) {
      if (is_cold) flush(storage);
      const auto start = std::chrono::steady_clock::now();
      kernel.run(args);
      const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
      least = i == 0 ? took.count() : std::min(least, took.count());
      if (best > 0 && least > kHopeless * best && i > 0) break;
    }
    return least;
  }

 private:
  static TensorView make(const Type& type, Layout layout, std::vector<Tensor>& storage) {
    const Dims dims = type.shape().static_dims();
    Tensor& tensor = storage.emplace_back(
        Tensor::empty(type.dtype(), layout == Layout::row_major ? dims : padded_dims(layout, dims)));
    fill(tensor);
    return {type.dtype(), dims, tensor.mutable_raw()};
  }

  // Puts weights out of the caches and activations back in.
  void flush(const std::vector<Tensor>& activations) {
    sum_ += read(flush_);
    for (const Tensor& tensor : activations) sum_ += read(tensor);
  }

  static uint64_t read(const Tensor& tensor) {
    const auto* data = static_cast<const unsigned char*>(tensor.raw());
    uint64_t sum = 0;
    for (size_t i = 0; i < tensor.size_bytes(); i += 64) sum += data[i];
    return sum;
  }

  Tensor flush_;
  std::atomic<uint64_t> sum_ = 0;  // keeps the reads
};

MeasuredCost::MeasuredCost(std::string device, MeasurementCache& cache, TuneProgress progress)
    : device_(std::move(device)), cache_(cache), progress_(std::move(progress)) {}

MeasuredCost::~MeasuredCost() = default;

void MeasuredCost::begin_step(size_t step, size_t num_steps) {
  step_ = step;
  num_steps_ = num_steps;
  if (progress_) progress_(step_, num_steps_, num_measured_);
}

double MeasuredCost::remember(const std::string& key, const std::function<double()>& measure) {
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  if (const auto found = cache_.find(device_, key)) return known_[key] = *found;
  if (!bench_) bench_ = std::make_unique<Bench>();
  const double us = measure();
  ++num_measured_;
  cache_.store(device_, key, us);
  if (progress_) progress_(step_, num_steps_, num_measured_);
  return known_[key] = us;
}

double MeasuredCost::offer_us(const KernelCatalog& catalog, const KernelCall& call, const Offer& offer) {
  const std::string of_call = call_key(call);
  std::string layouts;
  for (const Layout layout : offer.variant.inputs) layouts += fmt::format("{},", static_cast<int>(layout));
  const std::string key = fmt::format("{} | {} {}", of_call, offer.name(), layouts);
  const double best = known_[of_call];  // of the offers measured so far, 0 at first
  const double us = remember(key, [&] {
    const Prepared prepared = catalog.prepare(call, offer);
    return prepared.kernel ? bench_->time(*prepared.kernel, call, offer.variant, best) : kLastResortUs;
  });
  double& least = known_[of_call];
  least = least == 0 ? us : std::min(least, us);
  return us;
}

double MeasuredCost::reorder_us(const KernelCatalog& catalog, const ReorderCall& call) {
  const std::string key = fmt::format("reorder {} {} {} t{}", to_string(call.type), static_cast<int>(call.from),
                                      static_cast<int>(call.to), call.threads);
  return remember(key, [&] {
    const auto kernel = catalog.prepare_reorder(call);
    const KernelVariant variant{.name = "", .inputs = {call.from}, .outputs = {call.to}};
    static const Attributes kNone;
    static const OpDef kReorder;
    const KernelCall as_call{kReorder, kNone, {&call.type, 1}, {&call.type, 1}, {}, call.threads};
    return bench_->time(*kernel, as_call, variant, 0);
  });
}

}  // namespace autograph
