// What the rules of rnn, gru and lstm share. An op of each kind gives what flows into its gates, position by position;
// the products with x and h, which make up most of the gradient, follow for all positions at once.
#pragma once

#include <functional>
#include <vector>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "ops/recurrent/recurrent.h"

namespace autograph {

/// Number `number` of what lies along an axis of directions.
Var of_direction(const Var& x, int64_t number, int64_t axis);

/// The states before each position of a direction, from those behind it, y [length, batch, hidden].
Var states_before(const Var& y, const Var& first, bool reverse);

/// From what flows into the states before each position to what flows into those behind: the last one is before none.
Var to_states_behind(const Var& flow, bool reverse);

/// The state in front of a direction, zeros unless it is given.
Var first_state(const Var& given, const Var& last, int64_t number);

/// The sum over all positions of outer products of a [length, batch, m] and b [length, batch, n]: [m, n].
Var product_of_rows(const Var& a, const Var& b);

/// One direction of a layer and what flows into it.
struct DirectionFlow {
  int64_t number = 0;
  bool reverse = false;
  Var r;            ///< [gates * hidden, hidden].
  Var y;            ///< [length, batch, hidden].
  Var before;       ///< The same before each position.
  Var into_states;  ///< What flows into y.
};

/// What flows on from there.
struct GatesFlow {
  Var into_input;               ///< [length, batch, gates * hidden]: into W x with its bias.
  Var into_hidden;              ///< The same for R h; invalid: that of W x.
  Var of_r;                     ///< The gradient of R; invalid: the product of into_hidden and the states before.
  std::vector<Var> into_first;  ///< [batch, hidden]: into the first h, then into the first c.
};

using DirectionRule = std::function<GatesFlow(const DirectionFlow&)>;

/// So many outputs of the layer; it is made again with those that it does not give.
std::vector<Var> first_outputs(VjpContext& context, size_t count);

/// Leaves a layer to its body unless it is as most are.
void require_usual_layer(VjpContext& context, const RecurrentKind& kind);

/// Sets the gradients of the inputs of a layer, whose y and y_h are `outputs`.
void recurrent_vjp(VjpContext& context, const std::vector<Var>& outputs, const DirectionRule& rule);

}  // namespace autograph
