// From elementwise ops to instructions: the one table of what the tile programs can do.
#include <unordered_map>

#include <fmt/core.h>

#include "backends/cpu/simd/tile_program.h"
#include "ops/defs.h"

namespace autograph::simd {
namespace {

// An op that is one instruction; parameters are attributes by name.
struct OneInstruction {
  TileOp op;
  std::string_view p = {};
  std::string_view q = {};
};

const std::unordered_map<const OpDef*, OneInstruction>& one_instruction_ops() {
  static const std::unordered_map<const OpDef*, OneInstruction> kOps{
      {&identity_def(), {TileOp::copy}},
      {&neg_def(), {TileOp::neg}},
      {&abs_def(), {TileOp::abs}},
      {&sign_def(), {TileOp::sign}},
      {&reciprocal_def(), {TileOp::reciprocal}},
      {&sqrt_def(), {TileOp::sqrt}},
      {&exp_def(), {TileOp::exp}},
      {&log_def(), {TileOp::log}},
      {&erf_def(), {TileOp::erf}},
      {&floor_def(), {TileOp::floor}},
      {&ceil_def(), {TileOp::ceil}},
      {&round_def(), {TileOp::round}},
      {&relu_def(), {TileOp::relu}},
      {&leaky_relu_def(), {TileOp::leaky_relu, "alpha"}},
      {&elu_def(), {TileOp::elu, "alpha"}},
      {&selu_def(), {TileOp::selu, "alpha", "gamma"}},
      {&celu_def(), {TileOp::celu, "alpha"}},
      {&thresholded_relu_def(), {TileOp::thresholded_relu, "alpha"}},
      {&hard_sigmoid_def(), {TileOp::hard_sigmoid, "alpha", "beta"}},
      {&hard_swish_def(), {TileOp::hard_swish}},
      {&sigmoid_def(), {TileOp::sigmoid}},
      {&tanh_def(), {TileOp::tanh}},
      {&softplus_def(), {TileOp::softplus}},
      {&softsign_def(), {TileOp::softsign}},
      {&mish_def(), {TileOp::mish}},
      {&swish_def(), {TileOp::swish, "alpha"}},
      {&not_def(), {TileOp::logical_not}},
      {&is_nan_def(), {TileOp::is_nan}},
      {&add_def(), {TileOp::add}},
      {&sub_def(), {TileOp::sub}},
      {&mul_def(), {TileOp::mul}},
      {&div_def(), {TileOp::div}},
      {&prelu_def(), {TileOp::prelu}},
      {&swiglu_def(), {TileOp::swiglu, "alpha"}},
      {&equal_def(), {TileOp::equal}},
      {&less_def(), {TileOp::less}},
      {&less_or_equal_def(), {TileOp::less_or_equal}},
      {&and_def(), {TileOp::logical_and}},
      {&or_def(), {TileOp::logical_or}},
      {&xor_def(), {TileOp::logical_xor}},
      {&where_def(), {TileOp::where}},
  };
  return kOps;
}

// a > b is b < a.
std::optional<TileOp> swapped_form(const OpDef& op) {
  if (&op == &greater_def()) return TileOp::less;
  if (&op == &greater_or_equal_def()) return TileOp::less_or_equal;
  return std::nullopt;
}

// The fold of a variadic op.
std::optional<TileOp> fold_of(const OpDef& op) {
  if (&op == &max_def()) return TileOp::max;
  if (&op == &min_def()) return TileOp::min;
  if (&op == &sum_def() || &op == &mean_def()) return TileOp::add;
  return std::nullopt;
}

// mean divides before it adds, so that no sum overflows which the mean does not.
TileValue append_fold(TileProgram& program, const TileNode& node, TileOp fold) {
  const float factor = &node.op == &mean_def() ? 1 / static_cast<float>(node.operands.size()) : 1.0F;
  const auto term = [&](size_t k) {
    return factor == 1 ? node.operands[k]
                       : program.emit({.op = TileOp::scale, .operands = {node.operands[k]}, .p = factor});
  };
  if (node.operands.size() == 1) return program.emit({.op = TileOp::copy, .operands = {node.operands[0]}});
  TileValue total = term(0);
  for (size_t k = 1; k < node.operands.size(); ++k) {
    const TileValue next = term(k);
    total = program.emit({.op = fold, .operands = {total, next}});
  }
  return total;
}

bool has(const TileNode& node, size_t slot) { return slot < node.inputs.size() && node.inputs[slot].is_tensor(); }

TileValue append_clip(TileProgram& program, const TileNode& node) {
  TileValue y = node.operands[0];
  if (has(node, 1)) y = program.emit({.op = TileOp::max, .operands = {y, node.operands[1]}});
  if (has(node, 2)) y = program.emit({.op = TileOp::min, .operands = {y, node.operands[2]}});
  return has(node, 1) || has(node, 2) ? y : program.emit({.op = TileOp::copy, .operands = {y}});
}

// Common exponents are multiplications, as long as they are known and the same for all elements.
TileInstruction pow_instruction(const TileNode& node) {
  const TileInstruction general{.op = TileOp::pow, .operands = {node.operands[0], node.operands[1]}};
  const bool known = node.constants.size() > 1 && node.constants[1].is_present() &&
                     node.constants[1].num_elements() == 1 && node.constants[1].dtype() == DType::f32;
  if (!known) return general;
  const float exponent = *node.constants[1].data<float>();
  const std::pair<float, TileOp> forms[]{{2.0F, TileOp::square},
                                         {3.0F, TileOp::cube},
                                         {1.0F, TileOp::copy},
                                         {0.5F, TileOp::sqrt_of_pow},
                                         {-1.0F, TileOp::reciprocal}};
  for (const auto& [value, op] : forms) {
    if (exponent == value) return {.op = op, .operands = {node.operands[0]}};
  }
  return general;
}

TileValue append_cast(TileProgram& program, const TileNode& node) {
  const bool to_bool = node.output.dtype() == DType::boolean;
  return program.emit({.op = to_bool ? TileOp::not_zero : TileOp::copy, .operands = {node.operands[0]}});
}

bool is_byte(DType dtype) { return dtype == DType::u8 || dtype == DType::i8; }

// quantize_linear and dequantize_linear with one scale: of f32 to bytes, and back.
std::string why_not_quantization(const TileNode& node) {
  const bool forward = &node.op == &quantize_linear_def();
  const DType bytes = forward ? node.output.dtype() : node.inputs[0].dtype();
  const DType real = forward ? node.inputs[0].dtype() : node.output.dtype();
  if (!is_byte(bytes)) return fmt::format("dtype {}: only u8 and i8", to_string(bytes));
  if (real != DType::f32 || node.inputs[1].dtype() != DType::f32) return "a scale or real values other than f32";
  if (node.inputs[1].shape().num_elements() != 1) return "more than one scale";
  const DType precision = forward ? node.attributes.get_or("precision", DType::undefined) : DType::undefined;
  return precision == DType::undefined || precision == DType::f32 ? "" : "a division in other than f32";
}

// The number in operand `slot`: 0 where it is not given, nothing where it is not known.
std::optional<float> known_number(const TileNode& node, size_t slot) {
  if (!has(node, slot)) return 0.0F;
  if (slot >= node.constants.size() || !node.constants[slot].is_present()) return std::nullopt;
  return static_cast<float>(node.constants[slot].to_f64()[0]);
}

// (x - zero) * scale: the difference is exact.
TileValue append_dequantization(TileProgram& program, const TileNode& node) {
  const auto scale = known_number(node, 1);
  const auto zero = known_number(node, 2);
  if (scale && zero) {
    return program.emit({.op = TileOp::dequantize, .operands = {node.operands[0]}, .p = *zero, .q = *scale});
  }
  TileValue y = node.operands[0];
  if (has(node, 2)) y = program.emit({.op = TileOp::sub, .operands = {y, node.operands[2]}});
  return program.emit({.op = TileOp::mul, .operands = {y, node.operands[1]}});
}

// round(x / scale) + zero, which writing the bytes saturates.
TileValue append_quantization(TileProgram& program, const TileNode& node) {
  const auto scale = known_number(node, 1);
  const auto zero = known_number(node, 2);
  if (scale && zero) {
    return program.emit({.op = TileOp::quantize, .operands = {node.operands[0]}, .p = *scale, .q = *zero});
  }
  const TileValue quotient = program.emit({.op = TileOp::div, .operands = {node.operands[0], node.operands[1]}});
  const TileValue y = program.emit({.op = TileOp::round, .operands = {quotient}});
  return has(node, 2) ? program.emit({.op = TileOp::add, .operands = {y, node.operands[2]}}) : y;
}

std::string why_not_types(const TileNode& node) {
  if (is_quantization(node.op)) return why_not_quantization(node);
  const auto fits = [](DType dtype) { return dtype == DType::f32 || dtype == DType::boolean; };
  for (const Type& type : node.inputs) {
    const bool widened = &node.op == &cast_def() && type.is_tensor() && type.dtype() == DType::u8;
    if (type.is_tensor() && !fits(type.dtype()) && !widened) return fmt::format("dtype {}", to_string(type.dtype()));
  }
  return fits(node.output.dtype()) ? "" : fmt::format("dtype {}", to_string(node.output.dtype()));
}

}  // namespace

bool is_quantization(const OpDef& op) { return &op == &quantize_linear_def() || &op == &dequantize_linear_def(); }

TileValue TileProgram::number(float value) {
  numbers.push_back(value);
  return {TileValue::Kind::number, static_cast<uint32_t>(numbers.size() - 1)};
}

TileValue TileProgram::emit(TileInstruction instruction) {
  instructions.push_back(instruction);
  return {TileValue::Kind::result, static_cast<uint32_t>(instructions.size() - 1)};
}

std::string append_node(TileProgram& program, const TileNode& node, TileValue& result) {
  std::string reason = why_not_types(node);
  if (!reason.empty()) return reason;
  const auto operand = [&](size_t k) { return k < node.operands.size() ? node.operands[k] : TileValue(); };
  const auto one = one_instruction_ops().find(&node.op);
  if (one != one_instruction_ops().end()) {
    const auto parameter = [&](std::string_view name) { return name.empty() ? 0.0F : node.attributes.real(name); };
    result = program.emit({.op = one->second.op,
                           .operands = {operand(0), operand(1), operand(2)},
                           .p = parameter(one->second.p),
                           .q = parameter(one->second.q)});
  } else if (const auto fold = fold_of(node.op)) {
    result = append_fold(program, node, *fold);
  } else if (const auto swapped = swapped_form(node.op)) {
    result = program.emit({.op = *swapped, .operands = {operand(1), operand(0)}});
  } else if (&node.op == &clip_def()) {
    result = append_clip(program, node);
  } else if (&node.op == &pow_def()) {
    result = program.emit(pow_instruction(node));
  } else if (&node.op == &gelu_def()) {
    const bool use_tanh = node.attributes.text("approximate") == "tanh";
    result = program.emit({.op = use_tanh ? TileOp::gelu_tanh : TileOp::gelu, .operands = {operand(0)}});
  } else if (&node.op == &cast_def()) {
    result = append_cast(program, node);
  } else if (&node.op == &quantize_linear_def()) {
    result = append_quantization(program, node);
  } else if (&node.op == &dequantize_linear_def()) {
    result = append_dequantization(program, node);
  } else {
    return "no instruction for " + std::string(node.op.name);
  }
  return "";
}

}  // namespace autograph::simd
