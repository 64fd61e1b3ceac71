// `autograph rules`: the contract of its documents and exit codes.
#include <gtest/gtest.h>

#include "cli/run_program.h"

namespace autograph {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(CliRules, ListNamesEveryRuleWithPatternAndGuard) {
  const ProgramResult result = run_program("rules list --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = result.json();
  EXPECT_EQ(document["schema"], 1);
  ASSERT_GT(document["rules"].size(), 20u);
  for (const auto& rule : document["rules"]) {
    for (const char* field : {"name", "pattern", "replacement", "guard", "class", "verified"}) {
      EXPECT_TRUE(rule.contains(field)) << rule << field;
    }
  }
  EXPECT_TRUE(document["failed"].empty());
  const ProgramResult table = run_program("rules list");
  EXPECT_TRUE(contains(table.out, document["rules"][0]["name"].get<std::string>()));
}

TEST(CliRules, VerifyTellsCasesAndProof) {
  const std::string name = run_program("rules list --json").json()["rules"][0]["name"];
  const ProgramResult result = run_program("rules verify --json --cases 20 " + name);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = result.json();
  ASSERT_EQ(document["rules"].size(), 1u);
  EXPECT_EQ(document["rules"][0]["name"], name);
  const nlohmann::json verified = document["rules"][0]["verified"];
  EXPECT_GE(verified["exact_cases"], 10);
  EXPECT_GE(verified["float_cases"], 10);
  EXPECT_TRUE(verified["smt"].is_string());
  EXPECT_TRUE(document["failed"].empty());
  EXPECT_EQ(run_program("rules verify --no-smt --json --cases 20 " + name).json()["rules"][0]["verified"]["smt"],
            "not asked");
  EXPECT_TRUE(contains(run_program("rules verify --no-smt --cases 20 " + name).out, "1 of 1 rules verified\n"));
}

TEST(CliRules, UnknownRuleSuggestsTheNearest) {
  const std::string name = run_program("rules list --json").json()["rules"][0]["name"];
  const ProgramResult result = run_program("rules verify " + name.substr(0, name.size() - 1));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "did you mean '" + name + "'?")) << result.err;
}

TEST(CliRules, TimesThatAreNoneAreUsageErrors) {
  for (const std::string arguments : {"verify --smt-seconds -1", "verify --smt-seconds nan", "generate --seconds -1"}) {
    EXPECT_EQ(run_program("rules " + arguments, "timeout 60").exit_code, 2) << arguments;
  }
}

TEST(CliRules, UnknownSubverbSuggestsTheNearest) {
  const ProgramResult result = run_program("rules verfy");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "verify")) << result.err;
}

TEST(CliRules, GenerateWritesAReadableFile) {
  const TestFolder folder;
  const std::string file = folder / "found.txt";
  const ProgramResult result = run_program("rules generate --json --max-ops 2 --ops add --ops mul -o " + file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = result.json();
  ASSERT_FALSE(document["rules"].empty());
  for (const char* field : {"graphs", "classes", "candidates", "consequences", "rejected", "complete"}) {
    EXPECT_TRUE(document.contains(field)) << field;
  }
  const std::string text = read_text(file);
  EXPECT_TRUE(contains(text, "before: ")) << text;
  EXPECT_TRUE(contains(text, document["rules"][0]["pattern"].get<std::string>())) << text;
  EXPECT_EQ(run_program("rules generate --ops nothing").exit_code, 2);
  EXPECT_EQ(run_program("rules generate --max-ops 9").exit_code, 2);
}

}  // namespace
}  // namespace autograph
