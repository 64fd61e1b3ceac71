// gru_gates_grad and rnn_gates_grad of f32. The sequences of a batch go their own ways, so every thread takes some of
// them from the last position to the first, and waits for nobody.
#include <algorithm>
#include <memory>

#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/recurrent/gates_walk.h"
#include "backends/cpu/simd/recurrent/turned_weights.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/recurrent/gru_gates_grad.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/recurrent/gate_lanes-inl.h"
#include "ops/defs.h"

// Seen by the code of every instruction set, so written once.
#ifndef AG_SIMD_GRU_GATES_GRAD
#define AG_SIMD_GRU_GATES_GRAD
namespace autograph::simd {

/// One sequence at one position: `hidden` elements, or as many for each gate z, r, n (and what r is multiplied with).
struct GruRow {
  const float* gates;
  const float* before;
  const float* gy;
  const float* product;  // from the position behind: what came through R ...
  float* carry;          // ... and beside it; read and written
  float* into_input;
  float* into_hidden;
  int64_t hidden;
};

/// The same of a plain layer.
struct RnnRow {
  const float* y;
  const float* gy;
  const float* product;
  float* sums;
  int64_t hidden;
};

}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace {

// Everything but the reset gate where that comes before R.
template <bool kLinear>
HWY_INLINE void gru_gradients(const GruRow& row) {
  const int64_t hidden = row.hidden;
  for_lanes(hidden, [&](const auto& load, const auto& store, int64_t at) HWY_ATTR {
    const GateV one = hn::Set(GateD(), 1.0F);
    const GateV z = load(row.gates + at), n = load(row.gates + 2 * hidden + at);
    const GateV flow = hn::Add(hn::Add(load(row.product + at), load(row.carry + at)), load(row.gy + at));
    const GateV into_z = hn::Mul(hn::Mul(flow, hn::Sub(load(row.before + at), n)), slope(z));
    const GateV into_n = hn::Mul(hn::NegMulAdd(flow, z, flow), hn::NegMulAdd(n, n, one));
    store(hn::Mul(flow, z), row.carry + at);
    store(into_z, row.into_input + at);
    store(into_n, row.into_input + 2 * hidden + at);
    store(into_z, row.into_hidden + at);
    if (!kLinear) return store(into_n, row.into_hidden + 2 * hidden + at);
    const GateV r = load(row.gates + hidden + at);
    const GateV into_r = hn::Mul(hn::Mul(into_n, load(row.gates + 3 * hidden + at)), slope(r));
    store(into_r, row.into_input + hidden + at);
    store(into_r, row.into_hidden + hidden + at);
    store(hn::Mul(into_n, r), row.into_hidden + 2 * hidden + at);
  });
}

void linear_gradients(const GruRow& row) { gru_gradients<true>(row); }
void other_gradients(const GruRow& row) { gru_gradients<false>(row); }

// The reset gate; the product is that of the candidate's rows.
void reset_gradients(const GruRow& row) {
  for_lanes(row.hidden, [&](const auto& load, const auto& store, int64_t at) HWY_ATTR {
    const GateV r = load(row.gates + row.hidden + at), flow = load(row.product + at);
    const GateV into_r = hn::Mul(hn::Mul(flow, load(row.before + at)), slope(r));
    store(hn::MulAdd(flow, r, load(row.carry + at)), row.carry + at);
    store(into_r, row.into_input + row.hidden + at);
    store(into_r, row.into_hidden + row.hidden + at);
  });
}

void rnn_gradients(const RnnRow& row) {
  for_lanes(row.hidden, [&](const auto& load, const auto& store, int64_t at) HWY_ATTR {
    const GateV y = load(row.y + at), flow = hn::Add(load(row.product + at), load(row.gy + at));
    store(hn::Mul(flow, hn::NegMulAdd(y, y, hn::Set(GateD(), 1.0F))), row.sums + at);
  });
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(linear_gradients);
HWY_EXPORT(other_gradients);
HWY_EXPORT(reset_gradients);
HWY_EXPORT(rnn_gradients);

class GruGatesGradient : public Kernel {
 public:
  explicit GruGatesGradient(const KernelCall& call)
      : walk_(call, call.input_dims(2)),
        linear_(call.attributes.flag("linear_before_reset")),
        weights_((linear_ ? kGates : kGates - 1) * walk_.hidden, walk_.hidden),
        candidate_(walk_.hidden, walk_.hidden) {}

  size_t scratch_bytes() const override {
    const int64_t candidate = linear_ ? 0 : candidate_.packed_size();
    return static_cast<size_t>(weights_.packed_size() + candidate + weights_.scratch_size() + 2 * states_size()) *
           sizeof(float);
  }

  void run(const KernelArgs& args) const override {
    auto* const packed = static_cast<float*>(args.scratch);
    float* const of_candidate = packed + weights_.packed_size();
    float* const packing = of_candidate + (linear_ ? 0 : candidate_.packed_size());
    const auto* const r = args.inputs[1].data<float>();
    weights_.pack(r, packing, packed);
    if (!linear_) candidate_.pack(r + 2 * walk_.hidden * walk_.hidden, packing, of_candidate);
    const States states{packed, of_candidate, packing + weights_.scratch_size(),
                        packing + weights_.scratch_size() + states_size()};
    std::fill_n(states.product, 2 * states_size(), 0.0F);
    walk_.go_back([&](int64_t row, int64_t begin, int64_t end) { run_position(args, states, row, begin, end); });
    float* const first = args.outputs[2].mutable_data<float>();
    for (int64_t b = 0; b < walk_.batch; ++b) {
      const int64_t from = b * weights_.padded();
      for (int64_t j = 0; j < walk_.hidden; ++j) {
        first[b * walk_.hidden + j] = states.product[from + j] + states.carry[from + j];
      }
    }
  }

 private:
  static constexpr int64_t kGates = 3;

  struct States {
    const float* packed;
    const float* of_candidate;  // where the reset gate comes before R
    float* product;             // [batch, padded]: what flows into h through R ...
    float* carry;               // ... and beside it
  };

  int64_t states_size() const { return walk_.batch * weights_.padded(); }

  GruRow row_of(const KernelArgs& args, const States& states, int64_t row, int64_t b) const {
    const int64_t hidden = walk_.hidden, at = row + b;
    return {args.inputs[0].data<float>() + at * (linear_ ? kGates + 1 : kGates) * hidden,
            args.inputs[2].data<float>() + at * hidden,
            args.inputs[3].data<float>() + at * hidden,
            states.product + b * weights_.padded(),
            states.carry + b * weights_.padded(),
            args.outputs[0].mutable_data<float>() + at * kGates * hidden,
            args.outputs[1].mutable_data<float>() + at * kGates * hidden,
            hidden};
  }

  void run_position(const KernelArgs& args, const States& states, int64_t row, int64_t begin, int64_t end) const {
    for (int64_t b = begin; b < end; ++b) {
      const GruRow each = row_of(args, states, row, b);
      linear_ ? HWY_DYNAMIC_DISPATCH(linear_gradients)(each) : HWY_DYNAMIC_DISPATCH(other_gradients)(each);
    }
    float* const product = states.product + begin * weights_.padded();
    const GateFlow flow{row_of(args, states, row, begin).into_hidden, kGates * walk_.hidden, end - begin};
    if (!linear_) {
      candidate_.multiply(states.of_candidate, {flow.values + 2 * walk_.hidden, flow.stride, flow.count}, product);
      for (int64_t b = begin; b < end; ++b) HWY_DYNAMIC_DISPATCH(reset_gradients)(row_of(args, states, row, b));
    }
    weights_.multiply(states.packed, flow, product);
  }

  const GatesWalk walk_;
  const bool linear_;
  const TurnedWeights weights_;    // all rows of R, or those of z and r alone, ...
  const TurnedWeights candidate_;  // ... where the candidate's see the state behind the reset gate
};

class RnnGatesGradient : public Kernel {
 public:
  explicit RnnGatesGradient(const KernelCall& call)
      : walk_(call, call.input_dims(0)), weights_(walk_.hidden, walk_.hidden) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(weights_.packed_size() + weights_.scratch_size() + walk_.batch * weights_.padded()) *
           sizeof(float);
  }

  void run(const KernelArgs& args) const override {
    auto* const packed = static_cast<float*>(args.scratch);
    float* const packing = packed + weights_.packed_size();
    float* const product = packing + weights_.scratch_size();
    const int64_t hidden = walk_.hidden, padded = weights_.padded();
    weights_.pack(args.inputs[1].data<float>(), packing, packed);
    std::fill_n(product, walk_.batch * padded, 0.0F);
    float* const sums = args.outputs[0].mutable_data<float>();
    walk_.go_back([&](int64_t row, int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t at = (row + b) * hidden;
        HWY_DYNAMIC_DISPATCH(rnn_gradients)
        ({args.inputs[0].data<float>() + at, args.inputs[2].data<float>() + at, product + b * padded, sums + at,
          hidden});
      }
      weights_.multiply(packed, {sums + (row + begin) * hidden, hidden, end - begin}, product + begin * padded);
    });
    float* const first = args.outputs[1].mutable_data<float>();
    for (int64_t b = 0; b < walk_.batch; ++b) std::copy_n(product + b * padded, hidden, first + b * hidden);
  }

 private:
  const GatesWalk walk_;
  const TurnedWeights weights_;
};

template <class Gradient>
Prepared prepare(const KernelCall& call) {
  return {std::make_unique<Gradient>(call), ""};
}

}  // namespace

std::vector<KernelDef> recurrent_grad_kernels() {
  return {{"cpu.gru_gates_grad_simd", gru_gates_grad_def().name, why_not_f32, prepare<GruGatesGradient>},
          {"cpu.rnn_gates_grad_simd", rnn_gates_grad_def().name, why_not_f32, prepare<RnnGatesGradient>}};
}

}  // namespace autograph::simd
#endif
