// resize with mode linear or cubic, in any layout: one pass per axis, through scratch memory.
#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/known_inputs.h"
#include "backends/cpu/threads/parallel.h"
#include "backends/cpu/vision/resize_layouts.h"
#include "backends/cpu/vision/resize_pass.h"
#include "ops/defs.h"

namespace autograph {
namespace {

// The axes to resize in the order that does the least work: while the tensor is small. Among those that grow the
// innermost comes first, as its elements are gathered one by one.
std::vector<size_t> pass_order(const std::vector<ResizeAxis>& axes, bool may_reorder) {
  std::vector<size_t> order;
  for (size_t a = 0; a < axes.size(); ++a) {
    if (!axes[a].is_identity()) order.push_back(a);
  }
  if (!may_reorder) return order;
  const auto shrinks = [&](size_t a) { return axes[a].out < axes[a].in; };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (shrinks(a) != shrinks(b)) return shrinks(a);
    return shrinks(a) ? a < b : a > b;
  });
  return order;
}

class ResizeKernel : public Kernel {
 public:
  explicit ResizeKernel(const KernelCall& call) {
    const std::vector<ResizeAxis> axes = axes_in_memory(call);
    // Extrapolated elements are inputs of the passes after theirs, and may be infinite.
    const bool crops = call.attributes.text("coordinate_transformation_mode") == "tf_crop_and_resize";
    const std::vector<size_t> order = pass_order(axes, !crops);
    const size_t untouched = order.empty() ? axes.size() : *std::min_element(order.begin(), order.end());
    Dims dims;
    for (size_t a = 0; a < axes.size(); ++a) {
      (a < untouched ? planes_ : in_plane_) *= axes[a].in;
      dims.push_back(axes[a].in);
    }
    int64_t work = 0;
    for (const size_t axis : order) {
      int64_t rows = 1, inner = 1;
      for (size_t a = untouched; a < dims.size(); ++a) {
        if (a != axis) (a < axis ? rows : inner) *= dims[a];
      }
      passes_.emplace_back(call.attributes, axes[axis], rows, inner);
      dims[axis] = axes[axis].out;
      work += planes_ * passes_.back().work();
      if (passes_.size() < order.size()) between_ = std::max(between_, passes_.back().outputs());
    }
    const int threads = useful_threads(call.threads, work);
    (planes_ >= threads ? plane_threads_ : pass_threads_) = threads;
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(plane_threads_ * buffers() * between_) * sizeof(float);
  }

  void run(const KernelArgs& args) const override {
    const float* in = args.inputs[0].data<float>();
    float* out = args.outputs[0].mutable_data<float>();
    if (passes_.empty()) {
      std::memcpy(out, in, args.inputs[0].size_bytes());
      return;
    }
    for_shares(plane_threads_, planes_, [&](int64_t begin, int64_t end, int thread) {
      float* scratch = static_cast<float*>(args.scratch) + thread * buffers() * between_;
      for (int64_t plane = begin; plane < end; ++plane) {
        resize_plane(in + plane * in_plane_, out + plane * passes_.back().outputs(), scratch);
      }
    });
  }

 private:
  int64_t buffers() const { return passes_.size() > 2 ? 2 : 1; }

  void resize_plane(const float* in, float* out, float* scratch) const {
    for (size_t k = 0; k < passes_.size(); ++k) {
      float* to = k + 1 == passes_.size() ? out : scratch + (k % 2 == 0 ? 0 : between_);
      passes_[k].run(in, to, pass_threads_);
      in = to;
    }
  }

  std::vector<ResizePass> passes_;
  int64_t planes_ = 1;    // of the axes before the first that is resized
  int64_t in_plane_ = 1;  // elements
  int64_t between_ = 0;   // most elements between two passes
  int plane_threads_ = 1;
  int pass_threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  if (call.attributes.text("mode") == "nearest") return "mode nearest";
  for (const int64_t extent : call.input_dims(0)) {
    if (extent > std::numeric_limits<int32_t>::max()) return "an axis of more than 2^31 elements";
  }
  if (call.inputs[0].dtype() != DType::f32) return "an input of another dtype than f32";
  if (call.outputs[0].shape().num_elements() == 0) return "a tensor without elements";
  return why_not_known(call, {1, 2, 3}, "roi, scales or sizes");
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<ResizeKernel>(call), ""}; }

// What lies along the innermost axis is gathered element by element where that axis is resized.
std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kBytesPerUs = 4e3;
  constexpr double kGain = 1.5;
  return resize_variants(call, kBytesPerUs, kGain);
}

}  // namespace

KernelDef resize_kernel() {
  return {.name = "cpu.resize", .op = resize_def().name, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace autograph
