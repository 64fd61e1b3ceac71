// Recurrent layers as scans: what their gradients are made of.
#pragma once

#include <functional>
#include <vector>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "ops/recurrent/recurrent.h"

namespace autograph {

/// One position of one direction, all of it in the body of a scan.
struct RecurrentPosition {
  int64_t hidden = 0;
  Var from_input;   ///< [batch, gates * hidden]: W x and its bias.
  Var r;            ///< [gates * hidden, hidden].
  Var hidden_bias;  ///< [gates * hidden], the bias that goes with R; invalid: none.
  Var peepholes;    ///< [3 * hidden]; invalid: none.
  Var h, c;         ///< [batch, hidden], before the position; c invalid without cells.
  Var kept;         ///< [batch, ...], set by the step: of each position, where more outputs than states are wanted.
  std::function<Var(size_t which, const Var& sum)> activate;  ///< Clips a sum and applies one of the functions.
  std::function<Var(const Var&)> output;                      ///< The last of the functions, without clipping.

  /// The rows of gate `which` of something whose `axis` has those of all gates.
  Var gate(const Var& rows, int64_t which, int64_t axis) const;
  /// R h of all gates with its bias, [batch, gates * hidden].
  Var from_hidden(const Var& state) const;
};

/// The type of one position of x [length, ...].
Type type_of_position(const Var& x);

/// Moves h and c of the cell on by one position.
using RecurrentBodyStep = std::function<void(const Attributes&, RecurrentPosition&)>;

/// The whole layer; see OpDef::decompose. The body of the scan has one step.
std::vector<Var> recurrent_body(DecomposeContext& context, const RecurrentKind& kind, const RecurrentBodyStep& step);

}  // namespace autograph
