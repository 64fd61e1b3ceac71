// Recurrent layers with torch's parameters: weight_ih_l0 [gates * hidden, input], weight_hh_l0, bias_ih_l0, bias_hh_l0,
// the layers above as _l1 and so on, those that run backwards with the ending _reverse.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograph/nn/layers.h"
#include "autograph/nn/module.h"

namespace autograph::nn {

/// What recurrent layers have besides their widths.
struct RecurrentSettings {
  int64_t layers = 1;
  bool bias = true;
  bool batch_first = false;    ///< x and y are [batch, length, ...] instead of [length, batch, ...].
  bool bidirectional = false;  ///< A layer for each direction, whose outputs stand side by side.
  double dropout = 0;          ///< Between layers.
  bool relu = false;           ///< Of Rnn: in place of tanh, torch's nonlinearity="relu".
};

/// What a recurrent layer gives.
struct RecurrentOutput {
  Var y;          ///< [length, batch, directions * hidden] of the last layer.
  Var hidden;     ///< [layers * directions, batch, hidden]: the last of each.
  Var cell = {};  ///< The same of LSTMs.
};

/// What RNN, LSTM and GRU share.
class RecurrentModule : public Module {
 public:
  /// y of run().
  Var forward(const Var& x) override;
  /// From states of zeros, or from `hidden` and, for LSTMs, `cell`, each [layers * directions, batch, hidden].
  RecurrentOutput run(const Var& x, const Var& hidden = {}, const Var& cell = {});

 protected:
  enum class Kind : uint8_t { rnn, gru, lstm };
  RecurrentModule(Kind kind, int64_t input, int64_t hidden, RecurrentSettings settings);

 private:
  struct Direction {
    Parameter* weight_ih;
    Parameter* weight_hh;
    Parameter* bias_ih;
    Parameter* bias_hh;
  };
  RecurrentOutput run_layer(int64_t layer, const Var& x, const Var& hidden, const Var& cell) const;
  Var in_onnx_order(const Var& gates) const;
  Var both_directions(int64_t layer, const Var& like, Parameter* Direction::*which) const;
  Var biases(int64_t layer, const Var& like) const;
  int64_t num_directions() const { return settings_.bidirectional ? 2 : 1; }

  Kind kind_;
  int64_t hidden_;
  RecurrentSettings settings_;
  std::vector<Direction> directions_;  // of layer 0 forward, layer 0 backward, layer 1...
  Dropout& dropout_;
};

/// h = tanh(W x + b + R h + b'), or relu of it.
class Rnn : public RecurrentModule {
 public:
  Rnn(int64_t input, int64_t hidden, RecurrentSettings settings = {})
      : RecurrentModule(Kind::rnn, input, hidden, settings) {}
};

/// Gates in the order r, z, n.
class Gru : public RecurrentModule {
 public:
  Gru(int64_t input, int64_t hidden, RecurrentSettings settings = {})
      : RecurrentModule(Kind::gru, input, hidden, settings) {}
};

/// Gates in the order i, f, g, o.
class Lstm : public RecurrentModule {
 public:
  Lstm(int64_t input, int64_t hidden, RecurrentSettings settings = {})
      : RecurrentModule(Kind::lstm, input, hidden, settings) {}
};

/// Simple recurrent unit (Lei et al. 2018): all products are done before the recurrence, which is elementwise,
///
///     f = sigmoid(W_f x + v_f c + b_f), r = sigmoid(W_r x + v_r c + b_r),
///     c' = f c + (1 - f) W x, h = r c' + (1 - r) x
///
/// with x [length, batch, width]: weight [3 * width, width] (W, W_f, W_r), weight_c [2 * width], bias [2 * width].
class Sru : public Module {
 public:
  explicit Sru(int64_t width);
  Var forward(const Var& x) override;

 private:
  int64_t width_;
  Parameter& weight_;
  Parameter& weight_c_;
  Parameter& bias_;
};

}  // namespace autograph::nn
