// Typed builders of recurrent layers. x is [length, batch, input]; w and r hold the gates' rows of each direction.
#pragma once

#include <string>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// Plain recurrent layer: {y [length, directions, batch, hidden], last h [directions, batch, hidden]}.
std::vector<Var> rnn(Var x, Var w, Var r, Var b = {}, const std::string& direction = "forward");

/// Gated recurrent unit, gates z, r, h; results as rnn().
std::vector<Var> gru(Var x, Var w, Var r, Var b = {}, const std::string& direction = "forward");

/// Long short-term memory, gates i, o, f, c; results as rnn() and the last cell state.
std::vector<Var> lstm(Var x, Var w, Var r, Var b = {}, const std::string& direction = "forward");

/// What flows into the gates of an LSTM layer of one direction: {gradients of `sums`, of the first h, of the first c}.
/// sums [length, batch, 4 * hidden] are W x + R h + b, r [4 * hidden, hidden], c [batch, hidden] the first cells; gy
/// [length, batch, hidden] flows into each h, gc into the last c.
std::vector<Var> lstm_gates_grad(Var sums, Var r, Var c, Var gy, Var gc, bool reverse = false);

/// The same of a GRU layer: {gradients of W x, of what R is multiplied with, of the first h}. gates [length, batch,
/// 3 * hidden] are z, r and n, with linear_before_reset [.., 4 * hidden] and R h + b of the candidate; r [3 * hidden,
/// hidden], before [length, batch, hidden] is h before each position.
std::vector<Var> gru_gates_grad(Var gates, Var r, Var before, Var gy, bool linear_before_reset, bool reverse = false);

/// The same of a plain recurrent layer: {gradients of its sums, of the first h}. y [length, batch, hidden], r [hidden,
/// hidden].
std::vector<Var> rnn_gates_grad(Var y, Var r, Var gy, bool reverse = false);

/// lstm() with weights in bytes, [directions, input or hidden, 4 * hidden], for which (w - w_zero) * w_scale stands,
/// and inputs that are quantized when it runs.
std::vector<Var> dynamic_quantize_lstm(Var x, Var w, Var r, Var b, Var w_scale, Var w_zero, Var r_scale, Var r_zero,
                                       Attributes attributes = {});

}  // namespace autograph
