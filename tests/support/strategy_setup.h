// What tests and benchmarks of a step of a search begin with: a context on a device, with a cache of its own.
#pragma once

#include <optional>
#include <string>

#include "engine/strategies/strategy.h"
#include "optimize/search/fused_cost.h"
#include "support/test_folder.h"

namespace autograph {

class StrategySetup {
 protected:
  /// With what `search_` says by then.
  void open(const std::string& device) {
    compile_.device = device;
    compile_.cache_folder = folder_.path();
    context_.emplace(get_device(device), compile_, search_, report_);
    cost_.emplace(context_->cost());
  }

  TestFolder folder_;
  CompileOptions compile_;
  SearchOptions search_;
  SearchReport report_;
  std::optional<StrategyContext> context_;
  std::optional<FusedCost> cost_;
};

}  // namespace autograph
