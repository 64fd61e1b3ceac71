// adagrad, adam, momentum: one step of an optimiser for any number of tensors, as in ai.onnx.preview.training.
//
// The inputs after the learning rate r and the step count t are groups of equally many tensors: the weights X, their
// gradients G and the op's state. The outputs are the new X and the new state. g = norm_coefficient * X + G below.
//   adagrad:  H' = H + g^2,  X' = X - r / (1 + t * decay_factor) * g / (sqrt(H') + epsilon)
//   momentum: V' = alpha * V + (t > 0 ? beta : 1) * g,  X' = X - r * V', or X - r * (g + alpha * V') with nesterov
//   adam:     V' = alpha * V + (1 - alpha) * g,  H' = beta * H + (1 - beta) * g^2,
//             X' = (1 - norm_coefficient_post) * (X - r' * V' / (sqrt(H') + epsilon)),
//             where r' = t > 0 ? r * sqrt(1 - beta^t) / (1 - alpha^t) : r
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/training.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/extents.h"
#include "ops/real_values.h"
#include "ops/sample.h"

namespace autograph {
namespace {

constexpr size_t kFirstTensor = 2;  // after r and t

// `Groups` input groups (X, G, state...) give Groups - 1 output groups (X, state...).
template <size_t Groups>
void infer(InferContext& context) {
  for (const size_t slot : {size_t{0}, size_t{1}}) {
    const Shape& shape = context.shape(slot);
    const bool one = !shape.is_static() || shape.num_elements() == 1;
    context.require<ShapeError>(one, slot == 0 ? "r" : "t",
                                fmt::format("expected one element, got {}", to_string(shape)));
  }
  const size_t tensors = context.num_inputs() - kFirstTensor;
  context.require<ValueError>(tensors > 0 && tensors % Groups == 0, "inputs",
                              fmt::format("expected groups of {} tensors, got {} tensors", Groups, tensors));
  const size_t count = tensors / Groups;
  context.require<ValueError>(context.num_outputs() == count * (Groups - 1), "outputs",
                              fmt::format("expected {}, got {}", count * (Groups - 1), context.num_outputs()));
  for (size_t i = 0; i < count; ++i) {
    Type type = context.input(kFirstTensor + i);
    for (size_t group = 1; group < Groups; ++group) {
      const Type& other = context.input(kFirstTensor + group * count + i);
      context.require<TypeError>(other.dtype() == type.dtype(), "inputs",
                                 fmt::format("expected {} for tensor {} of every group, got {}",
                                             to_string(type.dtype()), i, to_string(other.dtype())));
      const bool same = !other.is_static() || !type.is_static() || other.shape() == type.shape();
      context.require<ShapeError>(same, "inputs",
                                  fmt::format("expected {} for tensor {} of every group, got {}",
                                              to_string(type.shape()), i, to_string(other.shape())));
    }
    for (size_t group = 0; group + 1 < Groups; ++group) context.set_output(group * count + i, type);
  }
}

// Learning rate, step count and attributes of one call.
struct StepOptions {
  const Attributes& attributes;
  double rate;
  int64_t steps;
  double operator[](const char* name) const { return attributes.real(name); }
};

// Updates one element: `x` and `state` in place, from gradient `g` without the norm term.
using UpdateFn = void (*)(const StepOptions& options, double g, double& x, double* state);

template <size_t Groups>
void run_optimizer(const OpCall& call, UpdateFn update) {
  const StepOptions options{call.attributes, real_values(call.input(0)).front(), call.input(1).data<int64_t>()[0]};
  const size_t count = (call.inputs.size() - kFirstTensor) / Groups;
  for (size_t i = 0; i < count; ++i) {
    std::vector<std::vector<double>> groups;
    for (size_t group = 0; group < Groups; ++group) {
      groups.push_back(real_values(call.input(kFirstTensor + group * count + i)));
    }
    for (size_t e = 0; e < groups[0].size(); ++e) {
      double state[2] = {groups[2][e], Groups > 3 ? groups[Groups - 1][e] : 0.0};
      update(options, options["norm_coefficient"] * groups[0][e] + groups[1][e], groups[0][e], state);
      for (size_t group = 2; group < Groups; ++group) groups[group][e] = state[group - 2];
    }
    store_reals(groups[0], call.output(i));
    for (size_t group = 2; group < Groups; ++group) store_reals(groups[group], call.output((group - 1) * count + i));
  }
}

void adagrad_reference(const OpCall& call) {
  run_optimizer<3>(call, [](const StepOptions& o, double g, double& x, double* state) {
    state[0] += g * g;
    const double rate = o.rate / (1 + static_cast<double>(o.steps) * o["decay_factor"]);
    x -= rate * g / (std::sqrt(state[0]) + o["epsilon"]);
  });
}

void momentum_reference(const OpCall& call) {
  run_optimizer<3>(call, [](const StepOptions& o, double g, double& x, double* state) {
    state[0] = o["alpha"] * state[0] + (o.steps > 0 ? o["beta"] : 1.0) * g;
    const bool nesterov = o.attributes.text("mode") == "nesterov";
    x -= o.rate * (nesterov ? g + o["alpha"] * state[0] : state[0]);
  });
}

void adam_reference(const OpCall& call) {
  run_optimizer<4>(call, [](const StepOptions& o, double g, double& x, double* state) {
    const double alpha = o["alpha"];
    const double beta = o["beta"];
    state[0] = alpha * state[0] + (1 - alpha) * g;
    state[1] = beta * state[1] + (1 - beta) * g * g;
    const auto steps = static_cast<double>(o.steps);
    const double rate =
        o.steps > 0 ? o.rate * std::sqrt(1 - std::pow(beta, steps)) / (1 - std::pow(alpha, steps)) : o.rate;
    x = (1 - o["norm_coefficient_post"]) * (x - rate * state[0] / (std::sqrt(state[1]) + o["epsilon"]));
  });
}

template <size_t Groups>
OpSample sample(Random& random) {
  const int64_t count = draw(random, 1, 2);
  OpSample result;
  result.inputs = {draw_tensor(random, DType::f32, {}, 0.0, 1.0), draw_tensor(random, DType::i64, {}, 0, 5)};
  std::vector<Dims> shapes;
  for (int64_t i = 0; i < count; ++i) shapes.push_back(draw_dims(random, 0, 2));
  for (size_t group = 0; group < Groups; ++group) {
    // State is not negative: adagrad and adam take its root.
    for (const Dims& dims : shapes) {
      result.inputs.emplace_back(draw_tensor(random, DType::f32, dims, group < 2 ? -1.0 : 0.0, 1.0));
    }
  }
  result.num_outputs = static_cast<int>(count) * static_cast<int>(Groups - 1);
  return result;
}

OpSample momentum_sample(Random& random) {
  OpSample result = sample<3>(random);
  result.attributes = {{"alpha", 0.9f},
                       {"beta", 0.5f},
                       {"norm_coefficient", draw_one_of(random, {0.0f, 0.01f})},
                       {"mode", std::string(draw_one_of(random, {"standard", "nesterov"}))}};
  return result;
}

AttributeSpec real_attribute(std::string_view name, std::string_view doc, float otherwise) {
  return {name, AttributeType::real, doc, otherwise};
}

AttributeSpec required_real(std::string_view name, std::string_view doc) {
  return {.name = name, .type = AttributeType::real, .doc = doc, .required = true};
}

// The parts that all three share.
OpDef optimizer(std::string_view name, std::string_view doc, std::string_view onnx_name) {
  return {
      .name = name,
      .doc = doc,
      .inputs = {{"r", "T1", "Learning rate, one element."},
                 {"t", "T2", "Number of steps done, one element."},
                 {"inputs", "T3", "All weights, then all gradients, then all states.", Arity::variadic}},
      .outputs = {{"outputs", "T3", "All new weights, then all new states.", Arity::variadic}},
      .types = {{"T1", DTypeSet{DType::f32, DType::f64}},
                {"T2", dtypes::kI64},
                {"T3", DTypeSet{DType::f32, DType::f64}}},
      .no_grad = "a step of an optimiser is not differentiated",
      .onnx = {{.name = onnx_name, .domain = "ai.onnx.preview.training"}},
  };
}

// `share`: of how many equal groups the tensors consist; all but the gradients come out again.
std::vector<Var> apply_step(const OpDef& op, size_t share, std::vector<Var> inputs, const std::vector<Var>& tensors,
                            Attributes attributes) {
  inputs.insert(inputs.end(), tensors.begin(), tensors.end());
  return apply_all(op, inputs, std::move(attributes), static_cast<int>(tensors.size() / share * (share - 1)));
}

}  // namespace

std::vector<Var> adagrad(Var rate, Var step, const std::vector<Var>& tensors, Attributes attributes) {
  return apply_step(adagrad_def(), 3, {rate, step}, tensors, std::move(attributes));
}

std::vector<Var> adam(Var rate, Var step, const std::vector<Var>& tensors, Attributes attributes) {
  return apply_step(adam_def(), 4, {rate, step}, tensors, std::move(attributes));
}

std::vector<Var> momentum(Var rate, Var step, const std::vector<Var>& tensors, Attributes attributes) {
  return apply_step(momentum_def(), 3, {rate, step}, tensors, std::move(attributes));
}

const OpDef& adagrad_def() {
  static const OpDef def = [] {
    OpDef op = optimizer("adagrad", "One step of Adagrad: states gather squared gradients.", "Adagrad");
    op.attributes = {real_attribute("decay_factor", "Decay of the learning rate per step.", 0.0f),
                     real_attribute("epsilon", "Added to the root of the state.", 1e-6f),
                     real_attribute("norm_coefficient", "Weight of the L2 term.", 0.0f)};
    op.infer = infer<3>;
    op.reference = adagrad_reference;
    op.sample = sample<3>;
    return op;
  }();
  return def;
}

const OpDef& adam_def() {
  static const OpDef def = [] {
    OpDef op = optimizer("adam", "One step of Adam: states are averages of gradients and of their squares.", "Adam");
    op.attributes = {real_attribute("alpha", "Weight of the old average of gradients.", 0.9f),
                     real_attribute("beta", "Weight of the old average of squares.", 0.999f),
                     real_attribute("epsilon", "Added to the root of the second state.", 1e-6f),
                     real_attribute("norm_coefficient", "Weight of the L2 term.", 0.0f),
                     real_attribute("norm_coefficient_post", "Share of the new weights that is taken away.", 0.0f)};
    op.infer = infer<4>;
    op.reference = adam_reference;
    op.sample = sample<4>;
    return op;
  }();
  return def;
}

const OpDef& momentum_def() {
  static const OpDef def = [] {
    OpDef op = optimizer("momentum", "One step of gradient descent with momentum.", "Momentum");
    op.attributes = {required_real("alpha", "Weight of the old momentum."),
                     required_real("beta", "Weight of the gradient after the first step."),
                     {.name = "mode",
                      .type = AttributeType::text,
                      .doc = "Which momentum: the plain one or Nesterov's.",
                      .required = true,
                      .allowed = {"standard", "nesterov"}},
                     required_real("norm_coefficient", "Weight of the L2 term.")};
    op.infer = infer<3>;
    op.reference = momentum_reference;
    op.sample = momentum_sample;
    return op;
  }();
  return def;
}

}  // namespace autograph
