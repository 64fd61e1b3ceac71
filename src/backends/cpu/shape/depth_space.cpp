// depth_to_space and space_to_depth: each row of the wide tensor is woven from `block` rows of the deep one, or taken
// apart into them.
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "ops/shape/copy_elements.h"
#include "ops/vision/depth_space_blocks.h"

namespace autograph {
namespace {

// Elements of a size that has an integer type move as such: that vectorises.
template <class T>
struct MovedAs {
  using Type = T;
};
template <>
struct MovedAs<ElementBytes<2>> {
  using Type = uint16_t;
};
template <>
struct MovedAs<ElementBytes<4>> {
  using Type = uint32_t;
};

// One row of the wide tensor and the rows of the deep one, `next` apart, that it is made of.
template <class T, bool kToSpace>
void move_row(const T* in, T* out, int64_t block, int64_t next, int64_t columns) {
  if (block == 2) {
    for (int64_t i = 0; i < columns; ++i) {
      out[kToSpace ? 2 * i : i] = in[kToSpace ? i : 2 * i];
      out[kToSpace ? 2 * i + 1 : next + i] = in[kToSpace ? next + i : 2 * i + 1];
    }
    return;
  }
  for (int64_t b = 0; b < block; ++b) {
    for (int64_t i = 0; i < columns; ++i) {
      out[kToSpace ? i * block + b : b * next + i] = in[kToSpace ? b * next + i : i * block + b];
    }
  }
}

template <bool kToSpace>
class DepthSpaceKernel : public Kernel {
 public:
  explicit DepthSpaceKernel(const KernelCall& call)
      : blocks_(make_depth_space_blocks(kToSpace ? call.output_dims(0) : call.input_dims(0),
                                        call.attributes.integer("blocksize"), call.attributes.text("mode") == "CRD")) {
    const Dims& dims = blocks_.dims;
    rows_ = dims[0] * dims[1] * dims[2] * dims[4];
    threads_ = useful_threads(call.threads, rows_ * dims[3] * dims[5]);
  }

  void run(const KernelArgs& args) const override {
    dispatch_storage(args.inputs[0].dtype(), [&]<class T>() {
      using Moved = typename MovedAs<T>::Type;
      if constexpr (!std::is_same_v<T, std::string>) {
        move_rows(args.inputs[0].data<Moved>(), args.outputs[0].mutable_data<Moved>());
      }
    });
  }

 private:
  template <class T>
  void move_rows(const T* in, T* out) const {
    const Dims& dims = blocks_.dims;
    for_shares(threads_, rows_, [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        // Rows of the wide tensor in order.
        int64_t deep = 0, wide = 0, rest = r;
        for (const size_t axis : {2, 4, 1, 0}) {
          const int64_t index = rest % dims[axis];
          rest /= dims[axis];
          deep += index * blocks_.deep[axis];
          wide += index * blocks_.wide[axis];
        }
        move_row<T, kToSpace>(in + (kToSpace ? deep : wide), out + (kToSpace ? wide : deep), dims[3], blocks_.deep[3],
                              dims[5]);
      }
    });
  }

  const DepthSpaceBlocks blocks_;
  int64_t rows_ = 0;  // of the wide tensor
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  if (call.inputs[0].dtype() == DType::string) return "strings";
  return call.inputs[0].shape().num_elements() == 0 ? "a tensor without elements" : "";
}

template <bool kToSpace>
Prepared prepare(const KernelCall& call) {
  return {std::make_unique<DepthSpaceKernel<kToSpace>>(call), ""};
}

}  // namespace

std::vector<KernelDef> depth_space_kernels() {
  return {
      {"cpu.depth_to_space", depth_to_space_def().name, why_not, prepare<true>},
      {"cpu.space_to_depth", space_to_depth_def().name, why_not, prepare<false>},
  };
}

}  // namespace autograph
