// A primitive with the team of threads that it was made for, which can also be run by a smaller one.
//
// oneDNN divides the work when a primitive is made, and threads of a team may wait for each other inside it: run by
// fewer threads than it was made for it gives other numbers, or never ends. So there is a twin for the smaller team:
// the same implementation, on the same layouts and packed weights, made when it is first needed.
#pragma once

#include <dnnl.hpp>
#include <memory>
#include <mutex>
#include <span>

namespace autograph::onednn {

/// Threads that oneDNN uses on the calling thread.
int threads_in_use();

/// Sets them while it lives.
class TeamScope {
 public:
  explicit TeamScope(int threads);
  ~TeamScope();
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;

 private:
  int before_;
};

/// Any number of threads may call execute() at once.
class TeamPrimitive {
 public:
  /// For as many threads as the calling thread uses now.
  explicit TeamPrimitive(dnnl::primitive primitive);

  /// Runs it, with as many threads as the calling thread is allowed (see thread_limit.h): where oneDNN has no twin for
  /// so few, with all.
  void execute(const dnnl::stream& stream, std::span<const dnnl_exec_arg_t> args) const;

 private:
  struct Twin {
    int threads = 0;
    dnnl::primitive primitive;  // empty: oneDNN has none
  };
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
