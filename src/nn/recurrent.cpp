#include "autograph/nn/recurrent.h"

#include <array>
#include <cmath>
#include <memory>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "nn/binding.h"
#include "nn/default_init.h"
#include "ops/defs.h"
#include "ops/gradients.h"

namespace autograph::nn {

RecurrentModule::RecurrentModule(Kind kind, int64_t input, int64_t hidden, RecurrentSettings settings)
    : kind_(kind), hidden_(hidden), settings_(settings), dropout_(add<Dropout>("dropout", settings.dropout)) {
  AG_CHECK_USER(settings.layers >= 1, ValueError, "[nn] recurrent: expected 1 layer or more, got {}", settings.layers);
  AG_CHECK_USER(!settings.relu || kind == Kind::rnn, ValueError, "[nn] recurrent: expected relu of an Rnn alone");
  const int64_t gates = kind == Kind::rnn ? 1 : kind == Kind::gru ? 3 : 4;
  const Init init = torch_bias(hidden);  // all of them alike
  for (int64_t layer = 0; layer < settings.layers; ++layer) {
    const int64_t width = layer == 0 ? input : hidden * num_directions();
    for (int64_t direction = 0; direction < num_directions(); ++direction) {
      const std::string ending = "_l" + std::to_string(layer) + (direction == 1 ? "_reverse" : "");
      Direction parameters{};
      parameters.weight_ih = &add_parameter("weight_ih" + ending, {gates * hidden, width}, init);
      parameters.weight_hh = &add_parameter("weight_hh" + ending, {gates * hidden, hidden}, init);
      if (settings.bias) {
        parameters.bias_ih = &add_parameter("bias_ih" + ending, {gates * hidden}, init);
        parameters.bias_hh = &add_parameter("bias_hh" + ending, {gates * hidden}, init);
      }
      directions_.push_back(parameters);
    }
  }
}

// torch has r, z, n and i, f, g, o; ONNX has z, r, h and i, o, f, c.
Var RecurrentModule::in_onnx_order(const Var& gates) const {
  if (kind_ == Kind::rnn) return gates;
  std::vector<Var> parts;
  const std::vector<int64_t> order =
      kind_ == Kind::gru ? std::vector<int64_t>{1, 0, 2} : std::vector<int64_t>{0, 3, 1, 2};
  for (const int64_t gate : order) parts.push_back(slice(gates, {gate * hidden_}, {(gate + 1) * hidden_}, {0}));
  return concat(parts, 0);
}

// One parameter of a layer in the form of ONNX: [directions, ...].
Var RecurrentModule::both_directions(int64_t layer, const Var& like, Parameter* Direction::*which) const {
  std::vector<Var> parts;
  for (int64_t direction = 0; direction < num_directions(); ++direction) {
    const Direction& parameters = directions_[static_cast<size_t>(layer * num_directions() + direction)];
    parts.push_back(unsqueeze(in_onnx_order((parameters.*which)->beside(like)), {0}));
  }
  return parts.size() == 1 ? parts[0] : concat(parts, 0);
}

Var RecurrentModule::biases(int64_t layer, const Var& like) const {
  if (!settings_.bias) return {};
  return concat({both_directions(layer, like, &Direction::bias_ih), both_directions(layer, like, &Direction::bias_hh)},
                1);
}

RecurrentOutput RecurrentModule::run_layer(int64_t layer, const Var& x, const Var& hidden, const Var& cell) const {
  const int64_t directions = num_directions();
  const auto of_layer = [&](const Var& states) {
    return states.is_valid() ? slice(states, {layer * directions}, {(layer + 1) * directions}, {0}) : Var();
  };
  std::vector<Var> inputs{x,
                          both_directions(layer, x, &Direction::weight_ih),
                          both_directions(layer, x, &Direction::weight_hh),
                          biases(layer, x),
                          Var(),
                          of_layer(hidden)};
  Attributes attributes{{"direction", std::string(directions == 2 ? "bidirectional" : "forward")}};
  const OpDef* op = &rnn_def();
  if (settings_.relu) attributes.set("activations", std::vector<std::string>(static_cast<size_t>(directions), "Relu"));
  if (kind_ == Kind::lstm) {
    op = &lstm_def();
    inputs.push_back(of_layer(cell));
  } else if (kind_ == Kind::gru) {
    op = &gru_def();
    attributes.set("linear_before_reset", int64_t{1});
  }
  const std::vector<Var> outputs = apply_all(*op, inputs, std::move(attributes), kind_ == Kind::lstm ? 3 : 2);
  // [length, directions, batch, hidden]: those of one position stand side by side.
  const Var y = directions == 1 ? squeeze(outputs[0], {1})
                                : reshape(transpose(outputs[0], {0, 2, 1, 3}), {0, 0, directions * hidden_});
  return {y, outputs[1], kind_ == Kind::lstm ? outputs[2] : Var()};
}

Var RecurrentModule::forward(const Var& x) { return run(x).y; }

RecurrentOutput RecurrentModule::run(const Var& x, const Var& hidden, const Var& cell) {
  AG_CHECK_USER(kind_ != Kind::lstm || hidden.is_valid() == cell.is_valid(), ValueError,
                "[nn] lstm: expected both states or none");
  RecurrentOutput last;
  std::vector<Var> all_hidden, all_cells;
  Var y = settings_.batch_first ? transpose(x, {1, 0, 2}) : x;
  for (int64_t layer = 0; layer < settings_.layers; ++layer) {
    last = run_layer(layer, layer == 0 ? y : dropout_(y), hidden, cell);
    y = last.y;
    all_hidden.push_back(last.hidden);
    if (last.cell.is_valid()) all_cells.push_back(last.cell);
  }
  const auto stacked = [](const std::vector<Var>& list) {
    return list.empty() ? Var() : list.size() == 1 ? list[0] : concat(list, 0);
  };
  return {settings_.batch_first ? transpose(y, {1, 0, 2}) : y, stacked(all_hidden), stacked(all_cells)};
}

// ---- SRU
// -------------------------------------------------------------------------------------------------------------

Sru::Sru(int64_t width)
    : width_(width),
      weight_(add_parameter(
          "weight", {3 * width, width},
          Init::uniform(-std::sqrt(3.0 / static_cast<double>(width)), std::sqrt(3.0 / static_cast<double>(width))))),
      weight_c_(add_parameter("weight_c", {2 * width}, Init::uniform(-0.5, 0.5))),
      bias_(add_parameter("bias", {2 * width}, Init::zeros())) {}

namespace {

// The recurrence for one position. Inputs: c, then W x, W_f x + b_f, W_r x + b_r and x of the position, then v_f, v_r.
Graph sru_cell(DType dtype, const Shape& of_position, int64_t width) {
  Graph body("sru");
  const auto input_of = [&](Shape shape) { return input(body, dtype, std::move(shape), ""); };
  const Var c = input_of(of_position);
  std::array<Var, 4> scanned;
  for (Var& value : scanned) value = input_of(of_position);
  const Var v_f = input_of({width}), v_r = input_of({width});
  const Var forget = sigmoid(scanned[1] + v_f * c), reset = sigmoid(scanned[2] + v_r * c);
  const Var next = forget * c + (1 - forget) * scanned[0];
  const Var h = reset * next + (1 - reset) * scanned[3];
  body.add_output(next.id());
  body.add_output(h.id());
  return body;
}

}  // namespace

Var Sru::forward(const Var& x) {
  AG_CHECK_USER(x.shape().has_rank() && x.rank() == 3, ShapeError, "[nn] sru: expected [length, batch, width], got {}",
                to_string(x.type()));
  const std::vector<Var> products = split(matmul(x, transpose(weight_.beside(x), {1, 0})), {width_, width_, width_}, 2);
  const std::vector<Var> bias = split(bias_.beside(x), {width_, width_}, 0);
  const std::vector<Var> of_cell = split(weight_c_.beside(x), {width_, width_}, 0);
  const Var first = reshape(slice(x, {0}, {1}, {0}), {-1, width_});
  const Shape of_position{x.shape()[1], width_};
  const Var zeros = filled_like(first, 0);
  return scan({zeros}, {products[0], products[1] + bias[0], products[2] + bias[1], x},
              sru_cell(x.dtype(), of_position, width_), {of_cell[0], of_cell[1]})[1];
}

}  // namespace autograph::nn
