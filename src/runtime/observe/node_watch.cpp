#include <algorithm>
#include <utility>

#include "autodiff/name_pattern.h"
#include "autograph/watch.h"
#include "base/check.h"

namespace autograph {
namespace {

thread_local NodeWatch* innermost = nullptr;

}  // namespace

NodeWatch::NodeWatch(std::string_view patterns, NodeCallback callback)
    : patterns_(patterns), callback_(std::move(callback)), outer_(innermost) {
  AG_CHECK_USER(callback_ != nullptr, ValueError, "[watch] callback: expected a function, got none (patterns '{}')",
                patterns);
  innermost = this;
}

NodeWatch::~NodeWatch() { innermost = outer_; }

NodeWatch* NodeWatch::current() { return innermost; }

bool NodeWatch::wants(const std::vector<std::string_view>& names) const {
  return steps_ || std::any_of(names.begin(), names.end(),
                               [&](std::string_view name) { return !name.empty() && fits(patterns_, name); });
}

void NodeWatch::show(const NodeRun& run) {
  ++num_shown_;
  const WatchNext next = callback_(run);
  steps_ = next == WatchNext::step;
  if (next != WatchNext::stop) return;
  has_stopped_ = true;
  throw UserError("[watch] stopped", ExitCode::failed);
}

}  // namespace autograph
