// A primitive with the team of threads that it was made for, which can also be run by a smaller one.
//
// oneDNN divides the work when a primitive is made, and threads of a team may wait for each other inside it: run by
// fewer threads than it was made for it gives other numbers, or never ends. So there is a twin for the smaller team:
// the same implementation, on the same layouts, made when it is first needed. It reads the same packed weights too, but
// where oneDNN packs them by the number of threads.
#pragma once

#include <dnnl.hpp>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backends/cpu/onednn/team/team_scope.h"
#include "backends/cpu/onednn/team/twin.h"

namespace autograph::onednn {

/// Of one user of a TeamPrimitive: what its twin reads in place of the weights, where that has a layout of its own for
/// them. There is none until a twin runs.
class TwinWeights {
 public:
  /// Known weights are packed once for each twin, others whenever it runs.
  explicit TwinWeights(bool are_known) : are_known_(are_known) {}

 private:
  friend class TeamPrimitive;
  // `args` with weights for `twin`; valid until the next call.
  std::span<const dnnl_exec_arg_t> replace(const std::shared_ptr<const Twin>& twin, const dnnl::stream& stream,
                                           std::span<const dnnl_exec_arg_t> args);

  bool are_known_;
  std::shared_ptr<const Twin> twin_;  // that memory_ is for
  dnnl::memory memory_;
  std::vector<dnnl_exec_arg_t> args_;
};

/// Any number of threads may call execute() at once.
class TeamPrimitive {
 public:
  /// For as many threads as the calling thread uses now.
  explicit TeamPrimitive(dnnl::primitive primitive);

  /// Runs it, with as many threads as the calling thread is allowed (see thread_limit.h): where oneDNN has no twin for
  /// so few, with all; likewise where it has one with other weights, and there are no `weights` for it.
  void execute(const dnnl::stream& stream, std::span<const dnnl_exec_arg_t> args, TwinWeights* weights = nullptr) const;

 private:
  // What changes while it is used; of its own, so that a TeamPrimitive can be moved.
  struct Last {
    std::mutex mutex;                  // guards twin
    std::shared_ptr<const Twin> twin;  // used last; null: none yet
  };
  std::shared_ptr<const Twin> twin_for(int threads) const;

  dnnl::primitive primitive_;
  int threads_;
  std::unique_ptr<Last> last_ = std::make_unique<Last>();
};

}  // namespace autograph::onednn
