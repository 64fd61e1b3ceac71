// Batch normalization with given statistics: one multiply-add per element, y = x * factor[c] + shift[c].
#include <cmath>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/multiversion.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"

namespace autograph {
namespace {

AG_MULTIVERSION void scale_shift(const float* x, float factor, float shift, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * factor + shift;
}

std::string why_not(const KernelCall& call) {
  if (call.attributes.flag("training_mode")) return "training mode";
  if (call.outputs.size() > 1) return "running statistics are wanted";
  return why_not_f32(call);
}

class BatchNormalizationKernel : public Kernel {
 public:
  explicit BatchNormalizationKernel(const KernelCall& call) : epsilon_(call.attributes.real("epsilon")) {
    const Dims dims = call.input_dims(0);
    batch_ = dims[0];
    channels_ = dims.size() > 1 ? dims[1] : 1;
    for (size_t a = 2; a < dims.size(); ++a) plane_ *= dims[a];
    threads_ = useful_threads(call.threads, batch_ * channels_ * plane_);
  }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[0].data<float>();
    const float* scale = args.inputs[1].data<float>();
    const float* bias = args.inputs[2].data<float>();
    const float* mean = args.inputs[3].data<float>();
    const float* var = args.inputs[4].data<float>();
    float* y = args.outputs[0].mutable_data<float>();
    for_shares(threads_, batch_ * channels_, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t c = row % channels_;
        const double factor = scale[c] / std::sqrt(static_cast<double>(var[c]) + epsilon_);
        const double shift = bias[c] - mean[c] * factor;
        scale_shift(x + row * plane_, static_cast<float>(factor), static_cast<float>(shift), y + row * plane_, plane_);
      }
    });
  }

 private:
  const double epsilon_;
  int64_t batch_ = 1;
  int64_t channels_ = 1;
  int64_t plane_ = 1;
  int threads_ = 1;
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<BatchNormalizationKernel>(call), ""}; }

}  // namespace

KernelDef batch_normalization_kernel() {
  return {
      .name = "cpu.batch_normalization", .op = batch_normalization_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph
