// gather_elements: element by element, line by line along the innermost axis; every index is checked.
#include <atomic>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/index/index_lines.h"
#include "backends/cpu/multiversion.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "ops/index/index_check.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

// One line: out[i] = data[index[i] * stride + i * step]. What is out of range counts as index 0.
struct Line {
  int64_t extent, stride, step, length;
};

// Returns whether some index is out of range. Inlined into functions of several instruction sets.
template <class T, class Index>
inline __attribute__((always_inline)) bool gather_line(const Line& line, const T* data, const Index* indices, T* out) {
  const auto extent = static_cast<uint64_t>(line.extent);
  uint64_t outside = 0;
  const auto position = [&](int64_t i) {
    const auto given = static_cast<int64_t>(indices[i]);
    const auto index = static_cast<uint64_t>(given < 0 ? given + line.extent : given);
    const bool inside = index < extent;
    outside |= inside ? 0 : 1;
    return static_cast<int64_t>(inside ? index : 0);
  };
  if (line.step == 0) {
    for (int64_t i = 0; i < line.length; ++i) out[i] = data[position(i)];
  } else {
    for (int64_t i = 0; i < line.length; ++i) out[i] = data[position(i) * line.stride + i];
  }
  return outside != 0;
}

AG_MULTIVERSION bool gather_words(const Line& line, const uint32_t* data, const int64_t* indices, uint32_t* out) {
  return gather_line(line, data, indices, out);
}

AG_MULTIVERSION bool gather_words(const Line& line, const uint32_t* data, const int32_t* indices, uint32_t* out) {
  return gather_line(line, data, indices, out);
}

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
    // There is no element to read instead of those out of range.
    if (lines_.extent() == 0) return void(checked_indices(gather_elements_def().name, args.inputs[1], 0));
    const T* data = args.inputs[0].data<T>();
    T* out = args.outputs[0].mutable_data<T>();
    const Line shape{lines_.extent(), lines_.stride(), lines_.step(), lines_.length()};
    std::atomic<bool> outside = false;  // an exception must not leave a thread
    for_shares(threads_, lines_.count(), [&](int64_t begin, int64_t end, int) {
      bool any = false;
      for (int64_t line = begin; line < end; ++line) {
        const int64_t at = line * lines_.length();
        const T* from = data + lines_.start(line);
        if constexpr (sizeof(T) == sizeof(uint32_t)) {
          any |= gather_words(shape, reinterpret_cast<const uint32_t*>(from), indices + at,
                              reinterpret_cast<uint32_t*>(out + at));
        } else {
          any |= gather_line(shape, from, indices + at, out + at);
        }
      }
      if (any) outside = true;
    });
    if (outside) checked_indices(gather_elements_def().name, args.inputs[1], lines_.extent());
  }

  const IndexLines lines_;
  const int threads_;
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<GatherElementsKernel>(call), ""}; }

}  // namespace

KernelDef gather_elements_kernel() {
  return {
      .name = "cpu.gather_elements", .op = gather_elements_def().name, .why_not = why_not_bytes, .prepare = prepare};
}

}  // namespace autograph
