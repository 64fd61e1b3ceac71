#include "ops/recurrent/walk_work.h"

#include <algorithm>

#include "ops/defs.h"
#include "ops/recurrent/recurrent.h"

namespace autograph {
namespace {

constexpr size_t kX = 0;  // or what else has all positions
constexpr size_t kRecurrentOfGradient = 1;

bool is_layer(const OpDef& op) {
  const OpDef* const layers[] = {&lstm_def(), &gru_def(), &rnn_def(), &dynamic_quantize_lstm_def()};
  return std::find(std::begin(layers), std::end(layers), &op) != std::end(layers);
}

bool is_gradient(const OpDef& op) {
  return &op == &lstm_gates_grad_def() || &op == &gru_gates_grad_def() || &op == &rnn_gates_grad_def();
}

double elements_of(const Type& type) { return static_cast<double>(type.shape().num_elements().value_or(0)); }

double bytes_of(const Type& type) { return elements_of(type) * static_cast<double>(element_size(type.dtype())); }

}  // namespace

std::optional<WalkWork> walk_work(const OpDef& op, const CostContext& context) {
  const bool is_forward = is_layer(op);
  if (!is_forward && !is_gradient(op)) return std::nullopt;
  const Dims x = context.inputs[kX].shape().static_dims();
  const bool batch_first = context.attributes.get_or<int64_t>("layout", 0) != 0;
  WalkWork walk{.steps = static_cast<double>(x[batch_first ? 1 : 0])};
  if (walk.steps < 2) return std::nullopt;
  const auto batch = static_cast<double>(x[batch_first ? 0 : 1]);
  const Type& r = context.inputs[is_forward ? RecurrentInput::r : kRecurrentOfGradient];
  const OpCost cost = cost_of(op, context);
  walk.flops = is_forward ? 2 * elements_of(r) * batch : cost.flops / walk.steps;
  const double weights = bytes_of(r) + (is_forward ? bytes_of(context.inputs[RecurrentInput::w]) : 0);
  walk.bytes = bytes_of(r) + (cost.bytes - weights) / walk.steps;
  for (const Type& type : context.outputs) {
    if (type.is_tensor()) walk.outputs += elements_of(type) / walk.steps;
  }
  return walk;
}

}  // namespace autograph
