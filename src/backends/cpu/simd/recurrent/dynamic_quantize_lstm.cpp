// dynamic_quantize_lstm: recurrent_layer.h with weights that stay packed as bytes (byte_gates.h).
#include <vector>

#include "backends/cpu/known_inputs.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/recurrent/byte_gates.h"
#include "backends/cpu/simd/recurrent/recurrent_layer.h"
#include "ops/defs.h"
#include "runtime/memory/packed_constants.h"

namespace autograph::simd {
namespace {

enum QuantizationSlot : size_t { kWScale = kPeepholes + 1, kWZero, kRScale, kRZero };

// The packed panels of W or R: [direction, block, gate].
class Panels {
 public:
  Panels(const KernelCall& call, const RecurrentExtents& e, bool of_hidden)
      : gates_(e.gates), blocks_(e.blocks), depth_(of_hidden ? e.hidden : e.input), size_(byte_panel_size(depth_)) {
    const Tensor& weights = *call.constant(of_hidden ? kR : kW);
    const Tensor& scales = *call.constant(of_hidden ? kRScale : kWScale);
    const Tensor& zeros = *call.constant(of_hidden ? kRZero : kWZero);
    packed_ = PackedConstants::share(call.packed, {weights, scales, zeros}, "dynamic_quantize_lstm_simd",
                                     [&] { return packed(e, weights, scales, zeros); });
  }

  int64_t depth() const { return depth_; }
  int64_t panel_size() const { return size_; }
  size_t size_bytes() const { return packed_->size_bytes(); }
  const uint8_t* at(const GateBlock& which) const {
    const int64_t panel = (which.direction * blocks_ + which.block) * gates_ + which.first_gate;
    return packed_->data<uint8_t>() + panel * size_;
  }

 private:
  Tensor packed(const RecurrentExtents& e, const Tensor& weights, const Tensor& scales, const Tensor& zeros) const {
    Tensor result = Tensor::empty(DType::u8, {e.directions * blocks_ * gates_ * size_});
    const bool per_column = scales.dims().size() == 2;
    const int64_t row = gates_ * e.hidden;
    uint8_t* to = result.mutable_data<uint8_t>();
    for (int64_t d = 0; d < e.directions; ++d) {
      for (int64_t unit = 0; unit < blocks_ * gates_; ++unit, to += size_) {
        const int64_t first = unit / gates_ * e.width, column = unit % gates_ * e.hidden + first;
        const int64_t scale = per_column ? d * row + column : d;
        pack_byte_panel({.bytes = static_cast<const uint8_t*>(weights.raw()) + d * depth_ * row + column,
                         .is_signed = weights.dtype() == DType::i8,
                         .row_stride = row,
                         .count = std::min(e.width, e.hidden - first),
                         .scales = scales.data<float>() + scale,
                         .scale_step = per_column ? 1 : 0,
                         .zeros = static_cast<const uint8_t*>(zeros.raw()) + scale},
                        depth_, to);
      }
    }
    return result;
  }

  int64_t gates_, blocks_, depth_, size_;
  std::shared_ptr<const Tensor> packed_;
};

class ByteWeights : public GateWeights {
 public:
  ByteWeights(const KernelCall& call, const RecurrentExtents& e)
      : width_(e.width), keeps_low_(call.exact), w_(call, e, /*of_hidden=*/false), r_(call, e, /*of_hidden=*/true) {}

  RowSizes row_sizes() const { return {byte_row_size(w_.depth()), byte_row_size(r_.depth())}; }
  size_t size_bytes() const { return w_.size_bytes() + r_.size_bytes(); }

  void prepare(const GateRows& rows, bool of_hidden, float* prepared) const override {
    prepare_byte_rows(rows, of(of_hidden).depth(), keeps_low_, prepared);
  }

  void multiply(const GateBlock& which, const GateRows& rows, float* c, int64_t c_stride) const override {
    const Panels& panels = of(which.of_hidden);
    const int64_t depth = panels.depth(), row_size = byte_row_size(depth);
    multiply_bytes({rows.prepared, rows.count, depth, panels.at(which), which.gates, c, c_stride});
    for (int64_t r = 0; r < rows.count; ++r) {
      if (is_finite_row(rows.prepared + r * row_size)) continue;
      for (int64_t gate = 0; gate < which.gates; ++gate) {
        multiply_row_by_panel(rows.values + r * rows.stride, depth, panels.at(which) + gate * panels.panel_size(),
                              c + r * c_stride + gate * width_);
      }
    }
  }

 private:
  const Panels& of(bool of_hidden) const { return of_hidden ? r_ : w_; }

  int64_t width_;
  bool keeps_low_;
  Panels w_, r_;
};

class DynamicQuantizeLstmKernel : public Kernel {
 public:
  explicit DynamicQuantizeLstmKernel(const KernelCall& call)
      : extents_(call, call.input_dims(kR)[1]),
        weights_(call, extents_),
        layer_(call, extents_, weights_.row_sizes(), kSpeed) {}

  size_t scratch_bytes() const override { return layer_.scratch_bytes(); }
  size_t weight_bytes() const override { return weights_.size_bytes(); }
  bool reads_input(size_t slot) const override { return slot != kW && slot != kR && slot < kWScale; }
  void run(const KernelArgs& args) const override { layer_.run(args, weights_, static_cast<float*>(args.scratch)); }

 private:
  // With VNNI two instructions of four products each do the work of four, else one of two does that of two.
  static constexpr int64_t kSpeed = 2;

  const RecurrentExtents extents_;
  const ByteWeights weights_;
  const RecurrentLayer layer_;
};

std::string why_not(const KernelCall& call) {
  if (!has_byte_products()) return "no byte products on this CPU";
  if (std::string reason = why_not_known(call, {kW, kR, kWScale, kWZero, kRScale, kRZero}, "weights");
      !reason.empty()) {
    return reason;
  }
  if (call.input_dims(kX)[2] > kDeepestByteProduct || call.input_dims(kR)[1] > kDeepestByteProduct) {
    return "sums that may not fit 32 bits";
  }
  return why_not_recurrent(call);
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<DynamicQuantizeLstmKernel>(call), ""}; }

}  // namespace

KernelDef dynamic_quantize_lstm_kernel() {
  return {.name = "cpu.dynamic_quantize_lstm_simd",
          .op = dynamic_quantize_lstm_def().name,
          .why_not = why_not,
          .prepare = prepare};
}

}  // namespace autograph::simd
