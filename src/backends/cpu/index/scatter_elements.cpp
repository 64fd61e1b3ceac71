// scatter_elements in f32: a copy, then element by element; every index is checked. Threads share the axes before the
// indexed one, so that updates of one element meet in order.
#include <atomic>
#include <cstring>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/index/index_lines.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "ops/index/index_check.h"
#include "ops/index/scatter_reduction.h"

namespace autograph {
namespace {

class ScatterElementsKernel : public Kernel {
 public:
  explicit ScatterElementsKernel(const KernelCall& call)
      : lines_(call),
        elements_(call.outputs[0].shape().num_elements().value()),
        copy_threads_(useful_threads(call.threads, elements_)),
        threads_(useful_threads(call.threads, lines_.count() * lines_.length())) {
    dispatch_reduction(call.attributes.text("reduction"), [&]<ScatterReduction R>() {
      const bool narrow = call.inputs[1].dtype() == DType::i32;
      scatter_ = narrow ? &ScatterElementsKernel::scatter<R, int32_t> : &ScatterElementsKernel::scatter<R, int64_t>;
    });
  }

  void run(const KernelArgs& args) const override {
    const float* data = args.inputs[0].data<float>();
    float* out = args.outputs[0].mutable_data<float>();
    if (data != out) {
      for_shares(copy_threads_, elements_, [&](int64_t begin, int64_t end, int) {
        std::memcpy(out + begin, data + begin, static_cast<size_t>(end - begin) * sizeof(float));
      });
    }
    std::atomic<bool> outside = false;  // an exception must not leave a thread
    for_shares(threads_, lines_.count() / lines_.group(), [&](int64_t begin, int64_t end, int) {
      if (!(this->*scatter_)(args, begin * lines_.group(), end * lines_.group())) outside = true;
    });
    if (outside) checked_indices(scatter_elements_def().name, args.inputs[1], lines_.extent());
  }

  std::vector<uint32_t> in_place_inputs() const override { return {0}; }

 private:
  // Lines begin..end-1; false when an index is out of range.
  template <ScatterReduction R, class Index>
  bool scatter(const KernelArgs& args, int64_t begin, int64_t end) const {
    const int64_t extent = lines_.extent(), stride = lines_.stride(), step = lines_.step(), length = lines_.length();
    for (int64_t line = begin; line < end; ++line) {
      const Index* indices = args.inputs[1].data<Index>() + line * length;
      const float* updates = args.inputs[2].data<float>() + line * length;
      float* out = args.outputs[0].mutable_data<float>() + lines_.start(line);
      if (!all_in_range(indices, length, extent)) return false;
      for (int64_t i = 0; i < length; ++i) {
        const auto index = static_cast<int64_t>(indices[i]);
        float& element = out[(index < 0 ? index + extent : index) * stride + i * step];
        element = combine<R>(element, updates[i]);
      }
    }
    return true;
  }

  const IndexLines lines_;
  const int64_t elements_;
  const int copy_threads_;
  const int threads_;
  bool (ScatterElementsKernel::*scatter_)(const KernelArgs&, int64_t, int64_t) const = nullptr;
};

std::string why_not(const KernelCall& call) {
  if (call.inputs[0].dtype() != DType::f32) return "an input of another dtype than f32";
  for (const Type& input : call.inputs) {
    if (input.shape().num_elements() == 0) return "a tensor without elements";
  }
  return "";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<ScatterElementsKernel>(call), ""}; }

}  // namespace

KernelDef scatter_elements_kernel() {
  return {.name = "cpu.scatter_elements", .op = scatter_elements_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph
