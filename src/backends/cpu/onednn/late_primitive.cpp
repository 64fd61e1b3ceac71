#include "backends/cpu/onednn/late_primitive.h"

#include <utility>

namespace autograph::onednn {

void check_fits(const dnnl::memory::desc& scratchpad, size_t bytes) {
  if (scratchpad.get_size() > bytes) throw dnnl::error(dnnl_out_of_memory, "more scratch memory than was planned");
}

LatePrimitive::LatePrimitive(std::function<dnnl::primitive()> make)
    : make_(std::move(make)), threads_(threads_in_use()) {}

const TeamPrimitive* LatePrimitive::get() {
  if (const TeamPrimitive* ready = ready_) return ready;
  const std::lock_guard lock(mutex_);
  if (make_ && ++asked_ > kRunsBefore) make();
  return ready_;
}

void LatePrimitive::make() {
  const TeamScope scope(threads_);
  try {
    ready_ = &made_.emplace(make_());
  } catch (const dnnl::error&) {
    // What ran so far goes on.
  }
  make_ = nullptr;
}

}  // namespace autograph::onednn
