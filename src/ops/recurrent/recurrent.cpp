#include "ops/recurrent/recurrent.h"

#include <algorithm>

#include "base/check.h"
#include "graph/moved_bytes.h"
#include "ops/extents.h"
#include "ops/real_values.h"
#include "ops/recurrent/activation_functions.h"
#include "ops/sample.h"

namespace autograph {
namespace {

int64_t num_directions(const Attributes& attributes) { return attributes.text("direction") == "bidirectional" ? 2 : 1; }

std::vector<std::string> activation_names(const Attributes& attributes, const RecurrentKind& kind) {
  const auto* given = attributes.find_as<std::vector<std::string>>("activations");
  if (given && !given->empty()) return *given;
  std::vector<std::string> names;
  for (int64_t direction = 0; direction < num_directions(attributes); ++direction) {
    names.insert(names.end(), kind.default_activations.begin(), kind.default_activations.end());
  }
  return names;
}

void check_attributes_of(const InferContext& context, const RecurrentKind& kind) {
  const Attributes& attributes = context.attributes();
  const int64_t layout = attributes.get_or<int64_t>("layout", 0);
  context.require<ValueError>(layout == 0 || layout == 1, "layout", fmt::format("expected 0 or 1, got {}", layout));
  const std::vector<std::string> names = activation_names(attributes, kind);
  const size_t expected = kind.default_activations.size() * static_cast<size_t>(num_directions(attributes));
  context.require<ValueError>(names.size() == expected, "activations",
                              fmt::format("expected {} names, got {}", expected, names.size()));
  for (const std::string& name : names) {
    context.require<ValueError>(find_activation(name).has_value(), "activations",
                                fmt::format("'{}' is not an activation function", name));
  }
  context.require<ValueError>(attributes.get_or<float>("clip", 0) >= 0, "clip", "expected 0 or more");
}

}  // namespace

void require_dims(const InferContext& context, size_t slot, const std::vector<Dim>& dims, std::string_view what) {
  if (!context.has_input(slot)) return;
  context.require_rank(slot, static_cast<int64_t>(dims.size()));
  const Shape& shape = context.shape(slot);
  if (!shape.has_rank()) return;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    same_extent(context, dims[axis], shape[static_cast<int64_t>(axis)], what);
  }
}

Dim gate_rows(int64_t gates, const Dim& hidden) { return hidden.is_unknown() ? hidden : Dim(gates) * hidden; }

namespace {

Dim hidden_extent(const InferContext& context, const RecurrentKind& kind) {
  const Shape& r = context.shape(2);
  Dim hidden = r.has_rank() ? r[kind.weights_by_input ? 1 : 2] : Dim::unknown();
  if (const int64_t* given = context.attributes().find_as<int64_t>("hidden_size")) {
    context.require<ValueError>(*given >= 1, "hidden_size", fmt::format("expected 1 or more, got {}", *given));
    hidden = same_extent(context, Dim(*given), hidden, "hidden_size");
  }
  return hidden;
}

}  // namespace

void infer_recurrent(InferContext& context, const RecurrentKind& kind) {
  check_attributes_of(context, kind);
  for (const size_t slot : {size_t{0}, size_t{1}, size_t{2}}) context.require_rank(slot, 3);
  const bool batch_first = context.attributes().get_or<int64_t>("layout", 0) != 0;
  const Shape& x = context.shape(0);
  const Dim length = x.has_rank() ? x[batch_first ? 1 : 0] : Dim::unknown();
  const Dim batch = x.has_rank() ? x[batch_first ? 0 : 1] : Dim::unknown();
  const Dim input = x.has_rank() ? x[2] : Dim::unknown();
  const Dim hidden = hidden_extent(context, kind);
  const Dim directions(num_directions(context.attributes()));
  const Dim rows = gate_rows(kind.gates, hidden);
  const auto weights = [&](const Dim& depth) {
    return kind.weights_by_input ? std::vector<Dim>{directions, depth, rows}
                                 : std::vector<Dim>{directions, rows, depth};
  };
  require_dims(context, 1, weights(input), "W");
  require_dims(context, 2, weights(hidden), "R");
  require_dims(context, 3, {directions, gate_rows(2, rows)}, "B");
  require_vector(context, 4, batch, "sequence_lens");
  const std::vector<Dim> state =
      batch_first ? std::vector<Dim>{batch, directions, hidden} : std::vector<Dim>{directions, batch, hidden};
  require_dims(context, 5, state, "initial_h");
  if (kind.has_cell) {
    require_dims(context, 6, state, "initial_c");
    require_dims(context, 7, {directions, gate_rows(3, hidden)}, "P");
  }
  context.set_output(0, context.dtype(0),
                     batch_first ? Shape{batch, length, directions, hidden} : Shape{length, directions, batch, hidden});
  context.set_output(1, context.dtype(0), Shape(state));
  context.set_output(2, context.dtype(0), Shape(state));
}

void infer_kept(InferContext& context, size_t slot, int64_t rows, std::string_view name) {
  context.require<ValueError>(!context.attributes().flag("layout") && !context.has_input(RecurrentInput::lengths), name,
                              "expected layout 0 and no sequence_lens");
  const Shape y = context.output_types()[0].shape();
  context.set_output(slot, context.dtype(0), Shape{y[1], y[0], y[2], gate_rows(rows, y[3])});
}

OpCost recurrent_cost(const CostContext& context) {
  OpCost cost{.bytes = moved_bytes(context)};
  const Shape& x = context.inputs[0].shape();
  double weights = 0;
  for (const size_t slot : {size_t{1}, size_t{2}}) {
    weights += static_cast<double>(context.inputs[slot].shape().num_elements().value_or(0));
  }
  cost.flops = 2 * weights * static_cast<double>(x[0].value()) * static_cast<double>(x[1].value());
  return cost;
}

std::vector<AttributeSpec> recurrent_attributes() {
  return {
      {"activation_alpha", AttributeType::reals, "First parameters of the activation functions that take one."},
      {"activation_beta", AttributeType::reals, "Second parameters of the activation functions that take one."},
      {"activations", AttributeType::texts, "Names of the activation functions, direction by direction."},
      {"clip", AttributeType::real, "Bound of the sums that go into activation functions; 0 or missing: none."},
      {.name = "direction",
       .type = AttributeType::text,
       .doc = "Which way to walk over the positions.",
       .default_value = std::string("forward"),
       .allowed = {"forward", "reverse", "bidirectional"}},
      {"hidden_size", AttributeType::integer, "Elements of the hidden state; must agree with R."},
      {"layout", AttributeType::integer, "0: positions first; 1: batch first.", int64_t{0}},
  };
}

// ---- Reference -------------------------------------------------------------------------------------------------

double RecurrentDirection::from_input(int64_t gate, int64_t j, const double* x) const {
  const int64_t row = gate * hidden + j;
  double total = b.empty() ? 0.0 : b[static_cast<size_t>(row)];
  for (int64_t i = 0; i < input; ++i) total += w[static_cast<size_t>(row * input + i)] * x[i];
  return total;
}

double RecurrentDirection::from_hidden(int64_t gate, int64_t j, const double* h) const {
  const int64_t row = gate * hidden + j;
  double total = 0;
  for (int64_t i = 0; i < hidden; ++i) total += r[static_cast<size_t>(row * hidden + i)] * h[i];
  return total;
}

double RecurrentDirection::hidden_bias(int64_t gate, int64_t j) const {
  return b.empty() ? 0.0 : b[static_cast<size_t>((gates + gate) * hidden + j)];
}

double RecurrentDirection::activate(size_t which, double value) const {
  if (clip > 0) value = std::clamp(value, -clip, clip);
  return functions[which](value);
}

std::vector<NamedActivation> recurrent_activations(const Attributes& attributes, const RecurrentKind& kind) {
  const auto alphas = attributes.get_or<std::vector<float>>("activation_alpha", {});
  const auto betas = attributes.get_or<std::vector<float>>("activation_beta", {});
  size_t next_alpha = 0;
  size_t next_beta = 0;
  std::vector<NamedActivation> functions;
  for (const std::string& name : activation_names(attributes, kind)) {
    ActivationParameters parameters = *find_activation(name);
    if (parameters.alpha && next_alpha < alphas.size()) parameters.alpha = alphas[next_alpha++];
    if (parameters.beta && next_beta < betas.size()) parameters.beta = betas[next_beta++];
    functions.push_back({name, parameters});
  }
  return functions;
}

namespace {

std::vector<Activation> all_activations(const Attributes& attributes, const RecurrentKind& kind) {
  std::vector<Activation> functions;
  for (const NamedActivation& function : recurrent_activations(attributes, kind)) {
    functions.push_back(make_activation(function.name, function.parameters));
  }
  return functions;
}

std::vector<int64_t> sequence_lengths(const OpCall& call, int64_t length, int64_t batch) {
  std::vector<int64_t> lengths(static_cast<size_t>(batch), length);
  const TensorView given = call.input(4);
  if (!given.is_present()) return lengths;
  for (size_t b = 0; b < lengths.size(); ++b) {
    lengths[b] = given.data<int32_t>()[b];
    AG_CHECK_USER(lengths[b] >= 0 && lengths[b] <= length, ValueError,
                  "[recurrent] sequence_lens: expected 0..{}, got {}", length, lengths[b]);
  }
  return lengths;
}

// Where the elements of position t, direction d and instance b start in x, Y and the states, for either layout.
struct RecurrentLayout {
  bool batch_first;
  int64_t length, batch, input, directions, hidden;

  int64_t x(int64_t t, int64_t b) const { return (batch_first ? b * length + t : t * batch + b) * input; }
  int64_t y(int64_t t, int64_t d, int64_t b) const {
    return (batch_first ? (b * length + t) * directions + d : (t * directions + d) * batch + b) * hidden;
  }
  int64_t state(int64_t d, int64_t b) const { return (batch_first ? b * directions + d : d * batch + b) * hidden; }
};

// The part of a weight tensor that belongs to direction `d`; empty when the tensor is not given.
std::span<const double> part(const std::vector<double>& values, int64_t d, int64_t directions) {
  const size_t size = values.size() / static_cast<size_t>(directions);
  return std::span<const double>(values).subspan(static_cast<size_t>(d) * size, size);
}

std::vector<double> state_part(const std::vector<double>& states, int64_t begin, int64_t hidden) {
  if (states.empty()) return std::vector<double>(static_cast<size_t>(hidden), 0.0);
  return {states.begin() + begin, states.begin() + begin + hidden};
}

}  // namespace

void run_recurrent(const OpCall& call, const RecurrentKind& kind, const RecurrentStep& step) {
  const bool batch_first = call.attributes.flag("layout");
  const TensorView x_view = call.input(0);
  const RecurrentLayout at{batch_first,
                           x_view.dim(batch_first ? 1 : 0),
                           x_view.dim(batch_first ? 0 : 1),
                           x_view.dim(2),
                           call.input(1).dim(0),
                           call.input(2).dim(2)};
  const std::vector<double> x = real_values(x_view), w = real_values(call.input(1)), r = real_values(call.input(2)),
                            bias = real_values(call.input(3)), first_h = real_values(call.input(5)),
                            first_c = kind.has_cell ? real_values(call.input(6)) : std::vector<double>(),
                            peepholes = kind.has_cell ? real_values(call.input(7)) : std::vector<double>();
  const std::vector<int64_t> lengths = sequence_lengths(call, at.length, at.batch);
  const std::vector<Activation> functions = all_activations(call.attributes, kind);
  const auto per_direction = static_cast<int64_t>(kind.default_activations.size());
  std::vector<double> y(static_cast<size_t>(at.length * at.directions * at.batch * at.hidden), 0.0);
  std::vector<double> last_h(static_cast<size_t>(at.directions * at.batch * at.hidden));
  std::vector<double> last_c(last_h.size());
  for (int64_t d = 0; d < at.directions; ++d) {
    RecurrentDirection direction{at.hidden,
                                 at.input,
                                 kind.gates,
                                 part(w, d, at.directions),
                                 part(r, d, at.directions),
                                 part(bias, d, at.directions),
                                 part(peepholes, d, at.directions),
                                 {},
                                 0};
    direction.functions.assign(functions.begin() + d * per_direction, functions.begin() + (d + 1) * per_direction);
    direction.clip = call.attributes.get_or<float>("clip", 0);
    const bool backwards = d == 1 || call.attributes.text("direction") == "reverse";
    for (int64_t b = 0; b < at.batch; ++b) {
      std::vector<double> h = state_part(first_h, at.state(d, b), at.hidden);
      std::vector<double> c = state_part(first_c, at.state(d, b), at.hidden);
      const int64_t length = lengths[static_cast<size_t>(b)];
      for (int64_t i = 0; i < length; ++i) {
        const int64_t t = backwards ? length - 1 - i : i;
        step(direction, x.data() + at.x(t, b), h, c);
        std::copy(h.begin(), h.end(), y.begin() + at.y(t, d, b));
      }
      std::copy(h.begin(), h.end(), last_h.begin() + at.state(d, b));
      std::copy(c.begin(), c.end(), last_c.begin() + at.state(d, b));
    }
  }
  const std::vector<double>* results[] = {&y, &last_h, &last_c};
  for (size_t slot = 0; slot < (kind.has_cell ? 3 : 2); ++slot) {
    if (call.has_output(slot)) store_reals(*results[slot], call.output(slot));
  }
}

// The loop goes through [direction, instance, step]; the output is [direction, position, instance].
void store_kept(const OpCall& call, size_t slot, const std::vector<double>& rows) {
  const TensorView to = call.output(slot);
  const int64_t length = to.dim(1), batch = to.dim(2), size = to.dim(3);
  std::vector<double> kept(rows.size());
  for (int64_t row = 0; row < to.dim(0) * batch * length; ++row) {
    const int64_t d = row / (batch * length), b = row / length % batch, i = row % length;
    const bool backwards = d == 1 || call.attributes.text("direction") == "reverse";
    const int64_t t = backwards ? length - 1 - i : i;
    std::copy_n(rows.begin() + row * size, size, kept.begin() + ((d * length + t) * batch + b) * size);
  }
  store_reals(kept, to);
}

OpSample sample_recurrent(Random& random, const RecurrentKind& kind) {
  const int64_t length = draw(random, 1, 4), batch = draw(random, 1, 3), input = draw(random, 1, 3);
  const int64_t hidden = draw(random, 1, 3);
  const char* direction = draw_one_of(random, {"forward", "reverse", "bidirectional"});
  const int64_t directions = std::string_view(direction) == "bidirectional" ? 2 : 1;
  const bool batch_first = draw_bool(random);
  const auto tensor = [&](Dims dims) { return draw_tensor(random, DType::f32, std::move(dims), -1, 1); };
  OpSample result;
  result.inputs = {tensor(batch_first ? Dims{batch, length, input} : Dims{length, batch, input}),
                   tensor({directions, kind.gates * hidden, input}), tensor({directions, kind.gates * hidden, hidden})};
  result.inputs.resize(6);
  if (draw_bool(random)) result.inputs[3] = tensor({directions, 2 * kind.gates * hidden});
  if (draw_bool(random)) {
    result.inputs[4] = draw_tensor(random, DType::i32, {batch}, 0, static_cast<double>(length));
  }
  const Dims state = batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  if (draw_bool(random)) result.inputs[5] = tensor(state);
  if (kind.has_cell) {
    result.inputs.resize(8);
    if (draw_bool(random)) result.inputs[6] = tensor(state);
    if (draw_bool(random)) result.inputs[7] = tensor({directions, 3 * hidden});
  }
  result.attributes = {{"direction", std::string(direction)}, {"layout", int64_t{batch_first}}};
  if (draw_bool(random)) result.attributes.set("hidden_size", hidden);
  if (draw_bool(random)) result.attributes.set("clip", 0.5f);
  if (draw_bool(random)) {
    std::vector<std::string> names;
    for (size_t i = 0; i < kind.default_activations.size() * static_cast<size_t>(directions); ++i) {
      names.emplace_back(draw_one_of(random, {"Tanh", "Sigmoid", "Relu", "HardSigmoid", "Softsign", "Affine"}));
    }
    result.attributes.set("activations", names);
  }
  result.num_outputs = static_cast<int>(draw(random, 1, kind.has_cell ? 3 : 2));
  return result;
}

void sample_kept(Random& random, size_t slot, OpSample& sample) {
  const bool may_keep = !sample.attributes.flag("layout") && !sample.inputs[RecurrentInput::lengths].is_present();
  if (may_keep && draw_bool(random)) sample.num_outputs = static_cast<int>(slot) + 1;
}

}  // namespace autograph
