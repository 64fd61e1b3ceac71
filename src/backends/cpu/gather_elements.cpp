// gather_elements: element by element, line by line along the innermost axis; every index is checked.
#include <atomic>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/index_lines.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/refusal.h"
#include "ops/index/index_check.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

class GatherElementsKernel : public Kernel {
 public:
  explicit GatherElementsKernel(const KernelCall& call)
      : lines_(call), threads_(useful_threads(call.threads, lines_.count() * lines_.length())) {}

  void run(const KernelArgs& args) const override {
    dispatch_storage(args.inputs[0].dtype(), [&]<class T>() {
      if constexpr (!std::is_same_v<T, std::string>) {
        if (args.inputs[1].dtype() == DType::i32)
          gather<T>(args, args.inputs[1].data<int32_t>());
        else
          gather<T>(args, args.inputs[1].data<int64_t>());
      }
    });
  }

 private:
  template <class T, class Index>
  void gather(const KernelArgs& args, const Index* indices) const {
    const T* data = args.inputs[0].data<T>();
    T* out = args.outputs[0].mutable_data<T>();
    std::atomic<bool> outside = false;  // an exception must not leave a thread
    for_shares(threads_, lines_.count(), [&](int64_t begin, int64_t end, int) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t at = line * lines_.length();
        if (!all_in_range(indices + at, lines_.length(), lines_.extent())) {
          outside = true;
          return;
        }
        gather_line(data + lines_.start(line), indices + at, out + at);
      }
    });
    if (outside) checked_indices("gather_elements", args.inputs[1], lines_.extent());
  }

  template <class T, class Index>
  void gather_line(const T* data, const Index* indices, T* out) const {
    const int64_t extent = lines_.extent(), stride = lines_.stride(), step = lines_.step(), length = lines_.length();
    if (step == 0) {
      for (int64_t i = 0; i < length; ++i) {
        const auto index = static_cast<int64_t>(indices[i]);
        out[i] = data[index < 0 ? index + extent : index];
      }
      return;
    }
    for (int64_t i = 0; i < length; ++i) {
      const auto index = static_cast<int64_t>(indices[i]);
      out[i] = data[(index < 0 ? index + extent : index) * stride + i];
    }
  }

  const IndexLines lines_;
  const int threads_;
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<GatherElementsKernel>(call), ""}; }

}  // namespace

KernelDef gather_elements_kernel() {
  return {.name = "cpu.gather_elements", .op = "gather_elements", .why_not = why_not_bytes, .prepare = prepare};
}

}  // namespace autograph
