// Every elementwise op, by its own scalar formula: rows with fixed steps, prepared once.
//
// Adjacent dims are merged as long as every input walks through them evenly, so that dense operands become one row and
// a bias over channels becomes rows as long as the plane. In place is fine: each output element depends on the input
// elements at its own position alone.
#include <array>
#include <numeric>
#include <optional>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/simd/elementwise/broadcast_axes.h"
#include "backends/cpu/unpadded_layouts.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

std::vector<simd::BroadcastAxis> plan_axes(const KernelCall& call) {
  std::vector<std::optional<simd::BroadcastInput>> inputs(call.inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (call.has_input(k)) inputs[k] = simd::BroadcastInput{call.input_dims(k)};
  }
  return simd::broadcast_axes(call.output_dims(0), Layout::row_major, inputs);
}

ScalarLoop find_loop(const KernelCall& call) {
  std::vector<DType> dtypes;
  for (const Type& type : call.inputs) dtypes.push_back(type.dtype());
  return call.op.scalar(dtypes, call.outputs[0].dtype());
}

class ElementwiseKernel : public Kernel {
 public:
  ElementwiseKernel(const KernelCall& call, std::vector<simd::BroadcastAxis> axes)
      : loop_(find_loop(call)), attributes_(call.attributes), axes_(std::move(axes)), num_inputs_(call.inputs.size()) {
    for (size_t k = 0; k < num_inputs_; ++k) {
      element_bytes_[k] = call.has_input(k) ? static_cast<int64_t>(element_size(call.inputs[k].dtype())) : 0;
    }
    const int64_t elements = *call.outputs[0].shape().num_elements();
    row_bytes_ = axes_.back().extent * static_cast<int64_t>(element_size(call.outputs[0].dtype()));
    num_rows_ = elements == 0 ? 0 : elements / axes_.back().extent;
  }

  std::vector<uint32_t> in_place_inputs() const override {
    std::vector<uint32_t> all(num_inputs_);
    std::iota(all.begin(), all.end(), 0U);
    return all;
  }

  void run(const KernelArgs& args) const override {
    if (num_rows_ == 0) return;
    const simd::BroadcastAxis& row = axes_.back();
    char* out = args.outputs[0].mutable_data<char>();
    simd::RowCursor cursor(axes_, num_inputs_, 0);
    std::array<const void*, simd::kMaxInputs> pointers{};
    for (int64_t r = 0; r < num_rows_; ++r) {
      for (size_t k = 0; k < num_inputs_; ++k) {
        pointers[k] = static_cast<const char*>(args.inputs[k].raw()) + cursor.offset(k) * element_bytes_[k];
      }
      loop_(attributes_, {pointers.data(), num_inputs_}, {row.strides.data(), num_inputs_}, out, row.extent);
      out += row_bytes_;
      cursor.advance(1);
    }
  }

 private:
  const ScalarLoop loop_;
  const Attributes& attributes_;
  const std::vector<simd::BroadcastAxis> axes_;  // the last one is a row
  const size_t num_inputs_;
  std::array<int64_t, simd::kMaxInputs> element_bytes_{};
  int64_t row_bytes_ = 0;
  int64_t num_rows_ = 0;
};

std::string why_not(const KernelCall& call) {
  if (!call.op.scalar) return "not an elementwise op";
  if (call.inputs.size() > simd::kMaxInputs) return "more than 16 inputs";
  if (!find_loop(call)) return "no formula for these dtypes";
  if (plan_axes(call).size() > simd::kMaxAxes) return "more than 8 dims that do not merge";
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
  for (const Layout layout : unpadded_layouts(out)) {
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
