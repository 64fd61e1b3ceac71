#include "backends/gpu/emit/text/scalar_text.h"

#include <algorithm>

#include "base/join.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formula_table.h"

namespace autograph::gpu {
namespace {

using formulas::CDialect;
using formulas::CNumber;
using formulas::Expr;

CNumber number_of(DType dtype) {
  if (dtype == DType::f64) return {CNumber::Kind::f64, "f64", "f64"};
  if (is_float(dtype)) return {CNumber::Kind::f32, "f32", "f32"};
  return {CNumber::Kind::whole, compute_type(dtype), element_size(dtype) == 8 ? "u64" : "u32"};
}

// Functions of the C library without a formula, by what both languages call them.
struct LibraryFunction {
  const OpDef& (*op)();
  std::string_view call;
};
constexpr LibraryFunction kLibrary[] = {
    {tan_def, "tan("},   {asin_def, "asin("},   {acos_def, "acos("},   {atan_def, "atan("},   {sinh_def, "sinh("},
    {cosh_def, "cosh("}, {asinh_def, "asinh("}, {acosh_def, "acosh("}, {atanh_def, "atanh("},
};

struct BitOperation {
  const OpDef& (*op)();
  char sign;
};
constexpr BitOperation kBitOperations[] = {{bitwise_and_def, '&'}, {bitwise_or_def, '|'}, {bitwise_xor_def, '^'}};

std::optional<std::string> library_text(const OpDef& op, std::span<const ScalarOperand> x) {
  for (const LibraryFunction& function : kLibrary) {
    if (&op == &function.op() && is_float(x[0].dtype)) return fmt::format("{}{})", function.call, x[0].text);
  }
  for (const BitOperation& bits : kBitOperations) {
    if (&op != &bits.op() || !is_whole(x[0].dtype)) continue;
    return fmt::format("({})({} {} {})", compute_type(x[0].dtype), x[0].text, bits.sign, x[1].text);
  }
  if (&op == &bitwise_not_def()) return fmt::format("({})(~{})", compute_type(x[0].dtype), x[0].text);
  return std::nullopt;
}

// Shifts by a negative number, or by all bits and more, leave only the fill.
std::string shift_text(const Attributes& attributes, std::span<const ScalarOperand> x) {
  const std::string_view type = compute_type(x[0].dtype);
  const size_t bits = element_size(x[0].dtype) * 8;
  const std::string all_out = fmt::format("((u{0})({1}) >= {0})", bits, x[1].text);
  const std::string count = fmt::format("({} & {})", x[1].text, bits - 1);
  if (attributes.text("direction") == "LEFT") {
    return fmt::format("({0} ? ({1})0 : ({1})((u64){2} << {3}))", all_out, type, x[0].text, count);
  }
  return fmt::format("({0} ? ({2} < 0 ? ({1})(-1) : ({1})0) : ({1})({2} >> {3}))", all_out, type, x[0].text, count);
}

std::string infinity_text(const Attributes& attributes, const ScalarOperand& x) {
  const std::string negative = attributes.flag("detect_negative") ? "1" : "0";
  const std::string positive = attributes.flag("detect_positive") ? "1" : "0";
  return fmt::format("(u8)(isinf({0}) ? ({0} < 0 ? {1} : {2}) : 0)", x.text, negative, positive);
}

std::optional<std::string> shrink_text(const Attributes& attributes, const ScalarOperand& x) {
  if (!is_float(x.dtype)) return std::nullopt;
  const std::string bias = literal(x.dtype, static_cast<double>(attributes.real("bias")));
  const std::string lambd = literal(x.dtype, static_cast<double>(attributes.real("lambd")));
  return fmt::format("({0} < -{2} ? {0} + {1} : {0} > {2} ? {0} - {1} : {3})", x.text, bias, lambd,
                     literal(x.dtype, 0.0));
}

std::string binarizer_text(const Attributes& attributes, const ScalarOperand& x) {
  const std::string one = literal(x.dtype, 1.0);
  const std::string zero = literal(x.dtype, 0.0);
  return fmt::format("({} > {} ? {} : {})", x.text,
                     literal(DType::f32, static_cast<double>(attributes.real("threshold"))), one, zero);
}

// See mod.cpp for signs, zeros and infinities.
std::string mod_text(Writer& writer, const Attributes& attributes, std::span<const ScalarOperand> x) {
  const std::string_view type = compute_type(x[0].dtype);
  const bool truncates = attributes.flag("fmod");
  std::string body;
  if (is_float(x[0].dtype)) {
    body = "  const T r = fmod(a, b);\n";
    body += truncates ? "  return r;\n"
                      : "  if (isnan(r)) return r;\n  if (r == 0) return copysign((T)0, b);\n"
                        "  return (r < 0) != (b < 0) ? r + b : r;\n";
  } else {
    body = "  if (b == 0) return 0;\n";
    if (is_signed_whole(x[0].dtype)) body += "  if (b == (T)(-1)) return 0;\n";
    body += "  const T r = (T)(a % b);\n";
    body += truncates ? "  return r;\n" : "  return r == 0 || (r < 0) == (b < 0) ? r : (T)(r + b);\n";
  }
  for (size_t at = body.find('T'); at != std::string::npos; at = body.find('T', at)) body.replace(at, 1, type);
  const std::string name = fmt::format("{}_{}", truncates ? "truncated_rest" : "rest", type);
  writer.function(fmt::format("DEVICE {0} {1}({0} a, {0} b) {{\n{2}}}\n", type, name, body));
  return fmt::format("{}({}, {})", name, x[0].text, x[1].text);
}

// The condition of where is bool, the exponent of pow may have any dtype.
std::optional<std::string> mixed_text(Writer& writer, const OpDef& op, const Attributes& attributes,
                                      std::span<const ScalarOperand> x, DType output) {
  if (&op == &where_def()) return fmt::format("({} ? {} : {})", x[0].text, x[1].text, x[2].text);
  if (!is_float(output)) return std::nullopt;
  const ScalarOperand exponent{output, fmt::format("({}){}", compute_type(output), x[1].text)};
  return formula_text(writer, op, attributes, std::array{x[0], exponent}, output);
}

bool is_cast(const OpDef& op) { return &op == &cast_def() || &op == &cast_like_def(); }

// By formula, where all operands have one dtype.
std::optional<std::string> uniform_text(Writer& writer, const OpDef& op, const Attributes& attributes,
                                        std::span<const ScalarOperand> x, DType output) {
  const auto differs = [&](const ScalarOperand& y) { return y.dtype != DType::undefined && y.dtype != x[0].dtype; };
  if (std::any_of(x.begin(), x.end(), differs)) return std::nullopt;
  const auto text = formula_text(writer, op, attributes, x, x[0].dtype);
  if (!text || output == x[0].dtype) return text;
  if (output != DType::boolean) return std::nullopt;
  return fmt::format("(u8)({} != 0)", *text);
}

}  // namespace

std::optional<std::string> formula_text(Writer& writer, const OpDef& op, const Attributes& attributes,
                                        std::span<const ScalarOperand> operands, DType dtype) {
  std::vector<Expr> variables;
  std::vector<std::string> names;
  std::vector<std::string> texts;
  for (const ScalarOperand& operand : operands) {
    if (operand.dtype == DType::undefined) {
      variables.emplace_back();
      continue;
    }
    names.push_back(fmt::format("x{}", variables.size()));
    variables.push_back(Expr::variable(names.back()));
    texts.push_back(operand.text);
  }
  const Expr expression = formulas::Expr(expression_of(op, attributes, variables));
  if (!expression.is_present()) return std::nullopt;
  const CNumber number = number_of(dtype);
  if (number.kind == CNumber::Kind::whole && !is_of_whole_numbers(expression)) return std::nullopt;
  const CDialect dialect = writer.target().dialect == Dialect::opencl ? CDialect::opencl : CDialect::c;
  const std::string name = writer.new_name("formula");
  writer.function("DEVICE " + c_function(expression, name, names, dialect, number));
  return fmt::format("{}({})", name, join(texts, ", "));
}

std::optional<std::string> scalar_text(Writer& writer, const OpDef& op, const Attributes& attributes,
                                       std::span<const ScalarOperand> x, DType output) {
  if (x.empty()) return std::nullopt;
  for (const ScalarOperand& operand : x) {
    if (operand.dtype != DType::undefined && !can_compute(operand.dtype, writer.target())) return std::nullopt;
  }
  if (!can_compute(output, writer.target())) return std::nullopt;
  if (is_cast(op)) return converted(x[0].dtype, output, x[0].text);
  if (&op == &where_def() || &op == &pow_def()) return mixed_text(writer, op, attributes, x, output);
  if (&op == &bit_shift_def()) return shift_text(attributes, x);
  if (&op == &is_inf_def()) return infinity_text(attributes, x[0]);
  if (&op == &shrink_def()) return shrink_text(attributes, x[0]);
  if (&op == &binarizer_def()) return binarizer_text(attributes, x[0]);
  if (&op == &mod_def()) return mod_text(writer, attributes, x);
  if (auto text = library_text(op, x)) return text;
  return uniform_text(writer, op, attributes, x, output);
}

}  // namespace autograph::gpu
