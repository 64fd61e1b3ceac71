// scatter_elements in f32: a copy and the updates, element by element; every index is checked. Threads share the
// positions of the axes before the indexed one, so that updates of one element meet in order. Each copies what belongs
// to a position just before it updates that, while it is in the cache.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <ranges>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/index/index_lines.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "ops/index/index_check.h"
#include "ops/index/scatter_reduction.h"

namespace autograph {
namespace {

void copy_floats(const float* from, float* to, int64_t count) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

class ScatterElementsKernel : public Kernel {
 public:
  explicit ScatterElementsKernel(const KernelCall& call)
      : lines_(call),
        elements_(call.outputs[0].shape().num_elements().value()),
        part_(lines_.extent() * lines_.stride()),
        copy_threads_(useful_threads(call.threads, elements_)),
        threads_(useful_threads(call.threads, lines_.count() * lines_.length())),
        fused_threads_(useful_threads(call.threads, elements_ + lines_.count() * lines_.length())) {
    dispatch_reduction(call.attributes.text("reduction"), [&]<ScatterReduction R>() {
      const bool narrow = call.inputs[1].dtype() == DType::i32;
      scatter_ = narrow ? &ScatterElementsKernel::scatter<R, int32_t> : &ScatterElementsKernel::scatter<R, int64_t>;
    });
  }

  void run(const KernelArgs& args) const override {
    const float* data = args.inputs[0].data<float>();
    float* out = args.outputs[0].mutable_data<float>();
    std::atomic<bool> outside = false;  // an exception must not leave a thread
    const int64_t parts = elements_ / part_;
    if (data != out && parts >= fused_threads_) {
      for_shares(fused_threads_, parts, [&](int64_t begin, int64_t end, int) {
        if (!copy_and_scatter(args, begin, end)) outside = true;
      });
    } else {
      if (data != out) {
        for_shares(copy_threads_, elements_,
                   [&](int64_t begin, int64_t end, int) { copy_floats(data + begin, out + begin, end - begin); });
      }
      for_shares(threads_, groups(), [&](int64_t begin, int64_t end, int) {
        if (!scatter_groups(args, begin, end)) outside = true;
      });
    }
    if (outside) checked_indices(scatter_elements_def().name, args.inputs[1], lines_.extent());
  }

  std::vector<uint32_t> in_place_inputs() const override { return {0}; }

 private:
  int64_t groups() const { return lines_.count() / lines_.group(); }
  // Where in the data a group of lines begins; later groups begin later.
  int64_t start_of_group(int64_t group) const { return lines_.start(group * lines_.group()); }
  bool scatter_groups(const KernelArgs& args, int64_t begin, int64_t end) const {
    return (this->*scatter_)(args, begin * lines_.group(), end * lines_.group());
  }

  // The first group that begins at element `at` or behind it.
  int64_t first_group_from(int64_t at) const {
    const auto all = std::views::iota(int64_t{0}, groups());
    const auto first = std::ranges::partition_point(all, [&](int64_t group) { return start_of_group(group) < at; });
    return static_cast<int64_t>(first - all.begin());
  }

  // Positions begin..end-1 of the axes before the indexed one, of which not all need have indices.
  bool copy_and_scatter(const KernelArgs& args, int64_t begin, int64_t end) const {
    const float* data = args.inputs[0].data<float>();
    float* out = args.outputs[0].mutable_data<float>();
    int64_t group = first_group_from(begin * part_);
    for (int64_t position = begin; position < end; ++position) {
      copy_floats(data + position * part_, out + position * part_, part_);
      if (group == groups() || start_of_group(group) >= (position + 1) * part_) continue;
      if (!scatter_groups(args, group, group + 1)) return false;
      ++group;
    }
    return true;
  }

  // Lines begin..end-1; false when an index is out of range.
  template <ScatterReduction R, class Index>
  bool scatter(const KernelArgs& args, int64_t begin, int64_t end) const {
    const int64_t extent = lines_.extent(), stride = lines_.stride(), step = lines_.step(), length = lines_.length();
    for (int64_t line = begin; line < end; ++line) {
      const Index* indices = args.inputs[1].data<Index>() + line * length;
      const float* updates = args.inputs[2].data<float>() + line * length;
      float* out = args.outputs[0].mutable_data<float>() + lines_.start(line);
      for (int64_t i = 0; i < length; ++i) {
        auto index = static_cast<int64_t>(indices[i]);
        if (index < 0) index += extent;
        if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(extent)) return false;
        float& element = out[index * stride + i * step];
        element = combine<R>(element, updates[i]);
      }
    }
    return true;
  }

  const IndexLines lines_;
  const int64_t elements_;
  const int64_t part_;  // elements that belong to one position of the axes before the indexed one
  const int copy_threads_, threads_, fused_threads_;
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
