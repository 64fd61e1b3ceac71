#include "backends/cpu/simd/recurrent/recurrent_cells.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/recurrent/recurrent_cells.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/linear/micro_gemm-inl.h"
#include "backends/cpu/simd/rows-inl.h"
#include "backends/cpu/simd/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

int64_t width_of_gate() { return panel_width(); }

void pack_columns(const float* weights, int64_t rows, int64_t depth, float* panel) {
  pack_transposed(weights, depth, depth, rows, panel);
}

void multiply_gate_panels(const GateProduct& product) {
  const int64_t width = panel_width();
  multiply_packed(
      {product.a, product.a_stride, product.packed, product.depth, product.c, product.c_stride, /*accumulate=*/false},
      product.rows, product.panels * width);
}

// Subnormal numbers are 0: gates that are shut bring states there, where they stay for long, and each product with one
// takes a hundred cycles on processors of Intel.
HWY_INLINE V flushed(V v) {
  const D d;
  return hn::IfThenZeroElse(hn::Lt(hn::Abs(v), hn::Set(d, 0x1p-126F)), v);
}

// sigmoid(x) * tanh(y) with one division: each takes a third as long as all the rest.
HWY_INLINE V gated_tanh(V x, V y) {
  const auto [over, under] = tanh_ratio(D(), y);
  return hn::Div(over, hn::Mul(under, sigmoid_divisor(D(), x)));
}

// Of a block that reaches beyond the last element only `count` lanes exist.
HWY_INLINE void store_existing(V v, int64_t count, float* to) {
  const D d;
  if (count >= static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(v, d, to);
  if (count > 0) store_some(d, v, to, static_cast<size_t>(count));
}

// The lanes of a task from `at` on. Gates stand `width` elements apart.
class Cell {
 public:
  HWY_INLINE Cell(const CellTask& task, int64_t at) : task_(task), at_(at), width_(panel_width()) {}

  HWY_INLINE V run() const {
    const D d;
    switch (task_.kind) {
      case CellKind::rnn: {
        const V total = clipped(sum(0));
        return task_.relu ? at_least(d, hn::Zero(d), total) : tanh(d, total);
      }
      case CellKind::gru: return gru();
      case CellKind::gru_gates:
        hn::StoreU(kept(kUpdate, gate(kUpdate)), d, task_.cell + at_);
        return hn::Mul(kept(kReset, gate(kReset)), load(task_.h));
      case CellKind::gru_reset: return mix(load(task_.cell), candidate(hn::Add(hidden_part(0), input_part(kNew))));
      case CellKind::lstm: break;
    }
    return hn::Zero(d);
  }

  struct LstmSums {
    V cell;
    V output;  // of the gate
  };

  // The new cell, which is stored, and what the gate of the output is made of.
  HWY_INLINE LstmSums lstm_cell() const {
    const D d;
    for (int64_t which = 0; task_.kept && which < kLstmGates; ++which) kept(which, sum(which));
    const V last = load(task_.cell);
    const V input = gate_sum(kInput, last), candidate = clipped(sum(kCandidate));
    const V forget =
        task_.input_forget ? hn::Sub(hn::Set(d, 1.0F), sigmoid(D(), input)) : sigmoid(D(), gate_sum(kForget, last));
    const V cell = flushed(hn::MulAdd(forget, last, gated_tanh(input, candidate)));
    hn::StoreU(cell, d, task_.cell + at_);
    return {cell, gate_sum(kOutput, cell)};
  }

 private:
  enum LstmGate : int64_t { kInput, kOutput, kForget, kCandidate, kLstmGates };
  enum GruGate : int64_t { kUpdate, kReset, kNew, kMemory };

  // Stores v for gradients, too.
  HWY_INLINE V kept(int64_t which, V v) const {
    if (task_.kept) store_existing(v, task_.y_count - at_, task_.kept + which * task_.kept_stride + at_);
    return v;
  }

  HWY_INLINE V load(const float* from, int64_t gate = 0) const { return hn::LoadU(D(), from + gate * width_ + at_); }
  HWY_INLINE V input_part(int64_t gate) const { return hn::Add(load(task_.from_input, gate), load(task_.bias, gate)); }
  // Of a GRU's candidate, which has a bias of its own.
  HWY_INLINE V hidden_part(int64_t gate) const {
    return hn::Add(load(task_.from_hidden, gate), load(task_.hidden_bias));
  }
  HWY_INLINE V sum(int64_t gate) const { return hn::Add(input_part(gate), load(task_.from_hidden, gate)); }
  HWY_INLINE V clipped(V x) const {
    const D d;
    return at_least(d, hn::Set(d, -task_.clip), at_most(d, hn::Set(d, task_.clip), x));
  }
  HWY_INLINE V gate(int64_t which) const { return sigmoid(D(), clipped(sum(which))); }
  // With its peephole on `cell`.
  HWY_INLINE V gate_sum(int64_t which, V cell) const {
    const V total = sum(which);
    return clipped(task_.peepholes ? hn::MulAdd(load(task_.peepholes, which), cell, total) : total);
  }
  // (1 - z) * n + z * h
  HWY_INLINE V mix(V z, V n) const { return hn::MulAdd(z, hn::Sub(load(task_.h), n), n); }

  HWY_INLINE V candidate(V sum) const { return kept(kNew, tanh(D(), clipped(sum))); }

  HWY_INLINE V gru() const {
    const V update = kept(kUpdate, gate(kUpdate)), reset = kept(kReset, gate(kReset));
    const V memory = kept(kMemory, hidden_part(kNew));
    return mix(update, candidate(hn::MulAdd(reset, memory, input_part(kNew))));
  }

  const CellTask& task_;
  const int64_t at_;
  const int64_t width_;
};

HWY_INLINE void store_hidden(const CellTask& task, int64_t at, V h) {
  const V stored = flushed(h);
  hn::StoreU(stored, D(), task.next_h + at);
  if (task.y) store_existing(stored, task.y_count - at, task.y + at);
}

HWY_INLINE V lstm_hidden(const Cell::LstmSums& sums) { return gated_tanh(sums.output, sums.cell); }

// Chains of the output wait for those of the cell: both vectors of a block take each half of the way together.
HWY_INLINE void run_lstm(const CellTask& task) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const Cell::LstmSums first = Cell(task, 0).lstm_cell(), second = Cell(task, lanes).lstm_cell();
  store_hidden(task, 0, lstm_hidden(first));
  store_hidden(task, lanes, lstm_hidden(second));
}

void run_cell_lanes(const CellTask& task) {
  if (task.kind == CellKind::lstm) return run_lstm(task);
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t at = 0; at < panel_width(); at += lanes) store_hidden(task, at, Cell(task, at).run());
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(width_of_gate);
HWY_EXPORT(pack_columns);
HWY_EXPORT(multiply_gate_panels);
HWY_EXPORT(run_cell_lanes);

int64_t gate_width() { return HWY_DYNAMIC_DISPATCH(width_of_gate)(); }

int64_t packed_gates_size(int64_t gates, int64_t hidden, int64_t depth) {
  const int64_t width = gate_width();
  return (hidden + width - 1) / width * width * gates * depth;
}

void pack_gates(const float* weights, int64_t gates, int64_t hidden, int64_t depth, float* scratch, float* packed) {
  const int64_t width = gate_width();
  for (int64_t begin = 0; begin < hidden; begin += width) {
    for (int64_t gate = 0; gate < gates; ++gate, packed += width * depth) {
      const int64_t rows = std::min(width, hidden - begin);
      const float* from = weights + (gate * hidden + begin) * depth;
      if (rows < width) {
        std::fill(std::copy(from, from + rows * depth, scratch), scratch + width * depth, 0.0F);
        from = scratch;
      }
      HWY_DYNAMIC_DISPATCH(pack_columns)(from, width, depth, packed);
    }
  }
}

void multiply_gates(const GateProduct& product) { HWY_DYNAMIC_DISPATCH(multiply_gate_panels)(product); }

void run_cell(const CellTask& task) { HWY_DYNAMIC_DISPATCH(run_cell_lanes)(task); }

}  // namespace autograph::simd
#endif  // HWY_ONCE
