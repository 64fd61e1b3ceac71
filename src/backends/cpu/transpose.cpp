// transpose: axes that stay neighbours are merged; a last axis that stays last moves as blocks, others element by
// element in tiles that stay in cache.
#include <algorithm>
#include <cstring>

#include "backends/cpu/cpu_kernels.h"

namespace autograph {
namespace {

struct Axis {
  int64_t extent = 1;
  int64_t stride = 1;  // in elements of the input
};

// Axes of the output with their strides in the input; neighbours that walk evenly are one.
std::vector<Axis> plan_axes(const KernelCall& call) {
  const Dims in = call.input_dims(0);
  std::vector<int64_t> perm = call.attributes.get_or<std::vector<int64_t>>("perm", {});
  if (perm.empty()) {
    for (size_t a = in.size(); a-- > 0;) perm.push_back(static_cast<int64_t>(a));
  }
  std::vector<int64_t> strides(in.size(), 1);
  for (size_t a = in.size(); a-- > 1;) strides[a - 1] = strides[a] * in[a];
  std::vector<Axis> axes;
  for (int64_t source : perm) {
    if (source < 0) source += static_cast<int64_t>(in.size());
    const Axis axis{in[static_cast<size_t>(source)], strides[static_cast<size_t>(source)]};
    if (axis.extent == 1) continue;
    if (!axes.empty() && axes.back().stride == axis.stride * axis.extent) {
      axes.back() = {axes.back().extent * axis.extent, axis.stride};
    } else {
      axes.push_back(axis);
    }
  }
  while (axes.size() < 2) axes.insert(axes.begin(), Axis{1, 0});
  return axes;
}

// One plane of the output: rows x columns elements, read with the given strides.
template <class T>
void copy_plane(const T* in, T* out, const Axis& rows, const Axis& columns) {
  constexpr int64_t kTile = 32;
  for (int64_t r0 = 0; r0 < rows.extent; r0 += kTile) {
    const int64_t r1 = std::min(r0 + kTile, rows.extent);
    for (int64_t c0 = 0; c0 < columns.extent; c0 += kTile) {
      const int64_t c1 = std::min(c0 + kTile, columns.extent);
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = c0; c < c1; ++c) out[r * columns.extent + c] = in[r * rows.stride + c * columns.stride];
      }
    }
  }
}

void copy_plane_bytes(const char* in, char* out, const Axis& rows, const Axis& columns, int64_t element_bytes) {
  if (columns.stride == 1) {
    const auto block = static_cast<size_t>(columns.extent * element_bytes);
    for (int64_t r = 0; r < rows.extent; ++r) {
      std::memcpy(out + static_cast<size_t>(r) * block, in + r * rows.stride * element_bytes, block);
    }
    return;
  }
  struct Sixteen {
    uint64_t halves[2];
  };
  switch (element_bytes) {
    case 1: copy_plane(reinterpret_cast<const uint8_t*>(in), reinterpret_cast<uint8_t*>(out), rows, columns); break;
    case 2: copy_plane(reinterpret_cast<const uint16_t*>(in), reinterpret_cast<uint16_t*>(out), rows, columns); break;
    case 4: copy_plane(reinterpret_cast<const uint32_t*>(in), reinterpret_cast<uint32_t*>(out), rows, columns); break;
    case 8: copy_plane(reinterpret_cast<const uint64_t*>(in), reinterpret_cast<uint64_t*>(out), rows, columns); break;
    default: copy_plane(reinterpret_cast<const Sixteen*>(in), reinterpret_cast<Sixteen*>(out), rows, columns); break;
  }
}

class TransposeKernel : public Kernel {
 public:
  explicit TransposeKernel(const KernelCall& call)
      : axes_(plan_axes(call)), element_bytes_(static_cast<int64_t>(element_size(call.inputs[0].dtype()))) {}

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].num_elements() == 0) return;
    char* out = args.outputs[0].mutable_data<char>();
    copy_from(0, args.inputs[0].data<char>(), out);
  }

 private:
  // Copies everything below `axis`; recursion is as deep as the merged rank.
  void copy_from(size_t axis, const char* in, char*& out) const {
    if (axis + 2 == axes_.size()) {
      copy_plane_bytes(in, out, axes_[axis], axes_[axis + 1], element_bytes_);
      out += axes_[axis].extent * axes_[axis + 1].extent * element_bytes_;
      return;
    }
    for (int64_t i = 0; i < axes_[axis].extent; ++i) {
      copy_from(axis + 1, in + i * axes_[axis].stride * element_bytes_, out);
    }
  }

  const std::vector<Axis> axes_;
  const int64_t element_bytes_;
};

std::string why_not(const KernelCall& call) { return call.inputs[0].dtype() == DType::string ? "strings" : ""; }

Prepared prepare(const KernelCall& call) { return {std::make_unique<TransposeKernel>(call), ""}; }

}  // namespace

KernelDef transpose_kernel() {
  return {.name = "cpu.transpose", .op = "transpose", .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph
