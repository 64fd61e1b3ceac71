// Every elementwise op, by its own scalar formula: rows with fixed steps, prepared once.
//
// Adjacent dims are merged as long as every input walks through them evenly, so that dense operands become one row and
// a bias over channels becomes rows as long as the plane. In place is fine: each output element depends on the input
// elements at its own position alone.
#include <array>
#include <numeric>

#include "backends/cpu/cpu_kernels.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

constexpr size_t kMaxInputs = 8;
constexpr size_t kMaxRank = 8;

struct Axis {
  int64_t extent = 1;
  std::array<int64_t, kMaxInputs> strides{};  // in elements; 0 where an input broadcasts
};

// Do all inputs walk from the end of `inner` to the next step of `outer` without a jump?
bool can_merge(const Axis& outer, const Axis& inner, size_t num_inputs) {
  for (size_t k = 0; k < num_inputs; ++k) {
    if (outer.strides[k] != inner.strides[k] * inner.extent) return false;
  }
  return true;
}

// The axes of the output, innermost last, extents of 1 dropped and adjacent axes merged; at least one.
std::vector<Axis> plan_axes(const KernelCall& call) {
  const Dims out = call.output_dims(0);
  std::vector<Axis> all(out.size());
  for (size_t a = 0; a < out.size(); ++a) all[a].extent = out[a];
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    if (!call.has_input(k)) continue;
    const Dims in = call.input_dims(k);
    int64_t stride = 1;
    for (size_t a = in.size(); a-- > 0;) {
      if (in[a] != 1) all[a + out.size() - in.size()].strides[k] = stride;
      stride *= in[a];
    }
  }
  std::vector<Axis> axes;
  for (const Axis& axis : all) {
    if (axis.extent == 1) continue;
    if (!axes.empty() && can_merge(axes.back(), axis, call.inputs.size())) {
      const int64_t extent = axes.back().extent * axis.extent;
      axes.back() = axis;
      axes.back().extent = extent;
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) axes.emplace_back();
  return axes;
}

ScalarLoop find_loop(const KernelCall& call) {
  std::vector<DType> dtypes;
  for (const Type& type : call.inputs) dtypes.push_back(type.dtype());
  return call.op.scalar(dtypes, call.outputs[0].dtype());
}

class ElementwiseKernel : public Kernel {
 public:
  ElementwiseKernel(const KernelCall& call, std::vector<Axis> axes)
      : loop_(find_loop(call)), attributes_(call.attributes), axes_(std::move(axes)), num_inputs_(call.inputs.size()) {
    for (size_t k = 0; k < num_inputs_; ++k) {
      element_bytes_[k] = call.has_input(k) ? static_cast<int64_t>(element_size(call.inputs[k].dtype())) : 0;
    }
    row_ = axes_.back();
    row_bytes_ = row_.extent * static_cast<int64_t>(element_size(call.outputs[0].dtype()));
    axes_.pop_back();
    for (const Axis& axis : axes_) num_rows_ *= axis.extent;
    if (row_.extent == 0) num_rows_ = 0;
  }

  std::vector<uint32_t> in_place_inputs() const override {
    std::vector<uint32_t> all(num_inputs_);
    std::iota(all.begin(), all.end(), 0U);
    return all;
  }

  void run(const KernelArgs& args) const override {
    std::array<const void*, kMaxInputs> pointers{};
    for (size_t k = 0; k < num_inputs_; ++k) pointers[k] = args.inputs[k].raw();
    char* out = args.outputs[0].mutable_data<char>();
    std::array<int64_t, kMaxRank> index{};
    for (int64_t r = 0; r < num_rows_; ++r) {
      loop_(attributes_, {pointers.data(), num_inputs_}, {row_.strides.data(), num_inputs_}, out, row_.extent);
      out += row_bytes_;
      advance(pointers, index);
    }
  }

 private:
  // Moves to the next row: one step on the innermost outer axis, with carries.
  void advance(std::array<const void*, kMaxInputs>& pointers, std::array<int64_t, kMaxRank>& index) const {
    for (size_t a = axes_.size(); a-- > 0;) {
      const bool carries = ++index[a] == axes_[a].extent;
      const int64_t steps = carries ? 1 - axes_[a].extent : 1;
      for (size_t k = 0; k < num_inputs_; ++k) {
        pointers[k] = static_cast<const char*>(pointers[k]) + steps * axes_[a].strides[k] * element_bytes_[k];
      }
      if (!carries) return;
      index[a] = 0;
    }
  }

  const ScalarLoop loop_;
  const Attributes& attributes_;
  std::vector<Axis> axes_;  // all but the row
  Axis row_;
  const size_t num_inputs_;
  std::array<int64_t, kMaxInputs> element_bytes_{};
  int64_t row_bytes_ = 0;
  int64_t num_rows_ = 1;
};

std::string why_not(const KernelCall& call) {
  if (!call.op.scalar) return "not an elementwise op";
  if (call.inputs.size() > kMaxInputs) return "more than 8 inputs";
  if (!find_loop(call)) return "no formula for these dtypes";
  if (plan_axes(call).size() > kMaxRank) return "more than 8 dims that do not merge";
  return "";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<ElementwiseKernel>(call, plan_axes(call)), ""}; }

// Where all operands are scalars or have the dims of the output, the order of the elements does not matter. Blocked
// layouts only without padding, which the formula might make other than zero.
std::vector<KernelVariant> variants(const KernelCall& call) {
  double bytes = 0;
  for (const auto& types : {call.inputs, call.outputs}) {
    for (const Type& type : types) bytes += type.is_tensor() ? static_cast<double>(size_of(type)) : 0;
  }
  const double us = 1 + bytes / 6e3;
  std::vector<KernelVariant> result{{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
  const Dims out = call.output_dims(0);
  std::vector<bool> is_full(call.inputs.size(), false);
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    if (!call.has_input(k) || call.inputs[k].shape().num_elements() == 1) continue;
    if (call.input_dims(k) != out || call.inputs[k].dtype() != DType::f32) return result;
    is_full[k] = true;
  }
  if (call.outputs[0].dtype() != DType::f32) return result;
  for (const Layout layout : {Layout::channels_last, Layout::blocked8, Layout::blocked16}) {
    if (!fits_rank(layout, out.size()) || out[1] % channel_block(layout) != 0) continue;
    std::vector<Layout> inputs;
    for (const bool full : is_full) inputs.push_back(full ? layout : Layout::row_major);
    result.push_back({.name = "", .inputs = inputs, .outputs = {layout}, .cost_us = us});
  }
  return result;
}

}  // namespace

KernelDef elementwise_kernel() {
  return {.name = "cpu.elementwise", .op = "", .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace autograph
