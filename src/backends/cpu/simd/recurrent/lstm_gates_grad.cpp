// lstm_gates_grad of f32. The sequences of a batch go their own ways, so every thread takes some of them from the first
// position to the last for the cells, and back again for the gradients, and waits for nobody.
#include <algorithm>
#include <memory>

#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/recurrent/recurrent_cells.h"
#include "backends/cpu/threads/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/recurrent/lstm_gates_grad.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/rows-inl.h"
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

using GateD = hn::ScalableTag<float>;
using GateV = hn::Vec<GateD>;

// Calls step(load, store, at) for all lanes of a row; both take an address and leave what lies behind the row alone.
template <class Step>
HWY_INLINE void for_lanes(int64_t count, const Step& step) {
  const GateD d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t at = 0;
  for (; at + lanes <= count; at += lanes) {
    step([](const float* from) HWY_ATTR { return hn::LoadU(GateD(), from); },
         [](GateV v, float* to) HWY_ATTR { hn::StoreU(v, GateD(), to); }, at);
  }
  if (at == count) return;
  const auto rest = static_cast<size_t>(count - at);
  step([rest](const float* from) HWY_ATTR { return load_some(GateD(), from, rest, hn::Zero(GateD())); },
       [rest](GateV v, float* to) HWY_ATTR { store_some(GateD(), v, to, rest); }, at);
}

// c goes on by a position.
void next_cells(const float* sums, int64_t hidden, const float* c, float* next) {
  for_lanes(hidden, [&](const auto& load, const auto& store, int64_t at) HWY_ATTR {
    const GateD d;
    const GateV i = sigmoid(d, load(sums + at)), f = sigmoid(d, load(sums + 2 * hidden + at));
    const GateV n = tanh(d, load(sums + 3 * hidden + at));
    store(hn::MulAdd(f, load(c + at), hn::Mul(i, n)), next + at);
  });
}

// x (1 - x)
HWY_INLINE GateV slope(GateV x) { return hn::NegMulAdd(x, x, x); }

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
      : length_(call.input_dims(0)[0]),
        batch_(call.input_dims(0)[1]),
        hidden_(call.input_dims(1)[1]),
        reverse_(call.attributes.flag("reverse")),
        threads_(useful_threads(call.threads, length_ * batch_ * hidden_ * hidden_)) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(packed_size() + turned_size() + gate_width() * rows() + cells_size() +
                               padded() * batch_) *
           sizeof(float);
  }

  void run(const KernelArgs& args) const override {
    auto* packed = static_cast<float*>(args.scratch);
    float* turned = packed + packed_size();
    float* panel = turned + turned_size();
    pack(args.inputs[1].data<float>(), turned, panel, packed);
    const Buffers buffers{packed, panel + gate_width() * rows(), panel + gate_width() * rows() + cells_size()};
    for_shares(threads_, batch_, [&](int64_t begin, int64_t end, int) { run_sequences(args, buffers, begin, end); });
  }

 private:
  struct Buffers {
    const float* packed;
    float* cells;  // before each position, [length, batch, hidden]
    float* gh;     // [batch, padded]
  };

  int64_t rows() const { return kGates * hidden_; }
  int64_t padded() const { return (hidden_ + gate_width() - 1) / gate_width() * gate_width(); }
  int64_t packed_size() const { return packed_gates_size(1, hidden_, rows()); }
  int64_t turned_size() const { return hidden_ * rows(); }
  int64_t cells_size() const { return length_ * batch_ * hidden_; }
  // Position in memory of step t, in sequences.
  int64_t at(int64_t t) const { return (reverse_ ? length_ - 1 - t : t) * batch_; }

  // gsums R is a product with the rows of R as depth: R is turned, then packed as gates are.
  void pack(const float* r, float* turned, float* panel, float* packed) const {
    constexpr int64_t kBlock = 16;
    for (int64_t first = 0; first < rows(); first += kBlock) {
      for (int64_t j = 0; j < hidden_; ++j) {
        for (int64_t k = first; k < std::min(rows(), first + kBlock); ++k) turned[j * rows() + k] = r[k * hidden_ + j];
      }
    }
    pack_gates(turned, 1, hidden_, rows(), panel, packed);
  }

  void run_sequences(const KernelArgs& args, const Buffers& buffers, int64_t begin, int64_t end) const {
    const float* sums = args.inputs[0].data<float>();
    const float* gy = args.inputs[3].data<float>();
    float* gsums = args.outputs[0].mutable_data<float>();
    float* gc = args.outputs[2].mutable_data<float>();
    const int64_t first = begin * hidden_, count = (end - begin) * hidden_;
    std::copy_n(args.inputs[2].data<float>() + first, count, buffers.cells + first);
    for (int64_t t = 0; t + 1 < length_; ++t) {
      for (int64_t b = begin; b < end; ++b) {
        const float* c = buffers.cells + (t * batch_ + b) * hidden_;
        HWY_DYNAMIC_DISPATCH(next_cells)
        (sums + (at(t) + b) * rows(), hidden_, c, const_cast<float*>(c) + batch_ * hidden_);
      }
    }
    std::copy_n(args.inputs[4].data<float>() + first, count, gc + first);
    std::fill(buffers.gh + begin * padded(), buffers.gh + end * padded(), 0.0F);
    for (int64_t t = length_; t-- > 0;) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t row = at(t) + b;
        HWY_DYNAMIC_DISPATCH(gate_gradients)
        ({sums + row * rows(), gy + row * hidden_, buffers.gh + b * padded(), gc + b * hidden_, gsums + row * rows(),
          hidden_},
         buffers.cells + (t * batch_ + b) * hidden_);
      }
      multiply_gates({gsums + (at(t) + begin) * rows(), rows(), end - begin, rows(), buffers.packed,
                      padded() / gate_width(), buffers.gh + begin * padded(), padded()});
    }
    float* gh = args.outputs[1].mutable_data<float>();
    for (int64_t b = begin; b < end; ++b) std::copy_n(buffers.gh + b * padded(), hidden_, gh + b * hidden_);
  }

  const int64_t length_, batch_, hidden_;
  const bool reverse_;
  const int threads_;
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<LstmGatesGradient>(call), ""}; }

}  // namespace

KernelDef lstm_gates_grad_kernel() {
  return {
      .name = "cpu.lstm_gates_grad_simd", .op = lstm_gates_grad_def().name, .why_not = why_not_f32, .prepare = prepare};
}

}  // namespace autograph::simd
#endif
