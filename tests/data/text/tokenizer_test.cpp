// Characters and byte pairs: what is learned, that texts come back, files, and pieces of texts as samples.
#include <gtest/gtest.h>

#include <map>

#include "autograph/data.h"
#include "autograph/error.h"
#include "autograph/random.h"
#include "data/text/byte_pairs.h"
#include "data/text/words.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

const std::string kText =
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, it "
    "was "
    "the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of "
    "Darkness.\n";

TEST(Tokenizer, CharactersAreNumberedByTheirCodePoints) {
  const Tokenizer tokenizer = Tokenizer::characters(
      "b\xC3\xA9"
      "a\xF0\x9F\x98\x80"
      "a");
  EXPECT_EQ(tokenizer.size(), 4);
  const std::vector<int32_t> tokens = tokenizer.encode(
      "a\xF0\x9F\x98\x80\xC3\xA9"
      "b");
  EXPECT_EQ(tokens, (std::vector<int32_t>{0, 3, 2, 1}));
  EXPECT_EQ(tokenizer.decode(tokens),
            "a\xF0\x9F\x98\x80\xC3\xA9"
            "b");
  EXPECT_EQ(message_of<ValueError>([&] { tokenizer.encode("abx"); }),
            "[tokens] text: character 'x' at offset 2 is unknown");
  EXPECT_EQ(message_of<FormatError>([&] { tokenizer.encode("a\xFF"); }),
            "[tokens] text: expected UTF-8, got byte 0xff at offset 1");
  EXPECT_EQ(message_of<ValueError>([&] {
              tokenizer.decode(std::vector<int32_t>{0, 4});
            }),
            "[tokens] token 1: expected 0 to 3, got 4");
  EXPECT_THROW(Tokenizer::characters(""), ValueError);
}

TEST(Tokenizer, WordsAreRunsWithOneSpaceInFront) {
  const auto words = [](std::string_view text) {
    std::vector<std::string> result;
    while (!text.empty()) {
      result.emplace_back(first_word(text));
      text.remove_prefix(result.back().size());
    }
    return result;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("It's 42 km,  ok\n\n x"), (Words{"It", "'", "s", " 42", " km", ",", " ", " ok", "\n\n", " x"}));
  EXPECT_EQ(words("   "), (Words{"   "}));
  EXPECT_EQ(words(std::string(600, 'a')), (Words{std::string(256, 'a'), std::string(256, 'a'), std::string(88, 'a')}));
}

// The definition, counted anew for each token.
std::vector<TokenPair> train_slowly(std::string_view text, int64_t size) {
  std::vector<std::vector<int32_t>> words;
  while (!text.empty()) {
    words.emplace_back();
    for (const char c : first_word(text)) words.back().push_back(static_cast<uint8_t>(c));
    text.remove_prefix(words.back().size());
  }
  std::vector<TokenPair> merges;
  while (256 + static_cast<int64_t>(merges.size()) < size) {
    std::map<TokenPair, int> counts;
    for (const auto& word : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    }
    TokenPair best;
    int most = 1;
    for (const auto& [pair, count] : counts) {
      if (count > most) {
        best = pair;
        most = count;
      }
    }
    if (most == 1) break;
    for (auto& word : words) {
      std::vector<int32_t> merged;
      for (size_t i = 0; i < word.size(); ++i) {
        const bool found = i + 1 < word.size() && TokenPair(word[i], word[i + 1]) == best;
        merged.push_back(found ? 256 + static_cast<int32_t>(merges.size()) : word[i]);
        i += found ? 1 : 0;
      }
      word = merged;
    }
    merges.push_back(best);
  }
  return merges;
}

TEST(Tokenizer, BytePairsAreThoseOfTheDefinition) {
  EXPECT_EQ(train_byte_pairs(kText, 400), train_slowly(kText, 400));
  Random random(7);
  for (int trial = 0; trial < 50; ++trial) {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "aab c\n"[random() % 6];
    EXPECT_EQ(train_byte_pairs(text, 300), train_slowly(text, 300)) << text;
  }
}

TEST(Tokenizer, BytePairsGiveEveryTextBack) {
  const Tokenizer tokenizer = Tokenizer::train_byte_pairs(kText, 330);
  EXPECT_GT(tokenizer.size(), 280);
  EXPECT_LE(tokenizer.size(), 330);
  EXPECT_LT(tokenizer.encode(kText).size(), kText.size() / 2);
  EXPECT_EQ(tokenizer.encode(" was").size(), 1U);
  Random random(3);
  for (int trial = 0; trial < 100; ++trial) {
    std::string text;
    for (uint64_t i = random() % 300; i > 0; --i) text += static_cast<char>(random());
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
  // One run of a letter, cut into words: no quadratic time.
  const std::string long_run(2'000'000, 'a');
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(long_run)), long_run);
  EXPECT_THROW(Tokenizer::train_byte_pairs(kText, 255), ValueError);
  EXPECT_EQ(Tokenizer::train_byte_pairs("", 1000).size(), 256);
}

TEST(Tokenizer, FilesGiveTheSameTokens) {
  const TestFolder folder;
  const Tokenizer pairs = Tokenizer::train_byte_pairs(kText, 300), characters = Tokenizer::characters(kText);
  for (const Tokenizer& tokenizer : {pairs, characters}) {
    tokenizer.save(folder / "t.json");
    const Tokenizer read = Tokenizer::load(folder / "t.json");
    EXPECT_EQ(read.size(), tokenizer.size());
    EXPECT_EQ(read.encode(kText), tokenizer.encode(kText));
    const std::string whole = folder.read("t.json");
    for (size_t size = 0; size + 1 < whole.size(); size += 7) {
      EXPECT_THROW(Tokenizer::load(folder.write("cut.json", whole.substr(0, size))), FormatError) << size;
    }
  }
}

TEST(Tokenizer, HostileFilesAreRefused) {
  const TestFolder folder;
  const auto error = [&](const std::string& rest) {
    const std::string text = R"({"format": "autograph.tokenizer", "version": 1, )" + rest;
    return message_of<FormatError>([&] { Tokenizer::load(folder.write("t.json", text)); });
  };
  EXPECT_EQ(error(R"("kind": "byte_pairs", "merges": [[97, 256]]})"),
            "[tokens] pair 0: expected tokens 0 to 255, got 97 and 256");
  EXPECT_EQ(error(R"("kind": "byte_pairs", "merges": [[97, 98], [97, 98]]})"), "[tokens] pair 1: 97 and 98 come twice");
  // Each token twice as long as the one before: 40 pairs would take a terabyte.
  std::string doubling = R"("kind": "byte_pairs", "merges": [[97, 97])";
  for (int i = 256; i < 300; ++i) doubling += ", [" + std::to_string(i) + ", " + std::to_string(i) + "]";
  EXPECT_EQ(error(doubling + "]}"), "[tokens] pair 8: expected a token of at most 256 bytes, got 512");
  EXPECT_EQ(error(R"("kind": "byte_pairs", "merges": [[97]]})"), "[tokens] merges: expected pairs, got [97]");
  EXPECT_EQ(error(R"("kind": "byte_pairs", "merges": [[97, -1]]})"), "[tokens] merges: expected 0 to 1048576, got -1");
  EXPECT_EQ(error(R"("kind": "characters", "characters": [98, 97]})"),
            "[tokens] characters: expected sorted characters, got 97 after 98");
  EXPECT_NE(error(R"("kind": "characters", "characters": [55296]})"), "");
  EXPECT_NE(error(R"("kind": "words"})").find("kind: expected characters or byte_pairs"), std::string::npos);
  EXPECT_EQ(message_of<FormatError>([&] { Tokenizer::load(folder.write("t.json", "[]")); }).find("[tokens] '"), 0U);
}

TEST(TokenDataset, TargetsAreTheTokensBehind) {
  const DatasetPtr dataset = token_dataset({10, 11, 12, 13, 14, 15, 16}, 3);
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->sample(1)[0].second.to_i64(), (std::vector<int64_t>{13, 14, 15}));
  EXPECT_EQ(dataset->sample(1)[1].second.to_i64(), (std::vector<int64_t>{14, 15, 16}));
  EXPECT_EQ(token_dataset({1, 2, 3, 4}, 3)->size(), 1);
  EXPECT_EQ(token_dataset({1, 2, 3, 4, 5}, 3, 1)->size(), 2);
  EXPECT_EQ(token_dataset({1, 2, 3, 4, 5}, 3, 1)->sample(1)[1].second.to_i64(), (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(message_of<ValueError>([] {
              token_dataset({1, 2, 3}, 3);
            }),
            "[data] tokens: expected 4 or more for pieces of 3, got 3");
  EXPECT_THROW(token_dataset({1, 2, 3}, 0), ValueError);
}

TEST(Tokenizer, StandsInOtherFilesAsText) {
  for (const Tokenizer& tokenizer : {Tokenizer::characters(kText), Tokenizer::train_byte_pairs(kText, 280)}) {
    const Tokenizer again = Tokenizer::from_json(tokenizer.to_json());
    EXPECT_EQ(again.kind(), tokenizer.kind());
    EXPECT_EQ(again.encode(kText), tokenizer.encode(kText));
  }
  EXPECT_EQ(Tokenizer::characters("a").kind(), "characters");
  EXPECT_EQ(Tokenizer::train_byte_pairs("a", 256).kind(), "byte_pairs");
  EXPECT_EQ(message_of<FormatError>([] { Tokenizer::from_json("{}"); }),
            "[tokens] text: expected a file of format 'autograph.tokenizer', version 1");
}

}  // namespace
}  // namespace autograph
