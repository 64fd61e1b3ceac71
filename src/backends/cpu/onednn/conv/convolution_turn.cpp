#include "backends/cpu/onednn/conv/convolution_turn.h"

#include <condition_variable>
#include <mutex>

namespace autograph::onednn {
namespace {

struct Room {
  std::mutex mutex;
  std::condition_variable is_empty;
  DataType weights = DataType::undef;
  int inside = 0;
};

Room& room() {
  static Room room;
  return room;
}

}  // namespace

ConvolutionTurn::ConvolutionTurn(DataType weights) {
  Room& r = room();
  std::unique_lock lock(r.mutex);
  r.is_empty.wait(lock, [&] { return r.inside == 0 || r.weights == weights; });
  r.weights = weights;
  ++r.inside;
}

ConvolutionTurn::~ConvolutionTurn() {
  Room& r = room();
  const std::lock_guard lock(r.mutex);
  if (--r.inside == 0) r.is_empty.notify_all();
}

}  // namespace autograph::onednn
