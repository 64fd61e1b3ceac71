// A primitive that is made when it has been asked for a few times. oneDNN generates code for each shape, which may take
// longer than to run it once, and many shapes come once: until then something else runs that gives the same bits.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>

#include "backends/cpu/onednn/team/team_primitive.h"

namespace autograph::onednn {

/// Throws dnnl::error where a primitive works with more memory than its kernel has for it.
void check_fits(const dnnl::memory::desc& scratchpad, size_t bytes);

/// Any number of threads may call get() at once.
class LatePrimitive {
 public:
  /// Runs that go by before the primitive is made.
  static constexpr int kRunsBefore = 3;

  /// `make` throws dnnl::error where oneDNN has none: then it is never there. It is made for as many threads as the
  /// calling thread uses now.
  explicit LatePrimitive(std::function<dnnl::primitive()> make);
  /// Null while something else shall run.
  const TeamPrimitive* get();

 private:
  void make();

  std::function<dnnl::primitive()> make_;
  int threads_;
  std::mutex mutex_;  // guards asked_ and made_
  int asked_ = 0;
  std::optional<TeamPrimitive> made_;
  std::atomic<const TeamPrimitive*> ready_ = nullptr;  // made_, when it is there
};

}  // namespace autograph::onednn
