// Tests that begin with a StrategySetup.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/strategy_setup.h"

namespace autograph {

class StrategyFixture : public testing::Test, protected StrategySetup {
 protected:
  /// With what `search_` says by then, but for its budget.
  void open(const std::string& device) {
    search_.budget_seconds = 100;
    StrategySetup::open(device);
  }
};

}  // namespace autograph
