#include "ops/recurrent/recurrent_body.h"

#include <algorithm>
#include <string>

#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/recurrent/activation_functions.h"

namespace autograph {
namespace {

Var piece(const Var& x, int64_t axis, int64_t begin, int64_t end) { return slice(x, {begin}, {end}, {axis}); }

// One direction of the layer as a scan over positions.
class Direction {
 public:
  Direction(DecomposeContext& context, const RecurrentKind& kind, int64_t number, bool backwards)
      : context_(context), kind_(kind), number_(number), backwards_(backwards) {}

  // y [length, batch, hidden], h and c [batch, hidden], what is kept [length, batch, ...].
  std::vector<Var> run(const Var& x, const RecurrentBodyStep& step) {
    r_ = of_direction(RecurrentInput::r);
    hidden_ = r_.dim(1);
    const Var lengths = context_.inputs[RecurrentInput::lengths].is_valid()
                            ? cast(context_.inputs[RecurrentInput::lengths], DType::i64)
                            : Var();
    // Sequences of their own lengths are turned around one by one.
    const bool turns = backwards_ && lengths.is_valid();
    const Var from_input = input_sums(turns ? reverse_sequence(x, lengths) : x);
    states_ = {first_state(RecurrentInput::first_h, x)};
    if (kind_.has_cell) states_.push_back(first_state(RecurrentInput::first_c, x));
    scanned_ = {from_input};
    if (lengths.is_valid()) scanned_.push_back(is_inside(from_input, lengths));
    const Graph body = make_body(step);
    const int64_t direction = backwards_ && !turns ? 1 : 0;
    std::vector<Var> outputs = scan(states_, scanned_, body, captured_,
                                    {{"scan_input_directions", std::vector<int64_t>(scanned_.size(), direction)},
                                     {"scan_output_directions", std::vector<int64_t>(keeps() ? 2 : 1, direction)}});
    const auto y = outputs.begin() + static_cast<int64_t>(states_.size());
    std::rotate(outputs.begin(), y, y + 1);
    if (turns) outputs[0] = reverse_sequence(outputs[0], lengths);
    return outputs;
  }

 private:
  bool keeps() const { return context_.num_outputs > 1 + states_.size(); }

  Var of_direction(size_t slot) { return squeeze(piece(context_.inputs[slot], 0, number_, number_ + 1), {0}); }

  // W x with its bias for all positions at once.
  Var input_sums(const Var& x) {
    Var sums = matmul(x, transpose(of_direction(RecurrentInput::w), {1, 0}));
    if (!context_.inputs[RecurrentInput::b].is_valid()) return sums;
    const Var bias = of_direction(RecurrentInput::b);
    const int64_t rows = kind_.gates * hidden_;
    hidden_bias_ = piece(bias, 0, rows, 2 * rows);
    return sums + piece(bias, 0, 0, rows);
  }

  Var first_state(size_t slot, const Var& x) {
    if (context_.inputs[slot].is_valid()) {
      const int64_t axis = context_.attributes.flag("layout") ? 1 : 0;
      return squeeze(piece(context_.inputs[slot], axis, number_, number_ + 1), {axis});
    }
    const Var batch = piece(extents_of(x), 0, 1, 2);
    return apply(expand_def(), {scalar_like(x, 0), concat({batch, constant_like(x, Tensor::vector({hidden_}))}, 0)});
  }

  // [length, batch, 1]: is a position one of the sequence?
  static Var is_inside(const Var& from_input, const Var& lengths) {
    const auto scalar = [&](int64_t value) { return constant_like(from_input, Tensor::scalar(value)); };
    const Var length = squeeze(piece(extents_of(from_input), 0, 0, 1), {0});
    const Var positions = unsqueeze(range(scalar(0), length, scalar(1)), {1, 2});
    return less(positions, unsqueeze(lengths, {0, 2}));
  }

  Graph make_body(const RecurrentBodyStep& step) {
    Graph body("cell");
    const auto input = [&](const Type& type) { return Var(body, body.add_input(type)); };
    RecurrentPosition cell;
    cell.hidden = hidden_;
    cell.h = input(states_[0].type());
    if (kind_.has_cell) cell.c = input(states_[1].type());
    const Var h = cell.h, c = cell.c;
    cell.from_input = input(type_of_position(scanned_[0]));
    const Var inside = scanned_.size() > 1 ? input(type_of_position(scanned_[1])) : Var();
    const auto capture = [&](const Var& value) {
      captured_.push_back(value);
      return input(value.type());
    };
    cell.r = capture(r_);
    if (hidden_bias_.is_valid()) cell.hidden_bias = capture(hidden_bias_);
    const bool has_peepholes = kind_.has_cell && context_.inputs[RecurrentInput::peepholes].is_valid();
    if (has_peepholes) cell.peepholes = capture(of_direction(RecurrentInput::peepholes));
    set_functions(cell);
    step(context_.attributes, cell);
    const auto kept = [&](const Var& now, const Var& before) {
      return inside.is_valid() ? where(inside, now, before) : now;
    };
    body.add_output(kept(cell.h, h).id());
    if (kind_.has_cell) body.add_output(kept(cell.c, c).id());
    body.add_output(kept(cell.h, scalar_like(h, 0)).id());
    if (keeps()) body.add_output(cell.kept.id());
    return body;
  }

  void set_functions(RecurrentPosition& cell) {
    const auto all = recurrent_activations(context_.attributes, kind_);
    const size_t count = kind_.default_activations.size();
    const std::vector<NamedActivation> own(all.begin() + static_cast<int64_t>(count) * number_,
                                           all.begin() + static_cast<int64_t>(count) * (number_ + 1));
    const float bound = context_.attributes.get_or<float>("clip", 0);
    cell.activate = [own, bound](size_t which, const Var& sum) {
      const Var x = bound > 0 ? clip(sum, scalar_like(sum, -bound), scalar_like(sum, bound)) : sum;
      return apply_activation(own[which].name, own[which].parameters, x);
    };
    cell.output = [own](const Var& x) { return apply_activation(own.back().name, own.back().parameters, x); };
  }

  DecomposeContext& context_;
  const RecurrentKind& kind_;
  int64_t number_;
  bool backwards_;
  int64_t hidden_ = 0;
  Var r_, hidden_bias_;
  std::vector<Var> states_, scanned_, captured_;
};

}  // namespace

Type type_of_position(const Var& x) {
  return Type(x.dtype(), Shape(std::vector<Dim>(x.shape().dims().begin() + 1, x.shape().dims().end())));
}

Var RecurrentPosition::gate(const Var& rows, int64_t which, int64_t axis) const {
  return piece(rows, axis, which * hidden, (which + 1) * hidden);
}

Var RecurrentPosition::from_hidden(const Var& state) const {
  const Var sums = matmul(state, transpose(r, {1, 0}));
  return hidden_bias.is_valid() ? sums + hidden_bias : sums;
}

std::vector<Var> recurrent_body(DecomposeContext& context, const RecurrentKind& kind, const RecurrentBodyStep& step) {
  const bool batch_first = context.attributes.flag("layout");
  const std::string& direction = context.attributes.text("direction");
  const Var x =
      batch_first ? transpose(context.inputs[RecurrentInput::x], {1, 0, 2}) : context.inputs[RecurrentInput::x];
  AG_CHECK_USER(context.inputs[RecurrentInput::r].type().is_static(), UnsupportedError,
                "[recurrent] body: expected weights of known extents, got {}",
                to_string(context.inputs[RecurrentInput::r].type()));
  const int64_t count = direction == "bidirectional" ? 2 : 1;
  const size_t states = kind.has_cell ? 2 : 1;
  std::vector<std::vector<Var>> parts(std::max(context.num_outputs, 1 + states));
  for (int64_t number = 0; number < count; ++number) {
    Direction one(context, kind, number, number == 1 || direction == "reverse");
    const std::vector<Var> outputs = one.run(x, step);
    for (size_t k = 0; k < parts.size(); ++k) parts[k].push_back(unsqueeze(outputs[k], {k == 0 ? 1 : 0}));
  }
  std::vector<Var> results;
  for (size_t k = 0; k < parts.size(); ++k) {
    const Var joined = count == 1 ? parts[k][0] : concat(parts[k], k == 0 ? 1 : 0);
    if (!batch_first) {
      results.push_back(joined);
    } else {
      results.push_back(k == 0 ? transpose(joined, {2, 0, 1, 3}) : transpose(joined, {1, 0, 2}));
    }
  }
  return results;
}

}  // namespace autograph
