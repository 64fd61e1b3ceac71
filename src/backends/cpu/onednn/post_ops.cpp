// Each formula of an elementwise op that oneDNN has is one line of a table. A residual is a sum post-op: the output
// starts as a copy of it, which costs nothing when the memory plan gives both the same place. Behind an activation that
// has a pass of our own that pass adds it, and so does a pass where primitives take no sum at its place.
//
// oneDNN 2.6 keeps the code of formulas by their kind (jit_uni_postops_injector): of two of a kind in one primitive the
// second is computed with the numbers of the first. So neighbours of a kind become one formula where that is the same,
// and a chain with two of a kind and different numbers ends before the second.
//
// oneDNN's relu and clip give a number where the value is NaN; a network that makes NaN is better debugged with
// --check-every-node, which runs every node by itself.
#include "backends/cpu/onednn/post_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>

#include <fmt/core.h>

#include "autograph/op_def.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formula_table.h"
#include "ops/elementwise/formula/formulas.h"

namespace autograph {
namespace onednn {
namespace {

using dnnl::algorithm;

// A formula of oneDNN: kind(alpha, beta).
struct Eltwise {
  algorithm kind;
  float alpha = 0;
  float beta = 0;

  bool operator==(const Eltwise&) const = default;
};

// A post-op: a formula, or what `op` does with a tensor.
struct Step {
  enum class Kind : uint8_t { formula, sum, binary };
  Kind kind = Kind::formula;
  Eltwise formula = {algorithm::undef};
  const EpilogueOp* op = nullptr;
};

using formulas::Expr;

// What oneDNN or a pass of ours has of a formula of y; alpha and beta are numbers.
struct Reading {
  Expr pattern;
  std::vector<std::pair<algorithm, std::array<Expr, 2>>> formulas;  // in turn, with their own alpha and beta
  simd::ActivationPass::Kind pass = simd::ActivationPass::Kind::none;
};

// The formulas that oneDNN has. Those with a pass of ours have a division in them there; of elu it forms exp(y) - 1, of
// which nothing is left where y is small: it is no post-op. Nor is softplus, of which nothing is left where y is far
// below 0.
std::vector<Reading> readings() {
  using Kind = simd::ActivationPass::Kind;
  const Expr y = Expr::variable("y"), alpha = Expr::variable("alpha"), beta = Expr::variable("beta");
  const Expr zero(0), one(1), infinity(INFINITY);
  using namespace formulas;
  return {
      {Relu::of(y), {{algorithm::eltwise_relu, {zero, zero}}}},
      {LeakyRelu::of(y, alpha), {{algorithm::eltwise_relu, {alpha, zero}}}},
      {Sigmoid::of(y), {{algorithm::eltwise_logistic, {zero, zero}}}},
      {Tanh::of(y), {{algorithm::eltwise_tanh, {zero, zero}}}},
      {HardSwish::of(y), {{algorithm::eltwise_hardswish, {zero, zero}}}},
      {Swish::of(y, alpha), {{algorithm::eltwise_swish, {alpha, zero}}}, Kind::swish},
      {Abs::of(y), {{algorithm::eltwise_abs, {zero, zero}}}},
      {Sqrt::of(y), {{algorithm::eltwise_sqrt, {zero, zero}}}},
      {Exp::of(y), {{algorithm::eltwise_exp, {zero, zero}}}},
      {Gelu::of(y), {{algorithm::eltwise_gelu_erf, {zero, zero}}}, Kind::gelu},
      {GeluTanh::of(y), {{algorithm::eltwise_gelu_tanh, {zero, zero}}}, Kind::gelu_tanh},
      {Elu::of(y, alpha), {}, Kind::elu},
      {HardSigmoid::of(y, alpha, beta),
       {{algorithm::eltwise_linear, {alpha, beta}}, {algorithm::eltwise_clip, {zero, one}}}},
      {Clip::of(y, alpha, beta), {{algorithm::eltwise_clip, {alpha, beta}}}},
      {Clip::of(y, alpha, Expr()), {{algorithm::eltwise_clip, {alpha, infinity}}}},
      {Clip::of(y, Expr(), beta), {{algorithm::eltwise_clip, {-infinity, beta}}}},
      {Clip::of(y, Expr(), Expr()), {{algorithm::eltwise_clip, {-infinity, infinity}}}},
      {Add::of(y, beta), {{algorithm::eltwise_linear, {one, beta}}}},
      {Add::of(beta, y), {{algorithm::eltwise_linear, {one, beta}}}},
      {Mul::of(y, alpha), {{algorithm::eltwise_linear, {alpha, zero}}}},
      {Mul::of(alpha, y), {{algorithm::eltwise_linear, {alpha, zero}}}},
  };
}

// The number that an operand is; nothing where it is a tensor, of elements that differ or are not known.
std::optional<float> as_number(const Operand& operand) {
  const Tensor& constant = operand.constant;
  const bool known = constant.is_present() && constant.num_elements() == 1 && constant.dtype() == DType::f32;
  return known ? std::optional(constant.data<float>()[0]) : std::nullopt;
}

// The operand of an op as part of its formula.
std::optional<Expr> as_expression(const Operand& operand) {
  if (operand.is_chain) return Expr::variable("y");
  if (!operand.type.is_tensor()) return Expr();
  const auto number = as_number(operand);
  return number ? std::optional(Expr(*number)) : std::nullopt;
}

// The op as a formula of y, or nothing.
Expr formula_of(const EpilogueOp& op) {
  std::vector<Expr> operands;
  for (const Operand& operand : op.operands) {
    const auto part = as_expression(operand);
    if (!part) return {};
    operands.push_back(*part);
  }
  return expression_of(*op.op, *op.attributes, operands);
}

struct Match {
  const Reading* reading;
  formulas::Bindings numbers;
};

// Alpha and beta stand for numbers alone: y tanh(y) is no product of y and a number.
bool are_numbers(const formulas::Bindings& bindings) {
  return std::all_of(bindings.begin(), bindings.end(), [](const auto& binding) {
    return binding.first == "y" || binding.second.op() == formulas::ExprOp::number;
  });
}

// Of max and min nobody expects that they lose NaN, as oneDNN's clip and relu do; prelu with a slope of 0 is relu, too.
bool keeps_nan(const EpilogueOp& op) { return op.op == &max_def() || op.op == &min_def() || op.op == &prelu_def(); }

std::optional<Match> match_readings(const EpilogueOp& op) {
  static const std::vector<Reading> kReadings = readings();
  const Expr formula = formula_of(op);
  if (!formula.is_present()) return std::nullopt;
  for (const Reading& reading : kReadings) {
    const auto bindings = match(reading.pattern, formula, {{"y", Expr::variable("y")}});
    if (bindings && are_numbers(*bindings)) return Match{&reading, *bindings};
  }
  return std::nullopt;
}

float number_of(const Expr& x, const formulas::Bindings& numbers) {
  return static_cast<float>(substitute(x, numbers).number());
}

std::vector<Eltwise> formulas_of(const std::optional<Match>& match) {
  if (!match) return {};
  std::vector<Eltwise> list;
  for (const auto& [kind, parameters] : match->reading->formulas) {
    list.push_back({kind, number_of(parameters[0], match->numbers), number_of(parameters[1], match->numbers)});
    if (kind == algorithm::eltwise_clip && !(list.back().alpha <= list.back().beta)) return {};
  }
  return list;
}

simd::ActivationPass pass_of(const std::optional<Match>& match) {
  if (!match || match->reading->pass == simd::ActivationPass::Kind::none) return {};
  for (const auto& [name, number] : match->numbers) {
    if (name == "alpha") return {match->reading->pass, static_cast<float>(number.number())};
  }
  return {match->reading->pass};
}

// What an op can be made of.
struct OpReading {
  std::vector<Eltwise> formulas;  // of oneDNN, in turn; none when there are none
  simd::ActivationPass pass;      // that computes it; none when there is none
};

OpReading read_anew(const EpilogueOp& op) {
  if (keeps_nan(op)) return {};
  const std::optional<Match> match = match_readings(op);
  return {formulas_of(match), pass_of(match)};
}

void append_bits(std::string& key, const auto& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// All that a reading depends on; nothing where that is more than numbers.
std::optional<std::string> key_of(const EpilogueOp& op) {
  std::string key;
  append_bits(key, op.op);
  for (const auto& [name, value] : *op.attributes) {
    key.append(name);
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      append_bits(key.append("=i"), *integer);
    } else if (const auto* real = std::get_if<float>(&value)) {
      append_bits(key.append("=r"), *real);
    } else {
      return std::nullopt;
    }
  }
  for (const Operand& operand : op.operands) {
    const bool is_number = !operand.is_chain && operand.type.is_tensor();
    key += operand.is_chain ? 'y' : is_number ? 'n' : '-';
    if (!is_number) continue;
    const auto number = as_number(operand);
    if (!number) return std::nullopt;
    append_bits(key, *number);
  }
  return key;
}

// Every kernel of every convolution asks about its epilogue, for each shape: they are few.
OpReading read_op(const EpilogueOp& op) {
  constexpr size_t kMostKnown = 1000;
  static thread_local std::unordered_map<std::string, OpReading> known;
  const std::optional<std::string> key = key_of(op);
  if (!key) return read_anew(op);
  if (const auto it = known.find(*key); it != known.end()) return it->second;
  if (known.size() >= kMostKnown) known.clear();
  return known.emplace(*key, read_anew(op)).first->second;
}

bool is_binary(const EpilogueOp& op) { return (op.op == &add_def() || op.op == &mul_def()) && op.operands.size() == 2; }

bool is_full(const AnchoredCall& call, const Operand& operand) { return operand.type == call.output(); }

// Is a linear formula one that another may be merged with? Factors and sums far from 1 overflow, vanish or round off
// digits on the way (x + 2^23 - 2^23 does so on purpose), which one formula for both would not.
bool is_tame(const Eltwise& f) {
  constexpr float kMaxFactor = 1 << 20;
  constexpr float kMaxTerm = 1 << 12;
  const float factor = std::fabs(f.alpha);
  return (factor == 0 || factor >= 1 / kMaxFactor) && factor <= kMaxFactor && std::fabs(f.beta) <= kMaxTerm;
}

// f, then g, as one formula.
std::optional<Eltwise> merged(const Eltwise& f, const Eltwise& g) {
  if (f.kind != g.kind) return std::nullopt;
  switch (f.kind) {
    case algorithm::eltwise_linear: {
      const Eltwise both{f.kind, f.alpha * g.alpha, f.beta * g.alpha + g.beta};
      return is_tame(f) && is_tame(g) && is_tame(both) ? std::optional(both) : std::nullopt;
    }
    case algorithm::eltwise_clip:
      return Eltwise{f.kind, std::clamp(f.alpha, g.alpha, g.beta), std::clamp(f.beta, g.alpha, g.beta)};
    case algorithm::eltwise_relu: {
      // A negative slope turns its half round, to which the other slope then does not apply.
      const bool stays = f.alpha >= 0 && std::isfinite(f.alpha * g.alpha);
      return stays ? std::optional(Eltwise{f.kind, f.alpha * g.alpha}) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

// The dims of a vector along the channel axis, as [1, C, 1, 1]; nothing for other shapes.
std::optional<dnnl::memory::dims> vector_dims(const AnchoredCall& call, const Operand& operand, size_t channel_axis) {
  const Dims out = call.output().shape().static_dims();
  Dims in = operand.type.shape().static_dims();
  if (in.size() > out.size()) return std::nullopt;
  in.insert(in.begin(), out.size() - in.size(), 1);
  for (size_t a = 0; a < in.size(); ++a) {
    if (in[a] != (a == channel_axis ? out[a] : 1)) return std::nullopt;
  }
  return in;
}

// Do primitives take a sum with what the output holds? In front of everything else alone (brgconv would anywhere, but
// does not take all convolutions), and without AVX only where rows happen to be aligned.
bool has_sums() { return dnnl::get_effective_cpu_isa() != dnnl::cpu_isa::sse41; }

bool is_residual(const AnchoredCall& call, const EpilogueOp& op) {
  if (op.op != &add_def() || op.operands.size() != 2) return false;
  const Operand& other = other_operand(op);
  return other.input >= 0 && is_full(call, other) && !other.constant.is_present();
}

// Reads an epilogue as post-ops and a pass behind them.
class StepReader {
 public:
  StepReader(const AnchoredCall& call, std::optional<size_t> channel_axis, size_t first)
      : call_(call), channel_axis_(channel_axis) {
    std::span<const EpilogueOp> rest = std::span(call.epilogue()).subspan(first);
    const bool ends_in_residual = !rest.empty() && is_residual(call, rest.back());
    if (ends_in_residual) rest = rest.first(rest.size() - 1);
    if (!rest.empty()) last_ = read_op(rest.back()).pass;
    const bool has_pass = last_.kind != simd::ActivationPass::Kind::none;
    if (has_pass) rest = rest.first(rest.size() - 1);
    for (const EpilogueOp& op : rest) read(op);
    if (ends_in_residual) {
      const EpilogueOp& op = call.epilogue().back();
      if (has_pass || !takes_sum()) {
        added_last_ = other_operand(op).input;
      } else {
        read(op);
      }
    }
    if (refusal_.empty()) refuse_two_of_a_kind();
  }

  const std::vector<Step>& steps() const { return steps_; }
  const simd::ActivationPass& last() const { return last_; }
  int added_last() const { return added_last_; }
  /// Why the epilogue cannot be post-ops, or "".
  const std::string& refusal() const { return refusal_; }

 private:
  void read(const EpilogueOp& op) {
    if (!refusal_.empty()) return;
    const std::vector<Eltwise> list = read_op(op).formulas;
    for (const Eltwise& formula : list) append(formula);
    if (!list.empty()) return;
    const std::string name(op.op->name);
    if (!is_binary(op)) {
      refusal_ = "no post-op for " + name;
    } else if (other_operand(op).input < 0) {
      refusal_ = name + " with a constant tensor inside the body";
    } else {
      read_tensor(op, name);
    }
  }

  // Would oneDNN add a residual behind the steps so far?
  bool takes_sum() const {
    static const bool kHasSums = has_sums();
    return kHasSums && steps_.empty();
  }

  void append(const Eltwise& formula) {
    if (!steps_.empty() && steps_.back().kind == Step::Kind::formula) {
      if (const auto both = merged(steps_.back().formula, formula)) {
        steps_.back().formula = *both;
        return;
      }
    }
    steps_.push_back({Step::Kind::formula, formula, nullptr});
  }

  void read_tensor(const EpilogueOp& op, const std::string& name) {
    const Operand& other = other_operand(op);
    if (is_residual(call_, op) && takes_sum()) {
      steps_.push_back({Step::Kind::sum, {algorithm::undef}, &op});
    } else if (is_residual(call_, op)) {
      refusal_ = "a residual that is neither the first post-op nor the last op";
    } else if (!channel_axis_ || !vector_dims(call_, other, *channel_axis_)) {
      refusal_ = name + " with a tensor that is neither a vector over channels nor a residual";
    } else if (call_.output().shape()[static_cast<int64_t>(*channel_axis_)].value() % 16 != 0) {
      refusal_ = name + " with a vector of channels that does not fill its last block";
    } else {
      steps_.push_back({Step::Kind::binary, {algorithm::undef}, &op});
    }
  }

  void refuse_two_of_a_kind() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        const Eltwise &f = steps_[k].formula, &g = steps_[i].formula;
        const bool formulas = steps_[k].kind == Step::Kind::formula && steps_[i].kind == Step::Kind::formula;
        if (!formulas || f.kind != g.kind || f == g) continue;
        refusal_ = fmt::format(
            "two post-ops of one kind with different numbers, ({}, {}) and ({}, {}): oneDNN computes both with the "
            "first ones",
            f.alpha, f.beta, g.alpha, g.beta);
        return;
      }
    }
  }

  const AnchoredCall& call_;
  std::optional<size_t> channel_axis_;
  std::vector<Step> steps_;
  simd::ActivationPass last_;
  int added_last_ = -1;
  std::string refusal_;
};

}  // namespace

std::string why_not_post_ops(const AnchoredCall& call, std::optional<size_t> channel_axis, size_t first) {
  return StepReader(call, channel_axis, first).refusal();
}

PostOps make_post_ops(const AnchoredCall& call, std::optional<size_t> channel_axis, const OutputForm& form,
                      size_t first) {
  const StepReader reader(call, channel_axis, first);
  AG_CHECK(reader.refusal().empty(), "post-ops that were refused: {}", reader.refusal());
  PostOps result;
  result.last = reader.last();
  result.added_last = reader.added_last();
  for (const Step& step : reader.steps()) {
    if (step.kind == Step::Kind::formula) {
      result.ops.append_eltwise(1.0F, step.formula.kind, step.formula.alpha, step.formula.beta);
      continue;
    }
    const Operand& other = other_operand(*step.op);
    if (step.kind == Step::Kind::sum) {
      result.accumulated_input = other.input;
      result.ops.append_sum(1.0F);
      continue;
    }
    dnnl::memory::dims vector(form.dims.size(), 1);
    vector[form.channel_axis] = form.dims[form.channel_axis];
    const auto kind = step.op->op == &add_def() ? algorithm::binary_add : algorithm::binary_mul;
    const int id = DNNL_ARG_ATTR_MULTIPLE_POST_OP(result.ops.len()) | DNNL_ARG_SRC_1;
    result.ops.append_binary(kind, row_major(vector));
    result.arguments.push_back(
        {id, false, static_cast<size_t>(other.input), row_major(vector), row_major(vector), other.constant});
  }
  return result;
}

}  // namespace onednn
}  // namespace autograph
