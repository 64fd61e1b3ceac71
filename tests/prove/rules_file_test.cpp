// Rules files: read and written back, verified where nobody has, refused where a rule is wrong or is none.
#include <gtest/gtest.h>

#include "autograph/error.h"
#include "autograph/prove.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

constexpr const char* kRegroup =
    "# two sums\n"
    "rule file.regroup\n"
    "before: s = add(a, b); y = add(s, c)\n"
    "after: t = add(b, c); y = add(a, t)\n"
    "class: canonicalizes\n";

std::string written(const std::string& text) {
  static const TestFolder kFolder;
  return kFolder.write("test.rules", text);
}

VerifyRulesOptions few() {
  VerifyRulesOptions options;
  options.cases = 20;
  options.exhaustive_limit = 100;
  options.smt = false;
  return options;
}

TEST(RulesFile, IsReadAndWrittenBack) {
  const auto rules = parse_rules(kRegroup, "mine");
  ASSERT_EQ(rules->size(), 1u);
  const RuleInfo rule = rules->list().front();
  EXPECT_EQ(rule.name, "file.regroup");
  EXPECT_EQ(rule.pattern, "s = add(a, b); y = add(s, c)");
  EXPECT_EQ(rule.replacement, "t = add(b, c); y = add(a, t)");
  EXPECT_EQ(rule.kind, RuleClass::canonicalizes);
  EXPECT_FALSE(rules->evidence(0).is_sealed);
  const std::string text = print_rules(*rules, "all of them");
  EXPECT_EQ(print_rules(*parse_rules(text, "mine"), "all of them"), text);
}

TEST(RulesFile, IsVerifiedWhenItIsLoadedAndSealedAfterwards) {
  const auto loaded = load_rules(written(kRegroup), few());
  EXPECT_TRUE(loaded->evidence(0).is_sealed);
  EXPECT_GE(loaded->evidence(0).exact_cases, 10u);
  // What was sealed is not verified again: with no time for cases a rule without a seal fails.
  VerifyRulesOptions no_time = few();
  no_time.seconds = 0;
  const std::string sealed = print_rules(*loaded);
  EXPECT_EQ(load_rules(written(sealed), no_time)->size(), 1u);
  EXPECT_THROW(load_rules(written(kRegroup), no_time), ValueError);
}

TEST(RulesFile, RuleThatWasChangedLosesItsSeal) {
  std::string text = print_rules(*load_rules(written(kRegroup), few()));
  const size_t at = text.find("y = add(a, t)");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 13, "y = mul(a, t)");
  const std::string message = message_of<ValueError>([&] { load_rules(written(text), few()); });
  EXPECT_NE(message.find("rule 'file.regroup' is wrong"), std::string::npos) << message;
}

TEST(RulesFile, RefusesWhatIsNoRule) {
  const auto refused = [](const std::string& text) { return message_of<FormatError>([&] { parse_rules(text, "f"); }); };
  EXPECT_EQ(refused("before: y = add(a, b)\n"),
            "[rules] 'f' line 1: expected 'rule NAME' first, got 'before: y = add(a, b)'");
  EXPECT_NE(refused("rule a.b\nbefor: y = relu(x)\n").find("line 2"), std::string::npos);
  EXPECT_NE(refused("rule a.b\nbefore: y = relu(x)\n").find("`after:`"), std::string::npos);
  EXPECT_NE(refused("rule a.b\nbefore: y = reluu(x)\nafter: y = x\n").find("a.b"), std::string::npos);
  EXPECT_NE(refused("rule a.b\nbefore: y = relu(x\nafter: y = x\n").find("a.b"), std::string::npos);
  EXPECT_NE(refused("rule a.b\nbefore: y = {x + 1}\nafter: y = x\n").find("formulas"), std::string::npos);
  EXPECT_NE(refused("rule arithmetic.regroup_add\nbefore: y = relu(x)\nafter: y = relu(x)\n").find("no other rule"),
            std::string::npos);
  EXPECT_NE(refused(std::string(kRegroup) + "class: shrinks\n").find("twice"), std::string::npos);
  EXPECT_NE(refused(std::string(kRegroup) + "verified: some\n").find("N exact N float HASH"), std::string::npos);
}

TEST(RulesFile, TakesRulesOfSearchesAlone) {
  EXPECT_NE(message_of<FormatError>([] {
              parse_rules("rule a.b\nbefore: y = neg(x)\nafter: y = sub(0, x)\nclass: spreads\n", "f");
            }).find("class: expected shrinks, canonicalizes or search_only, got 'spreads'"),
            std::string::npos);
  RuleSet rules;
  const RuleInfo rule{"a.b", "y = neg(x)", "y = sub(0, x)", "", RuleClass::always_pays};
  EXPECT_EQ(message_of<ValueError>([&] { rules.add(rule, {}, false, {}); }),
            "[rules] rule 'a.b': expected class shrinks, canonicalizes or search_only, got always_pays");
}

TEST(RulesFile, KeepsTheRulesThatAreNamed) {
  std::string two = kRegroup;
  two += "rule file.other\nbefore: s = mul(a, b); y = mul(s, c)\nafter: t = mul(b, c); y = mul(a, t)\n";
  const auto rules = parse_rules(two, "f");
  EXPECT_EQ(rules->only({"file.other"})->list().front().name, "file.other");
  EXPECT_EQ(rules->only({"none"})->size(), 0u);
}

TEST(RulesFile, GeneratedRulesCanBeLoaded) {
  GenerateRulesOptions options;
  options.max_ops = 2;
  options.ops = {"add", "mul", "relu"};
  options.cases = 15;
  const GeneratedRules found = generate_rules(options);
  ASSERT_FALSE(found.rules.empty());
  const auto rules = parse_rules(print_rules(found), "generated");
  ASSERT_EQ(rules->size(), found.rules.size());
  for (size_t i = 0; i < rules->size(); ++i) {
    EXPECT_TRUE(rules->evidence(i).is_sealed);
    EXPECT_EQ(rules->list()[i].pattern, found.rules[i].report.rule.pattern);
  }
}

}  // namespace
}  // namespace autograph
