// lstm_gates_grad of f32. The sequences of a batch go their own ways, so every thread takes some of them from the first
// position to the last for the cells, and back again for the gradients, and waits for nobody.
#include <algorithm>
#include <memory>

#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/recurrent/gates_walk.h"
#include "backends/cpu/simd/recurrent/turned_weights.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/recurrent/lstm_gates_grad.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/recurrent/gate_lanes-inl.h"
#include "backends/cpu/simd/vector_math-inl.h"
#include "ops/defs.h"

// Seen by the code of every instruction set, so written once.
#ifndef AG_SIMD_LSTM_GATES_GRAD
#define AG_SIMD_LSTM_GATES_GRAD
namespace autograph::simd {

/// One sequence at one position: gates i, o, f, c of `hidden` elements each.
struct GatesRow {
  const float* sums;
  const float* gy;
  const float* gh;  // from the position behind
  float* gc;        // read and written
  float* gsums;
  int64_t hidden;
};

}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace {

// c goes on by a position.
void next_cells(const float* sums, int64_t hidden, const float* c, float* next) {
  for_lanes(hidden, [&](const auto& load, const auto& store, int64_t at) HWY_ATTR {
    const GateD d;
    const GateV i = sigmoid(d, load(sums + at)), f = sigmoid(d, load(sums + 2 * hidden + at));
    const GateV n = tanh(d, load(sums + 3 * hidden + at));
    store(hn::MulAdd(f, load(c + at), hn::Mul(i, n)), next + at);
  });
}

// `c`: before the position.
void gate_gradients(const GatesRow& row, const float* c) {
  const int64_t hidden = row.hidden;
  for_lanes(hidden, [&](const auto& load, const auto& store, int64_t at) HWY_ATTR {
    const GateD d;
    const GateV one = hn::Set(d, 1.0F);
    const GateV i = sigmoid(d, load(row.sums + at)), o = sigmoid(d, load(row.sums + hidden + at));
    const GateV f = sigmoid(d, load(row.sums + 2 * hidden + at)), n = tanh(d, load(row.sums + 3 * hidden + at));
    const GateV before = load(c + at), y = tanh(d, hn::MulAdd(f, before, hn::Mul(i, n)));
    const GateV gh = hn::Add(load(row.gh + at), load(row.gy + at));
    const GateV gc = hn::MulAdd(hn::Mul(gh, o), hn::NegMulAdd(y, y, one), load(row.gc + at));
    store(hn::Mul(hn::Mul(gc, n), slope(i)), row.gsums + at);
    store(hn::Mul(hn::Mul(gh, y), slope(o)), row.gsums + hidden + at);
    store(hn::Mul(hn::Mul(gc, before), slope(f)), row.gsums + 2 * hidden + at);
    store(hn::Mul(hn::Mul(gc, i), hn::NegMulAdd(n, n, one)), row.gsums + 3 * hidden + at);
    store(hn::Mul(gc, f), row.gc + at);
  });
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(next_cells);
HWY_EXPORT(gate_gradients);

constexpr int64_t kGates = 4;

class LstmGatesGradient : public Kernel {
 public:
  explicit LstmGatesGradient(const KernelCall& call)
      : walk_(call, call.input_dims(3)), weights_(kGates * walk_.hidden, walk_.hidden) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(weights_.packed_size() + weights_.scratch_size() + cells_size() +
                               weights_.padded() * walk_.batch) *
           sizeof(float);
  }

  void run(const KernelArgs& args) const override {
    auto* packed = static_cast<float*>(args.scratch);
    float* packing = packed + weights_.packed_size();
    weights_.pack(args.inputs[1].data<float>(), packing, packed);
    float* cells = packing + weights_.scratch_size();
    const Buffers buffers{packed, cells, cells + cells_size()};
    walk_.for_sequences([&](int64_t begin, int64_t end) { run_sequences(args, buffers, begin, end); });
  }

 private:
  struct Buffers {
    const float* packed;
    float* cells;  // before each position, [length, batch, hidden]
    float* gh;     // [batch, padded]
  };

  int64_t rows() const { return kGates * walk_.hidden; }
  int64_t cells_size() const { return walk_.length * walk_.batch * walk_.hidden; }

  void run_sequences(const KernelArgs& args, const Buffers& buffers, int64_t begin, int64_t end) const {
    const float* sums = args.inputs[0].data<float>();
    const float* gy = args.inputs[3].data<float>();
    float* gsums = args.outputs[0].mutable_data<float>();
    float* gc = args.outputs[2].mutable_data<float>();
    const int64_t first = begin * walk_.hidden, count = (end - begin) * walk_.hidden, padded = weights_.padded();
    std::copy_n(args.inputs[2].data<float>() + first, count, buffers.cells + first);
    for (int64_t t = 0; t + 1 < walk_.length; ++t) {
      for (int64_t b = begin; b < end; ++b) {
        const float* c = buffers.cells + (t * walk_.batch + b) * walk_.hidden;
        HWY_DYNAMIC_DISPATCH(next_cells)
        (sums + (walk_.row(t) + b) * rows(), walk_.hidden, c, const_cast<float*>(c) + walk_.batch * walk_.hidden);
      }
    }
    std::copy_n(args.inputs[4].data<float>() + first, count, gc + first);
    std::fill(buffers.gh + begin * padded, buffers.gh + end * padded, 0.0F);
    for (int64_t t = walk_.length; t-- > 0;) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t row = walk_.row(t) + b;
        HWY_DYNAMIC_DISPATCH(gate_gradients)
        ({sums + row * rows(), gy + row * walk_.hidden, buffers.gh + b * padded, gc + b * walk_.hidden,
          gsums + row * rows(), walk_.hidden},
         buffers.cells + (t * walk_.batch + b) * walk_.hidden);
      }
      weights_.multiply(buffers.packed, {gsums + (walk_.row(t) + begin) * rows(), rows(), end - begin},
                        buffers.gh + begin * padded);
    }
    float* gh = args.outputs[1].mutable_data<float>();
    for (int64_t b = begin; b < end; ++b) std::copy_n(buffers.gh + b * padded, walk_.hidden, gh + b * walk_.hidden);
  }

  const GatesWalk walk_;
  const TurnedWeights weights_;
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<LstmGatesGradient>(call), ""}; }

}  // namespace

KernelDef lstm_gates_grad_kernel() {
  return {
      .name = "cpu.lstm_gates_grad_simd", .op = lstm_gates_grad_def().name, .why_not = why_not_f32, .prepare = prepare};
}

}  // namespace autograph::simd
#endif
