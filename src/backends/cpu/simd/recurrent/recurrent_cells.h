// The arithmetic of recurrent layers, for every instruction set: products with weights that are packed once, and the
// gates that follow them. What runs when is up to recurrent.cpp.
//
// Hidden elements come in blocks of gate_width(). Everything per hidden element is padded to whole blocks; the gates of
// one block stand together, so that a thread that owns a block needs nothing from the others but the last h.
#pragma once

#include <cstdint>

namespace autograph::simd {

enum class CellKind : uint8_t {
  rnn,        ///< h' = f(x + h + b)
  gru,        ///< the reset gate is applied behind R ("linear before reset")
  gru_gates,  ///< update gate and reset * h, for a GRU that resets before R
  gru_reset,  ///< h' of such a GRU, where from_hidden is R (reset * h)
  lstm,
};

/// Hidden elements per block on this machine.
int64_t gate_width();

/// Elements of the packed form of [gates * hidden, depth].
int64_t packed_gates_size(int64_t gates, int64_t hidden, int64_t depth);

/// Packs row-major weights [gates * hidden, depth], block after block, gate after gate. `scratch`: gate_width() *
/// depth.
void pack_gates(const float* weights, int64_t gates, int64_t hidden, int64_t depth, float* scratch, float* packed);

/// c [rows, panels * gate_width()] = a [rows, depth] times `panels` packed gates.
struct GateProduct {
  const float* a;
  int64_t a_stride;
  int64_t rows;
  int64_t depth;
  const float* packed;
  int64_t panels;
  float* c;
  int64_t c_stride;
};
void multiply_gates(const GateProduct& product);

/// One block of one instance at one position. All pointers but y are to gate_width() elements, or to that many per
/// gate.
struct CellTask {
  CellKind kind;
  const float* from_input;   ///< W x, per gate.
  const float* from_hidden;  ///< R h, per gate; gru_gates: z and r, gru_reset: of the candidate.
  const float* bias;         ///< Per gate; both biases, but for the candidate of a GRU that of W alone.
  const float* hidden_bias;  ///< GRU: the candidate's bias of R.
  const float* peepholes;    ///< LSTM: of i, o, f; null: none.
  const float* h;            ///< Last h.
  float* next_h;             ///< gru_gates: reset * h.
  float* cell;               ///< LSTM: c, read and written. gru_gates writes z here, gru_reset reads it.
  float* y;                  ///< Gets `y_count` elements of next_h; null: none.
  int64_t y_count;
  float* kept;  ///< Gets `y_count` elements of each of what gradients want, as gru and lstm give it; null: none.
  int64_t kept_stride;  ///< From one to the next.
  float clip;           ///< Bound of sums that go into functions; infinity: none.
  bool input_forget;    ///< LSTM: f = 1 - i.
  bool relu;            ///< RNN: f is relu, else tanh.
};
void run_cell(const CellTask& task);

}  // namespace autograph::simd
