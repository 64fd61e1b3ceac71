// What the kernels of recurrent layers share: the walk over positions, directions and sequences of a batch. They differ
// in the form of the weights.
//
// W x is one product for many positions at once; R h is one product per position, whose columns the threads share. A
// thread that has computed the gates of its hidden elements goes on to their new h, so that the threads meet once per
// position (twice in a GRU that resets before R); in between they stay together. Both directions walk side by side, two
// threads with a direction each.
//
// A sequence shorter than the longest one keeps its state beyond its end. Walking backwards the positions beyond the
// end come first, so that the state is still the initial one where the sequence begins.
#pragma once

#include <array>
#include <string>

#include "autograph/kernel.h"
#include "backends/cpu/simd/recurrent/recurrent_cells.h"

namespace autograph::simd {

/// Inputs of all recurrent ops, of which some have fewer and some have more behind these.
enum RecurrentSlot : size_t { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };

/// "" when activation functions, dtypes (of all inputs but those of integers) and extents are those that the kernels
/// know.
std::string why_not_recurrent(const KernelCall& call);

/// Extents of a call, and where things begin in x, y and the states.
struct RecurrentExtents {
  RecurrentExtents(const KernelCall& call, int64_t hidden);

  int64_t x(int64_t t, int64_t b) const { return (batch_first ? b * length + t : t * batch + b) * input; }
  int64_t y(int64_t t, int64_t d, int64_t b) const {
    return (batch_first ? (b * length + t) * directions + d : (t * directions + d) * batch + b) * hidden;
  }
  int64_t state(int64_t d, int64_t b) const { return (batch_first ? b * directions + d : d * batch + b) * hidden; }
  int64_t padded() const { return blocks * width; }

  bool batch_first;
  int64_t length, batch, input, directions, hidden, gates, width, blocks;
};

/// Rows that weights are multiplied with, as they are and as GateWeights::prepare() made them.
struct GateRows {
  const float* values;
  int64_t stride;
  int64_t count;
  const float* prepared;
};

/// Some gates of a block of hidden elements.
struct GateBlock {
  bool of_hidden;  ///< R, else W.
  int64_t direction;
  int64_t block;
  int64_t first_gate;
  int64_t gates;
};

/// W and R in a form of their own.
class GateWeights {
 public:
  virtual ~GateWeights() = default;
  /// Makes `prepared` of rows of x (or of h), of RowSizes floats each.
  virtual void prepare(const GateRows& rows, bool of_hidden, float* prepared) const;
  /// c [rows, gates * width] = rows times the weights of these gates.
  virtual void multiply(const GateBlock& which, const GateRows& rows, float* c, int64_t c_stride) const = 0;
};

/// Floats that a prepared row of x or h takes; 0: weights are multiplied with rows as they are.
struct RowSizes {
  int64_t input = 0;
  int64_t hidden = 0;
};

/// A layer of known extents, without its weights.
class RecurrentLayer {
 public:
  /// `speed`: how many times faster than f32 the weights are multiplied.
  RecurrentLayer(const KernelCall& call, const RecurrentExtents& extents, const RowSizes& rows, int64_t speed);

  size_t scratch_bytes() const { return static_cast<size_t>(workspace_.total) * sizeof(float); }
  /// Fills the outputs. `scratch`: scratch_bytes(), 64-byte aligned.
  void run(const KernelArgs& args, const GateWeights& weights, float* scratch) const;

 private:
  friend class RecurrentRun;

  // Where things begin in the scratch memory of a run, in elements.
  struct Workspace {
    int64_t take(int64_t count);

    int64_t total = 0;
    int64_t projected = 0;                // [direction, position, instance, block, gate, width]: W x
    int64_t bias = 0, peepholes = 0;      // [direction, block, gate, width]
    int64_t hidden_bias = 0;              // [direction, block, width]
    std::array<int64_t, 2> h{};           // [direction, instance, block, width], the last and the next one in turns
    int64_t cell = 0, reset_h = 0;        // the same
    int64_t gates = 0, gates_size = 0;    // of each thread: [instance, gate, width], R h
    int64_t x_rows = 0;                   // [direction, position and instance]: prepared rows of x
    int64_t h_rows = 0, h_rows_size = 0;  // of each thread: [direction, instance], prepared rows of h
  };
  void plan_workspace();

  const RecurrentExtents e_;
  const RowSizes rows_;
  const int64_t positions_;  // whose W x is computed at a time
  const bool starts_backwards_;
  const CellTask cell_;  // what all cells have in common
  Workspace workspace_;
  int step_threads_ = 1, threads_ = 1;
};

}  // namespace autograph::simd
