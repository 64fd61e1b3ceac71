// Names as they are shown: nothing that steers a terminal or breaks a document, and nothing else changed.
#include "base/printable.h"

#include <gtest/gtest.h>

namespace autograph {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  for (const std::string text : {"", "layer/conv.1 \\ \"x\"",
                                 "gr\xc3\xb6\xc3\x9f"
                                 "e",
                                 "\xe5\x9b\xbe", "\xf0\x9f\x8c\x8d"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(printable_lines(text), text);
  }
}

TEST(Printable, EscapesWhatSteersATerminal) {
  EXPECT_EQ(printable("a\033[31mb\n\t\r\x7f"), "a\\x1b[31mb\\n\\t\\r\\x7f");
  EXPECT_EQ(printable(std::string("\0a", 2)), "\\x00a");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");  // the control sequence introducer as one character
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "txt\xe2\x80\xa8"),
            "\\u202etxt\\u2028");
}

TEST(Printable, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("a\xff\xfe"), "a\\xff\\xfe");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                             // cut off
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
}

TEST(Printable, QuotedTextEndsWhereItsQuoteStandsAlone) {
  EXPECT_EQ(quoted("a\n\xff"), "\"a\\n\\xff\"");
  EXPECT_EQ(quoted(R"(say "a\b")"), R"("say \"a\\b\"")");
}

TEST(Printable, IsDoneOnce) {
  const std::string once = printable("a\n\xff\xe2\x80\xae");
  EXPECT_EQ(printable(once), once);
}

TEST(Printable, LinesStayWhereTheyAreWanted) { EXPECT_EQ(printable_lines("a\n\033b\xff"), "a\n\\x1bb\\xff"); }

}  // namespace
}  // namespace autograph
