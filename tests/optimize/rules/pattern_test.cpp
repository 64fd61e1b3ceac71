// The language of rules: what parses, and what is said about what does not.
#include <gtest/gtest.h>

#include "optimize/rules/pattern/pattern.h"
#include "optimize/rules/rule.h"

namespace autograph {
namespace {

std::string message_of(std::string_view text) {
  try {
    parse_pattern(text);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "parsed";
}

std::string compile_message(const Rule& rule) {
  const Rule* const rules[] = {&rule};
  try {
    const RuleMatcher matcher(rules);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "compiled";
}

TEST(Pattern, ReadsStatementsVariablesAndAttributes) {
  const Pattern pattern = parse_pattern(
      "a = conv[strides=s, pads=[1,1,1,1], group=1, auto_pad=\"NOTSET\"](x, $w); p, q = split[axis=-1](a);"
      " r = unary<f>(p); m... = split(r); t = concat[axis=k](q, x, z...); u = leaky_relu[alpha=0.5](t); v = mul(u, 2)");
  ASSERT_EQ(pattern.statements.size(), 7u);
  EXPECT_EQ(pattern.statements[0].op->name, "conv");
  ASSERT_EQ(pattern.statements[0].attributes.size(), 4u);
  EXPECT_EQ(pattern.statements[0].attributes[0].variable, pattern.find_attribute("s"));
  EXPECT_EQ(std::get<std::vector<int64_t>>(pattern.statements[0].attributes[1].literal), (Dims{1, 1, 1, 1}));
  EXPECT_EQ(std::get<int64_t>(pattern.statements[0].attributes[2].literal), 1);
  EXPECT_EQ(std::get<std::string>(pattern.statements[0].attributes[3].literal), "NOTSET");
  EXPECT_TRUE(pattern.values[static_cast<size_t>(pattern.find_value("w"))].is_weight);
  EXPECT_FALSE(pattern.values[static_cast<size_t>(pattern.find_value("x"))].is_weight);
  EXPECT_EQ(pattern.values[static_cast<size_t>(pattern.find_value("q"))].slot, 1);
  EXPECT_EQ(pattern.statements[2].op_class, OpClass::unary);
  EXPECT_TRUE(pattern.values[static_cast<size_t>(pattern.find_value("m"))].is_list);
  EXPECT_TRUE(pattern.values[static_cast<size_t>(pattern.find_value("z"))].is_list);
  EXPECT_EQ(std::get<float>(pattern.statements[5].attributes[0].literal), 0.5F);
  EXPECT_EQ(pattern.statements[6].inputs[1].kind, PatternOperand::Kind::number);
  EXPECT_EQ(pattern.statements[6].inputs[1].number, 2);
}

TEST(Pattern, ReadsValuesGivenBackAndAbsentInputs) {
  const Pattern pattern = parse_pattern("y = x; z = clip(y, _, $h)");
  EXPECT_TRUE(pattern.statements[0].is_alias());
  EXPECT_EQ(pattern.statements[1].inputs[1].kind, PatternOperand::Kind::absent);
}

TEST(Pattern, SaysWhereATextIsMalformed) {
  EXPECT_NE(message_of("y = add(x, z").find("expected ')' at 'the end'"), std::string::npos);
  EXPECT_NE(message_of("y = addd(x, z)").find("no op 'addd'"), std::string::npos);
  EXPECT_NE(message_of("y = conv[stride=s](x, z)").find("no attribute 'stride'"), std::string::npos);
  EXPECT_NE(message_of("y = relu(x); y = relu(x)").find("'y' is made twice"), std::string::npos);
  EXPECT_NE(message_of("x = relu(x)").find("'x' is made twice, or read before"), std::string::npos);
  EXPECT_NE(message_of("y = concat[axis=a](x..., z)").find("must stand last"), std::string::npos);
  EXPECT_NE(message_of("y = concat[axis=a](x...); z = relu(x)").find("a list in one place"), std::string::npos);
  EXPECT_NE(message_of("y... , z = split(x)").find("must stand alone"), std::string::npos);
  EXPECT_NE(message_of("y relu(x)").find("expected '='"), std::string::npos);
  EXPECT_NE(message_of("y = conv[strides=\"a\"](x, z)").find("text does not fit"), std::string::npos);
  EXPECT_NE(message_of("y = conv[group=[1]](x, z)").find("a list does not fit"), std::string::npos);
  EXPECT_NE(message_of("y = conv[group=1.5](x, z)").find("expected an integer"), std::string::npos);
  EXPECT_NE(message_of("y = unary<f>[a=1](x)").find("a class of ops has no attributes"), std::string::npos);
}

TEST(Pattern, RefusesRulesWhoseTextsDoNotFitTogether) {
  const Rule sound{.name = "t.sound", .before = "y = relu(x)", .after = "y = relu(x)", .outputs = {"y"}};
  EXPECT_EQ(compile_message(sound), "compiled");
  Rule rule = sound;
  rule.outputs = {"x"};
  EXPECT_NE(compile_message(rule).find("'x' is not made in the pattern"), std::string::npos);
  rule = sound;
  rule.after = "y = relu(z)";
  EXPECT_NE(compile_message(rule).find("'z' is not in the pattern"), std::string::npos);
  rule = sound;
  rule.after = "z = relu(x)";
  EXPECT_NE(compile_message(rule).find("does not make 'y'"), std::string::npos);
  rule = sound;
  rule.before = "y = relu(x); z = relu(w)";
  EXPECT_NE(compile_message(rule).find("share no values"), std::string::npos);
  rule = sound;
  rule.after = "y = leaky_relu[alpha=a](x)";
  EXPECT_NE(compile_message(rule).find("attribute 'a' is not in the pattern"), std::string::npos);
  rule = sound;
  rule.guard_doc = "something";
  EXPECT_NE(compile_message(rule).find("a guard and its words"), std::string::npos);
  rule = {.name = "t.gone", .before = "a = relu(x); y = relu(a)", .after = "y = relu(a)", .outputs = {"y"}};
  EXPECT_NE(compile_message(rule).find("'a' will be gone"), std::string::npos);
}

}  // namespace
}  // namespace autograph
