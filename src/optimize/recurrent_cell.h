// RecurrentCell: one step of an LSTM or GRU, found in the ops that a model spells it out with.
//
//   LSTM   c' = sigmoid(f) * c + sigmoid(i) * tanh(n),  h' = sigmoid(o) * tanh(c')
//   GRU    h' = (1 - sigmoid(z)) * n + sigmoid(z) * h  or  n + sigmoid(z) * (h - n),
//          n = tanh(a + sigmoid(r) * b)  or  tanh(a + R (sigmoid(r) * h))
//
// where each gate is a sum of products of x and h with constant matrices, and of constants. Gates may be pieces of one
// product. Where h begins as zeros, constant folding has left only a constant of the product with it: such a cell has
// no h and no matrix for it.
#pragma once

#include <optional>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

struct OpDef;
struct PassContext;

/// A matrix product with columns [first, first + hidden) of a constant [rows, columns], or with rows when transposed.
struct GateProduct {
  ValueId input;  ///< [batch, rows]
  ValueId matrix;
  bool is_transposed = false;
  int64_t first = 0;

  bool has_matrix_of(const GateProduct& other) const {
    return matrix == other.matrix && is_transposed == other.is_transposed && first == other.first;
  }
};

/// Columns [first, first + hidden) of a constant [columns] or [batch, columns]; of one column: the same for all.
struct GateBias {
  ValueId constant;
  int64_t first = 0;
};

/// What goes into one activation function.
struct Gate {
  std::vector<GateProduct> products;
  std::vector<GateBias> biases;
};

/// A gate whose products are told apart.
struct CellGate {
  GateProduct from_x;
  std::optional<GateProduct> from_h;
  std::vector<GateBias> biases;
  std::vector<GateBias> reset_biases;  ///< GRU with b: what the reset gate multiplies besides the product with h.
};

/// Gates are in the order of the op: i, o, f, c and z, r, h.
struct RecurrentCell {
  const OpDef* op = nullptr;
  std::vector<CellGate> gates;
  bool resets_product = false;  ///< GRU: the form with b (linear_before_reset).
  int64_t batch = 0, hidden = 0;
  ValueId x;      ///< [batch, input]
  ValueId h;      ///< [batch, hidden]; invalid: zeros
  ValueId c;      ///< likewise; LSTM only
  ValueId h_out;  ///< [batch, hidden]
  ValueId c_out;  ///< likewise; LSTM only

  bool has_h() const { return gates.front().from_h.has_value(); }
  /// Takes x for h and h for x, which is as right when both have the same width. LSTM only.
  void swap_inputs();
};

/// The cell whose new h node `root` makes, if it is one, in f32.
std::optional<RecurrentCell> match_cell(const Graph& graph, NodeId root);

/// Weights of cells as the ops lstm and gru take them, of one direction.
struct RecurrentWeights {
  Tensor w;  ///< [1, gates * hidden, input]
  Tensor r;  ///< [1, gates * hidden, hidden]
  Tensor b;  ///< [1, 2 * gates * hidden]
};

/// The weights of a cell with an h.
RecurrentWeights weights_of(const Graph& graph, const RecurrentCell& cell);

/// What a layer of cells begins with.
struct LayerInputs {
  ValueId x;  ///< [length, batch, input]
  ValueId h;  ///< The elements of [batch, hidden]; invalid: zeros
  ValueId c;  ///< likewise; LSTM only
};

/// Adds the op that computes such cells one after the other; invalid where the device expects no kernel for it.
NodeId add_layer(Graph& graph, const PassContext& context, const RecurrentCell& cell, const RecurrentWeights& weights,
                 const LayerInputs& from, const Provenance& provenance = {});

/// Does `cell` compute with the weights of `with_h`, which has an h? When `cell` has none: with h = 0.
bool has_weights_of(const Graph& graph, const RecurrentCell& cell, const RecurrentCell& with_h);

}  // namespace autograph
