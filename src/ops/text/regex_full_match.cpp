// regex_full_match: does the whole string match `pattern`? The pattern is an ECMAScript expression without back
// references, matched by following all alternatives at once: time is linear in the string, whatever the pattern, as
// ONNX's RE2 promises. What only RE2 has (such as \pN or (?i)) is an error.
#include <regex>

#include "autograph/op_def.h"
#include "autograph/ops/text.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/text/draw_strings.h"

namespace autograph {
namespace {

std::regex compile(const std::string& pattern) {
  return std::regex(pattern, std::regex::ECMAScript | std::regex_constants::__polynomial);
}

void infer(InferContext& context) {
  const std::string& pattern = context.attributes().text("pattern");
  try {
    compile(pattern);
  } catch (const std::regex_error& error) {
    context.fail<ValueError>("pattern",
                             fmt::format("expected a regular expression, got '{}' ({})", pattern, error.what()));
  }
  context.set_output(0, DType::boolean, context.shape(0));
}

void reference(const OpCall& call) {
  const std::regex pattern = compile(call.attributes.text("pattern"));
  bool* out = call.output(0).mutable_data<bool>();
  for (const std::string& text : call.input(0).elements<std::string>()) *out++ = std::regex_match(text, pattern);
}

OpSample sample(Random& random) {
  return {.inputs = {draw_strings(random, draw_dims(random))},
          .attributes = {{"pattern", std::string(draw_one_of<const char*>(random, {"[a-z]*", "(a|B).*", ""}))}}};
}

}  // namespace

Var regex_full_match(Var x, const std::string& pattern) {
  return apply(regex_full_match_def(), {x}, {{"pattern", pattern}});
}

const OpDef& regex_full_match_def() {
  static const OpDef def{
      .name = "regex_full_match",
      .doc = "Does the whole string match the regular expression?",
      .inputs = {{"x", "T", "Strings of any shape."}},
      .outputs = {{"y", "B", "Shape of x."}},
      .types = {{"T", dtypes::kString}, {"B", dtypes::kBool}},
      .attributes = {{.name = "pattern",
                      .type = AttributeType::text,
                      .doc = "An ECMAScript regular expression without back references.",
                      .required = true}},
      .infer = infer,
      .reference = reference,
      .no_grad = "a yes or no is not differentiable",
      .onnx = {{"RegexFullMatch", 20}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
