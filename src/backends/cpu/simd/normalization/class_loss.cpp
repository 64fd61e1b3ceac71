// negative_log_likelihood_loss and softmax_cross_entropy_loss of f32: one number is looked up for each label, and of
// a softmax only the logarithm of its sum is formed. What labels add up to is summed in f64 in their order, so that
// it does not depend on the number of threads.
#include <algorithm>

#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/normalization/log_sums.h"
#include "backends/cpu/threads/parallel.h"
#include "base/check.h"
#include "ops/defs.h"

namespace autograph::simd {
namespace {

class ClassLossKernel : public Kernel {
 public:
  explicit ClassLossKernel(const KernelCall& call)
      : takes_softmax_(&call.op == &softmax_cross_entropy_loss_def()),
        narrow_(call.inputs[1].dtype() == DType::i32),
        reduction_(call.attributes.text("reduction")) {
    const Dims scores = call.input_dims(0);
    batch_ = scores[0], classes_ = scores[1];
    for (size_t a = 2; a < scores.size(); ++a) inner_ *= scores[a];
    if (const auto* ignored = call.attributes.find_as<int64_t>("ignore_index")) {
      has_ignored_ = true;
      ignored_ = *ignored;
    }
    threads_ = takes_softmax_ ? useful_threads(call.threads, kWork * batch_ * classes_ * inner_) : 1;
  }

  size_t scratch_bytes() const override {
    return takes_softmax_ ? static_cast<size_t>(2 * count()) * sizeof(float) : 0;
  }

  void run(const KernelArgs& args) const override {
    narrow_ ? check_labels(args.inputs[1].data<int32_t>()) : check_labels(args.inputs[1].data<int64_t>());
    auto* const sums = static_cast<float*>(args.scratch);
    if (takes_softmax_) take_softmax(args, sums);
    narrow_ ? write(args, args.inputs[1].data<int32_t>(), sums) : write(args, args.inputs[1].data<int64_t>(), sums);
  }

 private:
  static constexpr int64_t kWork = 8;  // of an element, in additions

  int64_t count() const { return batch_ * inner_; }
  bool is_ignored(int64_t label) const { return has_ignored_ && label == ignored_; }

  template <class Label>
  void check_labels(const Label* labels) const {
    for (int64_t at = 0; at < count(); ++at) {
      const auto label = static_cast<int64_t>(labels[at]);
      AG_CHECK_USER(is_ignored(label) || (label >= 0 && label < classes_), ValueError,
                    "[loss] labels: expected 0..{}, got {}", classes_ - 1, label);
    }
  }

  // Largest scores, then logarithms of sums; and the log-probabilities where they are an output.
  void take_softmax(const KernelArgs& args, float* sums) const {
    const float* x = args.inputs[0].data<float>();
    const bool keeps = args.outputs.size() > 1 && args.outputs[1].is_present();
    float* const kept = keeps ? args.outputs[1].mutable_data<float>() : nullptr;
    for_shares(threads_, batch_, [&](int64_t begin, int64_t end, int) {
      const int64_t block = classes_ * inner_;
      if (kept) log_softmax_blocks(x + begin * block, kept + begin * block, end - begin, classes_, inner_);
      if (inner_ == 1) {
        log_sums_of_rows(x + begin * block, end - begin, classes_, sums + begin, sums + count() + begin);
        return;
      }
      for (int64_t n = begin; n < end; ++n) {
        log_sums_of_columns(x + n * block, classes_, inner_, sums + n * inner_, sums + count() + n * inner_);
      }
    });
  }

  double log_prob(const float* x, const float* sums, int64_t at, int64_t label) const {
    const double score = static_cast<double>(x[(at / inner_ * classes_ + label) * inner_ + at % inner_]);
    if (!takes_softmax_) return score;
    return score - static_cast<double>(sums[at]) - static_cast<double>(sums[count() + at]);
  }

  template <class Label>
  void write(const KernelArgs& args, const Label* labels, const float* sums) const {
    const float* x = args.inputs[0].data<float>();
    const bool has_weights = args.inputs.size() > 2 && args.inputs[2].is_present();
    const float* weights = has_weights ? args.inputs[2].data<float>() : nullptr;
    float* const y = args.outputs[0].mutable_data<float>();
    const bool is_each = reduction_ == "none";
    double total = 0, total_weight = 0;
    for (int64_t at = 0; at < count(); ++at) {
      const auto label = static_cast<int64_t>(labels[at]);
      const double weight = is_ignored(label) ? 0 : weights ? static_cast<double>(weights[label]) : 1;
      const double loss = is_ignored(label) ? 0 : -weight * log_prob(x, sums, at, label);
      if (is_each) y[at] = static_cast<float>(loss);
      total += loss;
      total_weight += weight;
    }
    if (!is_each) *y = static_cast<float>(reduction_ == "sum" ? total : total / total_weight);
  }

  const bool takes_softmax_, narrow_;
  const std::string reduction_;
  int64_t batch_ = 0, classes_ = 0, inner_ = 1;
  bool has_ignored_ = false;
  int64_t ignored_ = 0;
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  if (call.inputs[0].dtype() != DType::f32) return "scores of another dtype than f32";
  const DType label = call.inputs[1].dtype();
  if (label != DType::i32 && label != DType::i64) return "labels other than i32 and i64";
  return call.inputs[0].shape().num_elements() == 0 ? "a tensor without elements" : "";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<ClassLossKernel>(call), ""}; }

}  // namespace

std::vector<KernelDef> class_loss_kernels() {
  return {
      {.name = "cpu.class_loss", .op = softmax_cross_entropy_loss_def().name, .why_not = why_not, .prepare = prepare},
      {.name = "cpu.class_loss",
       .op = negative_log_likelihood_loss_def().name,
       .why_not = why_not,
       .prepare = prepare}};
}

}  // namespace autograph::simd
