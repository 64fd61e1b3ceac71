// From elementwise ops to instructions: those with a formula are one, or one for each pair of many operands; some
// become others when operands are known.
#include <algorithm>
#include <bit>
#include <optional>

#include <fmt/core.h>

#include "backends/cpu/quantize/is_byte.h"
#include "backends/cpu/simd/elementwise/tile_program.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formula_table.h"

namespace autograph::simd {
namespace {

// Any number of operands, two at a time. An average divides before it adds, so that no sum overflows which the average
// does not.
TileValue append_fold(TileProgram& program, const TileNode& node, TileOp op, Fold fold) {
  const float factor = fold == Fold::average ? 1 / static_cast<float>(node.operands.size()) : 1.0F;
  const auto term = [&](size_t k) {
    return factor == 1 ? node.operands[k]
                       : program.emit({.op = kTileOp<formulas::Scale>, .operands = {node.operands[k]}, .p = factor});
  };
  if (node.operands.size() == 1) {
    return program.emit({.op = kTileOp<formulas::Identity>, .operands = {node.operands[0]}});
  }
  TileValue total = term(0);
  for (size_t k = 1; k < node.operands.size(); ++k) {
    const TileValue next = term(k);
    total = program.emit({.op = op, .operands = {total, next}});
  }
  return total;
}

// The formula of an op is an instruction.
TileValue append_formula(TileProgram& program, const TileNode& node, size_t index) {
  const FormulaInfo& info = all_formulas()[index].info;
  if (info.fold != Fold::none) return append_fold(program, node, TileOp(index), info.fold);
  TileInstruction instruction{.op = TileOp(index), .operands = {}};
  std::copy_n(node.operands.begin(), std::min(info.operands, node.operands.size()), instruction.operands.begin());
  if (info.num_parameters() > 0) instruction.p = node.attributes.real(info.parameters[0]);
  if (info.num_parameters() > 1) instruction.q = node.attributes.real(info.parameters[1]);
  return program.emit(instruction);
}

bool has(const TileNode& node, size_t slot) { return slot < node.inputs.size() && node.inputs[slot].is_tensor(); }

TileValue append_clip(TileProgram& program, const TileNode& node) {
  TileValue y = node.operands[0];
  if (has(node, 1)) y = program.emit({.op = kTileOp<formulas::Max>, .operands = {y, node.operands[1]}});
  if (has(node, 2)) y = program.emit({.op = kTileOp<formulas::Min>, .operands = {y, node.operands[2]}});
  return has(node, 1) || has(node, 2) ? y : program.emit({.op = kTileOp<formulas::Identity>, .operands = {y}});
}

// Common exponents are multiplications, as long as they are known and the same for all elements.
TileInstruction pow_instruction(const TileNode& node) {
  const TileInstruction general{.op = kTileOp<formulas::Pow>, .operands = {node.operands[0], node.operands[1]}};
  const bool known = node.constants.size() > 1 && node.constants[1].is_present() &&
                     node.constants[1].num_elements() == 1 && node.constants[1].dtype() == DType::f32;
  if (!known) return general;
  const float exponent = *node.constants[1].data<float>();
  const std::pair<float, TileOp> forms[]{{2.0F, kTileOp<formulas::Square>},
                                         {3.0F, kTileOp<formulas::Cube>},
                                         {1.0F, kTileOp<formulas::Identity>},
                                         {0.5F, kTileOp<formulas::SqrtOfPow>},
                                         {-1.0F, kTileOp<formulas::Reciprocal>}};
  for (const auto& [value, op] : forms) {
    if (exponent == value) return {.op = op, .operands = {node.operands[0]}};
  }
  return general;
}

TileValue append_cast(TileProgram& program, const TileNode& node) {
  TileValue x = node.operands[0];
  const bool to_bool = node.output.dtype() == DType::boolean;
  if (node.inputs[0].dtype() == DType::i32) {
    x = program.emit({.op = kIntegerTileOp<FloatOfInteger>, .operands = {x}});
    if (!to_bool) return x;
  }
  return program.emit({.op = to_bool ? kTileOp<formulas::NotZero> : kTileOp<formulas::Identity>, .operands = {x}});
}

// The instruction of an op on i32 elements, if it has one.
std::optional<TileOp> integer_op(const OpDef& op) {
  if (&op == &add_def()) return kIntegerTileOp<IntegerSum>;
  if (&op == &sub_def()) return kIntegerTileOp<IntegerDifference>;
  if (&op == &mul_def()) return kIntegerTileOp<IntegerProduct>;
  return std::nullopt;
}

bool is_of_integers(const TileNode& node) { return node.output.dtype() == DType::i32 && integer_op(node.op); }

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
    return program.emit({.op = kTileOp<formulas::Dequantize>, .operands = {node.operands[0]}, .p = *zero, .q = *scale});
  }
  TileValue y = node.operands[0];
  if (has(node, 2)) y = program.emit({.op = kTileOp<formulas::Sub>, .operands = {y, node.operands[2]}});
  return program.emit({.op = kTileOp<formulas::Mul>, .operands = {y, node.operands[1]}});
}

// round(x / scale) + zero, which writing the bytes saturates.
TileValue append_quantization(TileProgram& program, const TileNode& node) {
  const auto scale = known_number(node, 1);
  const auto zero = known_number(node, 2);
  if (scale && zero) {
    return program.emit({.op = kTileOp<formulas::Quantize>, .operands = {node.operands[0]}, .p = *scale, .q = *zero});
  }
  const TileValue quotient =
      program.emit({.op = kTileOp<formulas::Div>, .operands = {node.operands[0], node.operands[1]}});
  const TileValue y = program.emit({.op = kTileOp<formulas::Round>, .operands = {quotient}});
  return has(node, 2) ? program.emit({.op = kTileOp<formulas::Add>, .operands = {y, node.operands[2]}}) : y;
}

std::string why_not_types(const TileNode& node) {
  if (is_quantization(node.op)) return why_not_quantization(node);
  if (is_of_integers(node)) return "";  // so are the operands
  const auto fits = [](DType dtype) { return dtype == DType::f32 || dtype == DType::boolean; };
  for (const Type& type : node.inputs) {
    const bool widened =
        &node.op == &cast_def() && type.is_tensor() && (is_byte(type.dtype()) || type.dtype() == DType::i32);
    if (type.is_tensor() && !fits(type.dtype()) && !widened) return fmt::format("dtype {}", to_string(type.dtype()));
  }
  return fits(node.output.dtype()) ? "" : fmt::format("dtype {}", to_string(node.output.dtype()));
}

}  // namespace

TileValue append_saturation(TileProgram& program, TileValue x, DType bytes) {
  const bool is_signed = bytes == DType::i8;
  const float lowest = is_signed ? -128.0F : 0.0F, highest = is_signed ? 127.0F : 255.0F;
  return program.emit({.op = kTileOp<formulas::Saturate>, .operands = {x}, .p = lowest, .q = highest});
}

bool is_quantization(const OpDef& op) { return &op == &quantize_linear_def() || &op == &dequantize_linear_def(); }

TileValue TileProgram::number(float value) {
  numbers.push_back(value);
  return {TileValue::Kind::number, static_cast<uint32_t>(numbers.size() - 1)};
}

TileValue TileProgram::integer(int32_t value) { return number(std::bit_cast<float>(value)); }

TileValue TileProgram::emit(TileInstruction instruction) {
  instructions.push_back(instruction);
  return {TileValue::Kind::result, static_cast<uint32_t>(instructions.size() - 1)};
}

std::string append_node(TileProgram& program, const TileNode& node, TileValue& result) {
  std::string reason = why_not_types(node);
  if (!reason.empty()) return reason;
  if (is_of_integers(node)) {
    result = program.emit({.op = *integer_op(node.op), .operands = {node.operands[0], node.operands[1]}});
  } else if (&node.op == &clip_def()) {
    result = append_clip(program, node);
  } else if (&node.op == &pow_def()) {
    result = program.emit(pow_instruction(node));
  } else if (&node.op == &cast_def()) {
    result = append_cast(program, node);
  } else if (&node.op == &quantize_linear_def()) {
    result = append_quantization(program, node);
  } else if (&node.op == &dequantize_linear_def()) {
    result = append_dequantization(program, node);
  } else if (const auto index = find_formula(node.op, node.attributes)) {
    result = append_formula(program, node, *index);
  } else {
    return "no instruction for " + std::string(node.op.name);
  }
  return "";
}

}  // namespace autograph::simd
