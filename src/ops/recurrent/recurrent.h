// What rnn, gru and lstm share: shapes, directions, sequence lengths, layouts, weights and activation functions.
//
// x is [length, batch, input] (layout 0) or [batch, length, input] (layout 1). W is [directions, gates * hidden,
// input], R is [directions, gates * hidden, hidden], B is [directions, 2 * gates * hidden]: the biases that go with W,
// then those with R. Positions at or beyond a sequence's own length give zeros in Y, and the reverse direction starts
// at the last position of the sequence.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// How one recurrent op differs from the others.
struct RecurrentKind {
  int64_t gates;                                      ///< Rows of W and R per hidden element.
  bool has_cell;                                      ///< Has initial_c, P and Y_c.
  std::vector<std::string_view> default_activations;  ///< Of one direction.
  bool weights_by_input = false;  ///< W is [directions, input, gates * hidden], R [directions, hidden, gates * hidden].
};

/// Those of the three.
const RecurrentKind& rnn_kind();
const RecurrentKind& gru_kind();
const RecurrentKind& lstm_kind();

/// The inputs of rnn, gru and lstm, in their order; those behind first_h are lstm's alone.
struct RecurrentInput {
  enum : size_t { x, w, r, b, lengths, first_h, first_c, peepholes };
};

/// Output types; throws ShapeError and ValueError on inputs or attributes that do not fit.
void infer_recurrent(InferContext& context, const RecurrentKind& kind);

/// The type of an output [directions, length, batch, rows * hidden] that is kept for gradients: only with layout 0 and
/// without lengths. After infer_recurrent().
void infer_kept(InferContext& context, size_t slot, int64_t rows, std::string_view name);

/// Throws unless input `slot`, when given, has these extents.
void require_dims(const InferContext& context, size_t slot, const std::vector<Dim>& dims, std::string_view what);

/// gates * hidden, unknown where hidden is.
Dim gate_rows(int64_t gates, const Dim& hidden);

/// 2 flops for each weight, position and instance.
OpCost recurrent_cost(const CostContext& context);

/// Attributes that all three ops have.
std::vector<AttributeSpec> recurrent_attributes();

/// A random legal call without cell inputs; `kind` tells the sizes.
OpSample sample_recurrent(Random& random, const RecurrentKind& kind);

/// Where an output of infer_kept() may be asked for, has it asked for now and then.
void sample_kept(Random& random, size_t slot, OpSample& sample);

/// An activation function of the ONNX list with its parameters.
using Activation = std::function<double(double)>;

/// Weights and functions of one direction, in f64.
struct RecurrentDirection {
  int64_t hidden = 0;
  int64_t input = 0;
  int64_t gates = 0;
  std::span<const double> w;          ///< [gates * hidden, input]
  std::span<const double> r;          ///< [gates * hidden, hidden]
  std::span<const double> b;          ///< [2 * gates * hidden]; empty: zeros
  std::span<const double> peepholes;  ///< [3 * hidden]; empty: zeros
  std::vector<Activation> functions;
  double clip = 0;  ///< 0: none

  /// W x + bias for element `j` of a gate.
  double from_input(int64_t gate, int64_t j, const double* x) const;
  /// R h without bias for element `j` of a gate.
  double from_hidden(int64_t gate, int64_t j, const double* h) const;
  /// Bias that goes with R.
  double hidden_bias(int64_t gate, int64_t j) const;
  /// Applies activation `which` to a clipped sum.
  double activate(size_t which, double sum) const;
  /// W x + R h + both biases.
  double sum(int64_t gate, int64_t j, const double* x, const double* h) const {
    return from_input(gate, j, x) + from_hidden(gate, j, h) + hidden_bias(gate, j);
  }
};

/// Moves hidden state h and cell state c (empty without cells) on by one position.
using RecurrentStep =
    std::function<void(const RecurrentDirection&, const double* x, std::vector<double>& h, std::vector<double>& c)>;

/// The reference loop over directions, instances and positions.
void run_recurrent(const OpCall& call, const RecurrentKind& kind, const RecurrentStep& step);

/// Writes an output of infer_kept() from rows that the steps of the reference loop left in the order of their calls.
void store_kept(const OpCall& call, size_t slot, const std::vector<double>& rows);

}  // namespace autograph
