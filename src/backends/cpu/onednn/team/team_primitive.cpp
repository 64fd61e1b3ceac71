#include "backends/cpu/onednn/team/team_primitive.h"

#include <algorithm>
#include <array>
#include <utility>

#include "backends/cpu/onednn/cpu_engine.h"
#include "backends/cpu/threads/thread_limit.h"
#include "base/check.h"

namespace autograph::onednn {
namespace {

// oneDNN's C interface takes plain arrays of arguments; the C++ one builds a map on every call.
void run(const dnnl::primitive& primitive, const dnnl::stream& stream, std::span<const dnnl_exec_arg_t> args) {
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(args.size()), args.data());
  AG_CHECK(status == dnnl_success, "oneDNN execute gave status {}", static_cast<int>(status));
}

}  // namespace

std::span<const dnnl_exec_arg_t> TwinWeights::replace(const std::shared_ptr<const Twin>& twin,
                                                      const dnnl::stream& stream,
                                                      std::span<const dnnl_exec_arg_t> args) {
  const bool is_new = twin_ != twin;
  if (is_new) memory_ = dnnl::memory(twin->weights, cpu_engine());
  args_.assign(args.begin(), args.end());
  const auto weights = std::ranges::find(args_, DNNL_ARG_WEIGHTS, &dnnl_exec_arg_t::arg);
  AG_CHECK(weights != args_.end(), "a oneDNN primitive with weights was given none, but {} arguments", args.size());
  const dnnl_memory_t given = std::exchange(weights->memory, memory_.get());
  if (is_new || !are_known_) {
    const std::array pair{dnnl_exec_arg_t{DNNL_ARG_FROM, given}, dnnl_exec_arg_t{DNNL_ARG_TO, memory_.get()}};
    run(twin->repack, stream, pair);
    twin_ = twin;
  }
  return args_;
}

TeamPrimitive::TeamPrimitive(dnnl::primitive primitive)
    : primitive_(std::move(primitive)), threads_(threads_in_use()) {}

std::shared_ptr<const Twin> TeamPrimitive::twin_for(int threads) const {
  const std::lock_guard lock(last_->mutex);
  if (!last_->twin || last_->twin->threads != threads) {
    last_->twin = std::make_shared<const Twin>(make_twin(primitive_, threads));
  }
  return last_->twin;
}

void TeamPrimitive::execute(const dnnl::stream& stream, std::span<const dnnl_exec_arg_t> args,
                            TwinWeights* weights) const {
  const int threads = threads_allowed(threads_);
  if (threads < threads_) {
    const std::shared_ptr<const Twin> twin = twin_for(threads);
    if (twin->primitive && (!twin->repack || weights)) {
      const TeamScope scope(threads);
      run(twin->primitive, stream, twin->repack ? weights->replace(twin, stream, args) : args);
      return;
    }
  }
  run(primitive_, stream, args);
}

}  // namespace autograph::onednn
