#include "support/graphs/epilogue_ops.h"

#include <algorithm>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/normalization.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {

void OperandMaker::set_chain(Dims dims, size_t channel_axis) {
  dims_ = std::move(dims);
  channel_axis_ = channel_axis;
}

Var OperandMaker::scalar(float value) {
  const Dims spelled(static_cast<size_t>(draw(random_, 0, static_cast<int64_t>(dims_.size()))), 1);
  return constant(graph_, Tensor::of<float>(spelled, {value}));
}

float OperandMaker::number(std::initializer_list<float> values) { return draw_one_of(random_, values); }

Var OperandMaker::tensor(const Dims& dims, float low, float high, bool known) {
  Tensor elements = draw_tensor(random_, DType::f32, dims, low, high);
  if (known) return constant(graph_, std::move(elements));
  inputs_.push_back(std::move(elements));
  return input(graph_, DType::f32, Shape::of(dims), "");
}

Var OperandMaker::tensor_again(const Dims& dims, float low, float high) {
  const auto& given = graph_.inputs();
  const Type type(DType::f32, Shape::of(dims));
  const auto at = std::find_if(given.rbegin(), given.rend(), [&](ValueId v) { return graph_.type(v) == type; });
  return at == given.rend() ? tensor(dims, low, high) : Var(graph_, *at);
}

Var OperandMaker::vector(float low, float high) {
  Dims dims(dims_.size(), 1);
  dims[channel_axis_] = dims_[channel_axis_];
  // Leading extents of 1 may be left out.
  dims.erase(dims.begin(), dims.begin() + draw(random_, 0, static_cast<int64_t>(channel_axis_)));
  return tensor(dims, low, high, draw(random_, 0, 4) > 0);
}

namespace {

Var batch_norm(Var x, OperandMaker& o) {
  const Dims one{o.dims()[1]};
  return batch_normalization(x, o.tensor(one, 0.5F, 1.5F, true), o.tensor(one, -1, 1, true),
                             o.tensor(one, -0.5F, 0.5F, true), o.tensor(one, 0.2F, 2, true));
}

// Dims of one number per instance and channel: what a squeeze-and-excitation gives.
Dims gate_dims(const OperandMaker& operands) {
  Dims dims = operands.dims();
  for (size_t a = operands.channel_axis() + 1; a < dims.size(); ++a) dims[a] = 1;
  return dims;
}

constexpr EpilogueKind kKinds[] = {
    {"relu", [](Var x, OperandMaker&) { return relu(x); }},
    {"leaky_relu",
     [](Var x, OperandMaker& o) {
       return leaky_relu(x, o.number({0.1F, 0.3F, 0.01F}));
     }},
    {"clip",
     [](Var x, OperandMaker& o) {
       const float low = o.number({-1.5F, -0.25F, 0});
       return clip(x, o.bound(low), o.bound(low + o.number({1, 2.5F, 6})));
     }},
    {"clip_low",
     [](Var x, OperandMaker& o) {
       return clip(x, o.bound(o.number({-0.7F, 0.2F})), Var());
     }},
    {"hard_swish", [](Var x, OperandMaker&) { return hard_swish(x); }},
    {"hard_sigmoid",
     [](Var x, OperandMaker& o) {
       return hard_sigmoid(x, o.number({0.2F, 1.0F / 6}), 0.5F);
     }},
    {"sigmoid", [](Var x, OperandMaker&) { return sigmoid(x); }},
    {"tanh", [](Var x, OperandMaker&) { return tanh(x); }},
    {"gelu", [](Var x, OperandMaker&) { return gelu(x); }},
    {"gelu_tanh", [](Var x, OperandMaker&) { return gelu(x, true); }},
    {"elu",
     [](Var x, OperandMaker& o) {
       return elu(x, o.number({1, 0.5F}));
     }},
    {"swish",
     [](Var x, OperandMaker& o) {
       return swish(x, o.number({1, 1.7F}));
     }},
    {"mish", [](Var x, OperandMaker&) { return mish(x); }},
    {"softplus", [](Var x, OperandMaker&) { return softplus(x); }},
    {"exp", [](Var x, OperandMaker&) { return exp(x); }},
    {"abs", [](Var x, OperandMaker&) { return abs(x); }},
    {"sqrt", [](Var x, OperandMaker&) { return sqrt(x); }},
    {"neg", [](Var x, OperandMaker&) { return neg(x); }},
    {"add_scalar",
     [](Var x, OperandMaker& o) {
       return add(x, o.scalar(o.number({0.586F, -0.37F})));
     }},
    {"scalar_add",
     [](Var x, OperandMaker& o) {
       return add(o.scalar(o.number({0.21F, -0.9F})), x);
     }},
    {"mul_scalar",
     [](Var x, OperandMaker& o) {
       return mul(x, o.scalar(o.number({1.384F, -0.61F})));
     }},
    {"scalar_mul",
     [](Var x, OperandMaker& o) {
       return mul(o.scalar(o.number({0.45F, 1.9F})), x);
     }},
    {"sub_scalar",
     [](Var x, OperandMaker& o) {
       return sub(x, o.scalar(o.number({0.3F, -0.8F})));
     }},
    {"scalar_sub",
     [](Var x, OperandMaker& o) {
       return sub(o.scalar(o.number({0.4F, 1.3F})), x);
     }},
    {"div_scalar",
     [](Var x, OperandMaker& o) {
       return div(x, o.scalar(o.number({1.7F, -6})));
     }},
    {"scalar_div",
     [](Var x, OperandMaker& o) {
       return div(o.scalar(o.number({1, 2.5F})), x);
     }},
    {"max_scalar",
     [](Var x, OperandMaker& o) {
       return max({x, o.scalar(o.number({0, -0.4F}))});
     }},
    {"scalar_min",
     [](Var x, OperandMaker& o) {
       return min({o.scalar(o.number({0.9F, 0.1F})), x});
     }},
    {"add_vector", [](Var x, OperandMaker& o) { return add(x, o.vector(-1, 1)); }},
    {"mul_vector", [](Var x, OperandMaker& o) { return mul(o.vector(0.5F, 1.5F), x); }},
    {"sub_vector", [](Var x, OperandMaker& o) { return sub(x, o.vector(-1, 1)); }},
    {"prelu_scalar",
     [](Var x, OperandMaker& o) {
       return prelu(x, o.scalar(o.number({0.25F, 0.1F})));
     }},
    {"prelu_vector", [](Var x, OperandMaker& o) { return prelu(x, o.vector(0.05F, 0.5F)); }},
    {"residual", [](Var x, OperandMaker& o) { return add(x, o.tensor(o.dims(), -1, 1)); }},
    {"residual_left", [](Var x, OperandMaker& o) { return add(o.tensor(o.dims(), -1, 1), x); }},
    {"residual_again", [](Var x, OperandMaker& o) { return add(x, o.tensor_again(o.dims(), -1, 1)); }},
    {"known_residual", [](Var x, OperandMaker& o) { return add(x, o.tensor(o.dims(), -1, 1, true)); }},
    {"mul_again", [](Var x, OperandMaker& o) { return mul(o.tensor_again(o.dims(), 0.5F, 1.5F), x); }},
    {"mul_residual", [](Var x, OperandMaker& o) { return mul(x, o.tensor(o.dims(), 0.5F, 1.5F)); }},
    {"sub_residual", [](Var x, OperandMaker& o) { return sub(x, o.tensor(o.dims(), -1, 1)); }},
    {"batch_norm", [](Var x, OperandMaker& o) { return o.dims().size() > 1 ? batch_norm(x, o) : relu(x); }},
    {"mul_gate", [](Var x, OperandMaker& o) { return mul(x, o.tensor(gate_dims(o), 0, 1)); }},
    {"add_gate", [](Var x, OperandMaker& o) { return add(o.tensor(gate_dims(o), -1, 1), x); }},
};

}  // namespace

std::span<const EpilogueKind> epilogue_kinds() { return kKinds; }

std::string names_of(std::span<const size_t> kinds) {
  std::string names;
  for (const size_t k : kinds) names += (names.empty() ? "" : " ") + std::string(kKinds[k].name);
  return names;
}

}  // namespace autograph
