// lstm, gru and rnn in f32 with their usual activation functions: recurrent_layer.h with weights packed as floats.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/recurrent/recurrent_cells.h"
#include "backends/cpu/simd/recurrent/recurrent_layer.h"
#include "ops/defs.h"
#include "runtime/memory/packed_constants.h"

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

class RecurrentKernel : public Kernel {
 public:
  explicit RecurrentKernel(const KernelCall& call)
      : packing_(RecurrentExtents(call, call.input_dims(kR)[2])), layer_(call, packing_.e, {}, /*speed=*/1) {
    const Tensor* w = call.constant(kW);
    const Tensor* r = call.constant(kR);
    if (!w || !r) return;
    packed_ = PackedConstants::share(call.packed, {*w, *r}, fmt::format("recurrent_simd {}", packing_.e.gates), [&] {
      std::vector<float> scratch(static_cast<size_t>(packing_.scratch_size()));
      Tensor packed = Tensor::empty(DType::f32, {packing_.size()});
      packing_.pack(w->data<float>(), r->data<float>(), scratch.data(), packed.mutable_data<float>());
      return packed;
    });
  }

  size_t scratch_bytes() const override {
    const int64_t packing = packed_ ? 0 : packing_.size() + packing_.scratch_size();
    return layer_.scratch_bytes() + static_cast<size_t>(packing) * sizeof(float);
  }
  size_t weight_bytes() const override { return packed_ ? packed_->size_bytes() : 0; }
  bool reads_input(size_t slot) const override { return !packed_ || (slot != kW && slot != kR); }

  void run(const KernelArgs& args) const override {
    auto* const scratch = static_cast<float*>(args.scratch);
    const float* packed = packed_ ? packed_->data<float>() : nullptr;
    if (!packed) {
      float* const to = scratch + layer_.scratch_bytes() / sizeof(float);
      packing_.pack(args.inputs[kW].data<float>(), args.inputs[kR].data<float>(), to + packing_.size(), to);
      packed = to;
    }
    layer_.run(args, FloatWeights(packing_, packed), scratch);
  }

 private:
  const FloatPacking packing_;
  const RecurrentLayer layer_;
  std::shared_ptr<const Tensor> packed_;  // null: the weights are not known before the run
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<RecurrentKernel>(call), ""}; }

}  // namespace

std::vector<KernelDef> recurrent_kernels() {
  return {{"cpu.lstm_simd", lstm_def().name, why_not_recurrent, prepare},
          {"cpu.gru_simd", gru_def().name, why_not_recurrent, prepare},
          {"cpu.rnn_simd", rnn_def().name, why_not_recurrent, prepare}};
}

}  // namespace autograph::simd
