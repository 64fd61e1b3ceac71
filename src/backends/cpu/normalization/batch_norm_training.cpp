// Batch normalization with the statistics of its batch, and its gradient, over f32 in any layout: one pass for all
// sums, one that writes. The threads share the pixels, as the kernels before and after do.
//
// The variance comes from differences to a number near the mean (channel_sums.h), so that it loses no digits where a
// channel is far from 0; sums are added in f64, in an order that does not depend on how busy the machine is. Where
// squares of some channel are beyond the range of f32, or were taken from a number far from its mean, all channels are
// computed in f64.
#include <cmath>
#include <memory>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/normalization/channel_sums.h"
#include "backends/cpu/normalization/moments.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

// What both kernels share: scratch memory, sums, who computes what.
class BatchKernel : public Kernel {
 public:
  BatchKernel(const KernelCall& call, size_t sums)
      : rows_(call.input_dims(0), call.variant ? call.variant->input(0) : Layout::row_major),
        epsilon_(call.attributes.real("epsilon")),
        sums_(sums),
        threads_(useful_threads(call.threads, 2 * rows_.elements())) {}

  // For every thread its sums, then `from` and four factors.
  size_t scratch_bytes() const override {
    const auto channels = static_cast<size_t>(rows_.channels());
    return channels * (static_cast<size_t>(threads_) * sums_ * sizeof(double) + 5 * sizeof(float));
  }

 protected:
  double* totals(const KernelArgs& args) const { return static_cast<double*>(args.scratch); }
  float* factors(const KernelArgs& args, int64_t number) const {
    auto* first = reinterpret_cast<float*>(totals(args) + threads_ * static_cast<int64_t>(sums_) * rows_.channels());
    return first + number * rows_.channels();
  }

  ChannelSums sums_at(double* begin) const {
    const int64_t c = rows_.channels();
    return {begin, begin + c, sums_ > 2 ? begin + 2 * c : nullptr, sums_ > 2 ? begin + 3 * c : nullptr};
  }

  // The sums of all channels, about factors(4).
  ChannelSums add_up(const KernelArgs& args, const float* x, const float* g) const {
    float* from = factors(args, 4);
    sample_channels(rows_, x, from);
    double* all = totals(args);
    const int64_t size = static_cast<int64_t>(sums_) * rows_.channels();
    std::fill_n(all, threads_ * size, 0.0);
    for_fixed_shares(threads_, rows_.rows * rows_.pixels, [&](int64_t begin, int64_t end, int thread) {
      add_channel_sums(rows_, x, g, begin, end, from, sums_at(all + thread * size));
    });
    for (int64_t i = size; i < threads_ * size; ++i) all[i % size] += all[i];
    return sums_at(all);
  }

  Moments moments(const ChannelSums& sums, const float* from, int64_t c) const {
    const auto count = static_cast<double>(rows_.count());
    const double shift = sums.x[c] / count;
    return {static_cast<double>(from[c]) + shift, no_less_than_zero(sums.squares[c] / count - shift * shift)};
  }

  bool all_hold(const ChannelSums& sums, const float* from) const {
    for (int64_t c = 0; c < rows_.channels(); ++c) {
      const Moments batch = moments(sums, from, c);
      if (!holds_in_f32(batch.variance, sums.x[c] / static_cast<double>(rows_.count()), epsilon_)) return false;
    }
    return true;
  }

  // compute(channel, its moments in f64) for all channels.
  template <class Compute>
  void for_channels_in_f64(const float* x, const Compute& compute) const {
    for_shares(threads_, rows_.channels(), [&](int64_t begin, int64_t end, int) {
      for (int64_t c = begin; c < end; ++c) {
        compute(c, moments_in_f64(x, [&](const auto& visit) { rows_.for_channel(c, visit); }));
      }
    });
  }

  const ChannelRows rows_;
  const double epsilon_;
  const size_t sums_;  // of each channel
  const int threads_;
};

class Forward : public BatchKernel {
 public:
  explicit Forward(const KernelCall& call) : BatchKernel(call, 2), momentum_(call.attributes.real("momentum")) {}

  std::vector<uint32_t> in_place_inputs() const override { return {0}; }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[0].data<float>();
    const ChannelSums sums = add_up(args, x, nullptr);
    if (!all_hold(sums, factors(args, 4))) return run_in_f64(args);
    float *mean = factors(args, 0), *factor = factors(args, 1), *shift = factors(args, 2);
    for (int64_t c = 0; c < rows_.channels(); ++c) {
      const Moments batch = moments(sums, factors(args, 4), c);
      const double scale = args.inputs[1].data<float>()[c];
      mean[c] = static_cast<float>(batch.mean);
      factor[c] = static_cast<float>(scale / std::sqrt(batch.variance + epsilon_));
      // What rounding the mean has left out; of an infinite scale that would be NaN.
      const double rest = static_cast<double>(mean[c]) - batch.mean;
      shift[c] = args.inputs[2].data<float>()[c];
      if (std::isfinite(factor[c])) shift[c] += static_cast<float>(rest * static_cast<double>(factor[c]));
      store_running(args, c, batch);
    }
    float* y = args.outputs[0].mutable_data<float>();
    for_shares(threads_, rows_.rows * rows_.pixels, [&](int64_t begin, int64_t end, int) {
      normalize_channels(rows_, x, {mean, factor, shift}, begin, end, y);
    });
  }

 private:
  void run_in_f64(const KernelArgs& args) const {
    const float* x = args.inputs[0].data<float>();
    float* y = args.outputs[0].mutable_data<float>();
    for_channels_in_f64(x, [&](int64_t c, const Moments& batch) {
      const double factor = args.inputs[1].data<float>()[c] / std::sqrt(batch.variance + epsilon_);
      const double bias = args.inputs[2].data<float>()[c];
      rows_.for_channel(c, [&](int64_t at) {
        y[at] = static_cast<float>((static_cast<double>(x[at]) - batch.mean) * factor + bias);
      });
      store_running(args, c, batch);
    });
  }

  void store_running(const KernelArgs& args, int64_t c, const Moments& batch) const {
    store_running(args, 1, c, batch.mean);
    store_running(args, 2, c, batch.variance);
  }

  // Inputs 3 and 4 are the running statistics until now.
  void store_running(const KernelArgs& args, size_t output, int64_t c, double now) const {
    if (args.outputs.size() <= output || !args.outputs[output].is_present()) return;
    const double before = args.inputs[output + 2].data<float>()[c];
    args.outputs[output].mutable_data<float>()[c] = static_cast<float>(before * momentum_ + now * (1 - momentum_));
  }

  const double momentum_;
};

class Backward : public BatchKernel {
 public:
  explicit Backward(const KernelCall& call) : BatchKernel(call, 4) {}

  std::vector<uint32_t> in_place_inputs() const override { return {2, 0}; }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[0].data<float>();
    const float* g = args.inputs[2].data<float>();
    const ChannelSums sums = add_up(args, x, g);
    if (!all_hold(sums, factors(args, 4))) return run_in_f64(args);
    float *mean = factors(args, 0), *of_x = factors(args, 1), *shift = factors(args, 2), *of_g = factors(args, 3);
    const auto count = static_cast<double>(rows_.count());
    for (int64_t c = 0; c < rows_.channels(); ++c) {
      const Moments batch = moments(sums, factors(args, 4), c);
      const double inverse = 1 / std::sqrt(batch.variance + epsilon_);
      const double difference = batch.mean - static_cast<double>(factors(args, 4)[c]);
      const double of_scale = (sums.product[c] - difference * sums.g[c]) * inverse;
      const double factor = args.inputs[1].data<float>()[c] * inverse;
      mean[c] = static_cast<float>(batch.mean);
      of_g[c] = static_cast<float>(factor);
      of_x[c] = static_cast<float>(-factor * inverse * of_scale / count);
      shift[c] = static_cast<float>(-factor * sums.g[c] / count +
                                    (static_cast<double>(mean[c]) - batch.mean) * static_cast<double>(of_x[c]));
      store(args, 1, c, of_scale);
      store(args, 2, c, sums.g[c]);
    }
    float* gx = args.outputs[0].mutable_data<float>();
    for_shares(threads_, rows_.rows * rows_.pixels, [&](int64_t begin, int64_t end, int) {
      combine_channels(rows_, x, g, {mean, of_x, shift, of_g}, begin, end, gx);
    });
  }

 private:
  void run_in_f64(const KernelArgs& args) const {
    const float* x = args.inputs[0].data<float>();
    const float* g = args.inputs[2].data<float>();
    float* gx = args.outputs[0].mutable_data<float>();
    const auto count = static_cast<double>(rows_.count());
    for_channels_in_f64(x, [&](int64_t c, const Moments& batch) {
      const double inverse = 1 / std::sqrt(batch.variance + epsilon_);
      const auto normal = [&](int64_t at) { return (static_cast<double>(x[at]) - batch.mean) * inverse; };
      double flow = 0, product = 0;
      rows_.for_channel(c, [&](int64_t at) {
        flow += static_cast<double>(g[at]);
        product += static_cast<double>(g[at]) * normal(at);
      });
      const double factor = args.inputs[1].data<float>()[c] * inverse;
      rows_.for_channel(c, [&](int64_t at) {
        gx[at] = static_cast<float>(factor * (static_cast<double>(g[at]) - (flow + normal(at) * product) / count));
      });
      store(args, 1, c, product);
      store(args, 2, c, flow);
    });
  }

  static void store(const KernelArgs& args, size_t output, int64_t c, double value) {
    if (args.outputs.size() <= output || !args.outputs[output].is_present()) return;
    args.outputs[output].mutable_data<float>()[c] = static_cast<float>(value);
  }
};

bool is_gradient(const KernelCall& call) { return &call.op == &batch_normalization_grad_def(); }

std::string why_not(const KernelCall& call) {
  if (!is_gradient(call) && !call.attributes.flag("training_mode")) return "given statistics";
  if (call.input_dims(0).size() < 2) return "a tensor without channels";
  return why_not_f32(call);
}

Prepared prepare(const KernelCall& call) {
  if (is_gradient(call)) return {std::make_unique<Backward>(call), ""};
  return {std::make_unique<Forward>(call), ""};
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kStartUs = 4;
  constexpr double kBytesPerUs = 10e3;
  const double passes = is_gradient(call) ? 5 : 3;
  const double us = kStartUs + passes * static_cast<double>(size_of(call.inputs[0])) / kBytesPerUs / call.threads;
  std::vector<KernelVariant> result{{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
  const Dims x = call.input_dims(0);
  for (const Layout layout : {Layout::channels_last, Layout::blocked16, Layout::blocked8}) {
    // Padding would have to stay zero.
    if (!fits_rank(layout, x.size()) || x[1] % channel_block(layout) != 0) continue;
    std::vector<Layout> inputs{layout};
    if (is_gradient(call)) inputs = {layout, Layout::row_major, layout};
    result.push_back({.name = "", .inputs = inputs, .outputs = {layout}, .cost_us = us});
  }
  return result;
}

}  // namespace

std::vector<KernelDef> batch_norm_training_kernels() {
  std::vector<KernelDef> kernels;
  for (const OpDef* op : {&batch_normalization_def(), &batch_normalization_grad_def()}) {
    kernels.push_back({.name = "cpu.batch_norm_training",
                       .op = op->name,
                       .why_not = why_not,
                       .prepare = prepare,
                       .variants = variants});
  }
  return kernels;
}

}  // namespace autograph
