// Layer normalization over trailing dims in f32: mean and variance of a row in two passes, each row in cache.
#include <cmath>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/multiversion.h"
#include "backends/cpu/refusal.h"

namespace autograph {
namespace {

struct Row {
  const float* x;
  const float* scale;
  const float* bias;  // may be null
  float* y;
  int64_t size;
};

AG_MULTIVERSION void normalize_row(const Row& row, double epsilon) {
  const float* x = row.x;
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < row.size; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(row.size);
  double squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < row.size; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double factor = 1.0 / std::sqrt(squares / static_cast<double>(row.size) + epsilon);
  const auto m = static_cast<float>(mean);
  const auto f = static_cast<float>(factor);
  if (row.bias) {
    for (int64_t i = 0; i < row.size; ++i) row.y[i] = (x[i] - m) * f * row.scale[i] + row.bias[i];
  } else {
    for (int64_t i = 0; i < row.size; ++i) row.y[i] = (x[i] - m) * f * row.scale[i];
  }
}

int64_t row_size(const KernelCall& call) {
  const Dims dims = call.input_dims(0);
  int64_t axis = call.attributes.integer("axis");
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  int64_t size = 1;
  for (auto a = static_cast<size_t>(axis); a < dims.size(); ++a) size *= dims[a];
  return size;
}

std::string why_not(const KernelCall& call) {
  if (call.outputs.size() > 1) return "statistics are wanted";
  std::string reason = why_not_f32(call);
  if (!reason.empty()) return reason;
  const int64_t size = row_size(call);
  for (size_t slot = 1; slot < call.inputs.size(); ++slot) {
    if (call.has_input(slot) && call.inputs[slot].shape().num_elements() != size) return "scale or bias broadcasts";
  }
  return "";
}

class LayerNormalizationKernel : public Kernel {
 public:
  explicit LayerNormalizationKernel(const KernelCall& call)
      : size_(row_size(call)), epsilon_(call.attributes.real("epsilon")) {}

  void run(const KernelArgs& args) const override {
    const float* bias = args.inputs.size() > 2 ? args.inputs[2].data<float>() : nullptr;
    for (int64_t at = 0; at < args.inputs[0].num_elements(); at += size_) {
      normalize_row({args.inputs[0].data<float>() + at, args.inputs[1].data<float>(), bias,
                     args.outputs[0].mutable_data<float>() + at, size_},
                    epsilon_);
    }
  }

 private:
  const int64_t size_;
  const double epsilon_;
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<LayerNormalizationKernel>(call), ""}; }

}  // namespace

KernelDef layer_normalization_kernel() {
  return {.name = "cpu.layer_normalization", .op = "layer_normalization", .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph
