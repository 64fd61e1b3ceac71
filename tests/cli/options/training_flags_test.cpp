// Flags of training steps that make no sense are refused, not ignored.
#include <gtest/gtest.h>

#include "cli/run_program.h"

namespace autograph {
namespace {

TEST(CliTrainingFlags, NegativeRatesAreRefused) {
  for (const char* verb : {"bench zoo:mlp --train --seconds 0", "compare zoo:mlp --train --seconds 0"}) {
    const ProgramResult result = run_program(std::string(verb) + " --learning-rate=-0.1");
    EXPECT_EQ(result.exit_code, 2) << verb;
    EXPECT_NE(result.err.find("learning-rate: expected a finite number of 0 or more, got -0.1"), std::string::npos)
        << result.err;
  }
}

}  // namespace
}  // namespace autograph
