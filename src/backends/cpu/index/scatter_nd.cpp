// scatter_nd in f32: a copy, then slice by slice in the order of the tuples; every index is checked before.
//
// Threads share the elements of a slice, or the output where slices are short: then each looks at all tuples and
// takes those that point into its part. Either way the updates of one element meet in order, so that the result is
// the same for any number of threads, and no two of them write to one place. Where there are fewer updates than
// elements to copy, each thread updates the part of the output that it has just copied, too.
#include <cstring>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "ops/index/nd_index.h"
#include "ops/index/scatter_reduction.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

// Elements of a slice that are worth a share of their own: some lines of the cache.
constexpr int64_t kShareOfSlice = 64;
// Slices of the output for each thread, so that the shares are about equal.
constexpr int64_t kSlicesPerThread = 8;

template <ScatterReduction R>
void combine_run(float* out, const float* updates, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = combine<R>(out[i], updates[i]);
}

class ScatterNdKernel : public Kernel {
 public:
  explicit ScatterNdKernel(const KernelCall& call) : elements_(call.outputs[0].shape().num_elements().value()) {
    const Dims data = call.input_dims(0), indices = call.input_dims(1);
    const std::vector<int64_t> strides = dense_strides(data);
    const auto depth = static_cast<size_t>(indices.back());
    for (size_t a = 0; a < depth; ++a) axes_.push_back({data[a], strides[a]});
    for (size_t a = depth; a < data.size(); ++a) length_ *= data[a];
    for (size_t a = 0; a + 1 < indices.size(); ++a) tuples_ *= indices[a];
    copy_threads_ = useful_threads(call.threads, elements_);
    threads_ = useful_threads(call.threads, tuples_ * length_);
    fused_threads_ = useful_threads(call.threads, elements_ + tuples_ * length_);
    // The updates may all meet in one thread's part.
    may_fuse_ = tuples_ * length_ <= elements_ / 2 && elements_ / length_ >= kSlicesPerThread * fused_threads_;
    dispatch_reduction(call.attributes.text("reduction"), [&]<ScatterReduction R>() { combine_ = &combine_run<R>; });
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(tuples_) * sizeof(int64_t); }
  std::vector<uint32_t> in_place_inputs() const override { return {0}; }

  void run(const KernelArgs& args) const override {
    auto* const starts = static_cast<int64_t*>(args.scratch);
    if (!find_starts(args.inputs[1].data<int64_t>(), starts)) {
      resolve_nd(scatter_nd_def().name, args.inputs[0], args.inputs[1], 0);
    }
    const float* data = args.inputs[0].data<float>();
    const float* updates = args.inputs[2].data<float>();
    float* out = args.outputs[0].mutable_data<float>();
    if (data != out && may_fuse_) {
      for_shares(fused_threads_, elements_ / length_, [&](int64_t begin, int64_t end, int) {
        copy(data, out, begin * length_, end * length_);
        combine_part(starts, updates, begin * length_, end * length_, out);
      });
      return;
    }
    if (data != out) {
      for_shares(copy_threads_, elements_, [&](int64_t begin, int64_t end, int) { copy(data, out, begin, end); });
    }
    if (length_ >= threads_ * kShareOfSlice) {
      for_shares(threads_, length_, [&](int64_t begin, int64_t end, int) {
        for (int64_t k = 0; k < tuples_; ++k) {
          combine_(out + starts[k] + begin, updates + k * length_ + begin, end - begin);
        }
      });
      return;
    }
    for_shares(threads_, elements_ / length_, [&](int64_t begin, int64_t end, int) {
      combine_part(starts, updates, begin * length_, end * length_, out);
    });
  }

 private:
  struct IndexedAxis {
    int64_t extent, stride;
  };

  static void copy(const float* data, float* out, int64_t begin, int64_t end) {
    std::memcpy(out + begin, data + begin, static_cast<size_t>(end - begin) * sizeof(float));
  }

  // The updates of elements begin..end-1, which are whole slices.
  void combine_part(const int64_t* starts, const float* updates, int64_t begin, int64_t end, float* out) const {
    for (int64_t k = 0; k < tuples_; ++k) {
      if (starts[k] >= begin && starts[k] < end) combine_(out + starts[k], updates + k * length_, length_);
    }
  }

  // Where the slice of each tuple begins; false when an index is out of range: resolve_nd() says which.
  bool find_starts(const int64_t* index, int64_t* starts) const {
    for (int64_t k = 0; k < tuples_; ++k) {
      starts[k] = 0;
      for (const IndexedAxis& axis : axes_) {
        if (*index < -axis.extent || *index >= axis.extent) return false;
        starts[k] += (*index < 0 ? *index + axis.extent : *index) * axis.stride;
        ++index;
      }
    }
    return true;
  }

  const int64_t elements_;
  std::vector<IndexedAxis> axes_;
  int64_t length_ = 1;  // of a slice
  int64_t tuples_ = 1;
  int copy_threads_ = 1, threads_ = 1, fused_threads_ = 1;
  bool may_fuse_ = false;
  void (*combine_)(float*, const float*, int64_t) = nullptr;
};

std::string why_not(const KernelCall& call) {
  if (call.inputs[0].dtype() != DType::f32) return "an input of another dtype than f32";
  for (const Type& input : call.inputs) {
    if (input.shape().num_elements() == 0) return "a tensor without elements";
  }
  return "";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<ScatterNdKernel>(call), ""}; }

}  // namespace

KernelDef scatter_nd_kernel() {
  return {.name = "cpu.scatter_nd", .op = scatter_nd_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph
