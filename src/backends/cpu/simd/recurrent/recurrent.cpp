// lstm, gru and rnn in f32 with their usual activation functions: recurrent_layer.h with weights packed as floats.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/recurrent/recurrent_cells.h"
#include "backends/cpu/simd/recurrent/recurrent_layer.h"
#include "backends/cpu/weights_kernel.h"
#include "ops/defs.h"

namespace autograph::simd {
namespace {

// Where the packed weights of all directions begin.
struct FloatPacking {
  explicit FloatPacking(const RecurrentExtents& extents)
      : e(extents),
        w_size(packed_gates_size(e.gates, e.hidden, e.input)),
        r_size(packed_gates_size(e.gates, e.hidden, e.hidden)) {}

  int64_t size() const { return e.directions * (w_size + r_size); }
  /// What pack() needs besides.
  int64_t scratch_size() const { return e.width * std::max(e.input, e.hidden); }
  void pack(const float* w, const float* r, float* scratch, float* packed) const {
    for (int64_t d = 0; d < e.directions; ++d) {
      const int64_t rows = e.gates * e.hidden;
      pack_gates(w + d * rows * e.input, e.gates, e.hidden, e.input, scratch, packed + d * w_size);
      pack_gates(r + d * rows * e.hidden, e.gates, e.hidden, e.hidden, scratch,
                 packed + e.directions * w_size + d * r_size);
    }
  }
  /// Where the gates of a block begin.
  int64_t at(const GateBlock& which) const {
    const int64_t first = which.block * e.gates + which.first_gate;
    if (!which.of_hidden) return which.direction * w_size + first * e.width * e.input;
    return e.directions * w_size + which.direction * r_size + first * e.width * e.hidden;
  }

  RecurrentExtents e;
  int64_t w_size, r_size;
};

class FloatWeights : public GateWeights {
 public:
  FloatWeights(const FloatPacking& packing, const float* packed) : packing_(packing), packed_(packed) {}

  void multiply(const GateBlock& which, const GateRows& rows, float* c, int64_t c_stride) const override {
    const RecurrentExtents& e = packing_.e;
    multiply_gates({rows.values, rows.stride, rows.count, which.of_hidden ? e.hidden : e.input,
                    packed_ + packing_.at(which), which.gates, c, c_stride});
  }

 private:
  const FloatPacking& packing_;
  const float* packed_;
};

class RecurrentKernel : public WeightsKernel {
 public:
  explicit RecurrentKernel(const KernelCall& call)
      : packing_(RecurrentExtents(call, call.input_dims(kR)[2])), layer_(call, packing_.e, {}, /*speed=*/1) {
    if (!call.constant(kW) || !call.constant(kR)) return;
    packed_ = &packed(call, {KnownWeight::of(call, kW), KnownWeight::of(call, kR)}, form());
  }

  size_t scratch_bytes() const override {
    const int64_t packing = packed_ ? 0 : packing_.size() + packing_.scratch_size();
    return layer_.scratch_bytes() + static_cast<size_t>(packing) * sizeof(float);
  }
  bool reads_input(size_t slot) const override { return !packed_ || (slot != kW && slot != kR); }

  void run(const KernelArgs& args) const override {
    auto* const scratch = static_cast<float*>(args.scratch);
    const float* packed = packed_ ? packed_->data() : nullptr;
    if (!packed) {
      float* const to = scratch + layer_.scratch_bytes() / sizeof(float);
      packing_.pack(args.inputs[kW].data<float>(), args.inputs[kR].data<float>(), to + packing_.size(), to);
      packed = to;
    }
    layer_.run(args, FloatWeights(packing_, packed), scratch);
  }

 private:
  WeightForm form() const {
    const auto pack = [this](const std::vector<Tensor>& elements, float* to) {
      std::vector<float> scratch(static_cast<size_t>(packing_.scratch_size()));
      packing_.pack(elements[0].data<float>(), elements[1].data<float>(), scratch.data(), to);
    };
    return {fmt::format("recurrent_simd {}", packing_.e.gates), packing_.size(), pack};
  }

  const FloatPacking packing_;
  const RecurrentLayer layer_;
  const PackedWeights* packed_ = nullptr;  // null: the weights are not known before the run
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<RecurrentKernel>(call), ""}; }

}  // namespace

std::vector<KernelDef> recurrent_kernels() {
  return {{"cpu.lstm_simd", lstm_def().name, why_not_recurrent, prepare},
          {"cpu.gru_simd", gru_def().name, why_not_recurrent, prepare},
          {"cpu.rnn_simd", rnn_def().name, why_not_recurrent, prepare}};
}

}  // namespace autograph::simd
