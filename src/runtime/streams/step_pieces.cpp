#include "runtime/streams/step_pieces.h"

#include <algorithm>
#include <limits>

namespace autograph {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();
// To launch a graph takes the host about as long as two or three kernels do, and each has memory of the device: where a
// piece is shorter, next to a step that is waited for twice, there is nothing to gain.
constexpr size_t kLeastCaptured = 4;

void add_uncaptured(std::vector<StepPiece>& pieces, size_t begin, size_t end) {
  if (!pieces.empty() && !pieces.back().captured) {
    pieces.back().end = end;
  } else {
    pieces.push_back({begin, end, nullptr});
  }
}

}  // namespace

// Steps whose shapes are known only while running make memory, and may look at elements.
StepCapture::StepCapture(const Plan& plan) : refused_(kNone) {
  for (const Step& step : plan.steps) can_be_in_.push_back(step.kind == StepKind::fixed);
}

size_t StepCapture::end_of_piece(size_t begin) const {
  const auto from = can_be_in_.begin() + static_cast<ptrdiff_t>(begin);
  return static_cast<size_t>(std::find(from, can_be_in_.end(), false) - can_be_in_.begin());
}

// A plan without steps on the host is one launch for the host, however short.
bool StepCapture::is_worth_it(size_t begin, size_t end) const {
  return end - begin >= std::min(kLeastCaptured, can_be_in_.size());
}

std::vector<StepPiece> StepCapture::capture(Stream& stream, const std::function<void(size_t, size_t)>& enqueue) {
  std::vector<StepPiece> pieces;
  size_t begin = 0;
  while (is_possible_ && begin < can_be_in_.size()) {
    const size_t end = end_of_piece(begin);
    if (!is_worth_it(begin, end)) {
      const size_t next = std::max(end, begin + 1);
      add_uncaptured(pieces, begin, next);
      begin = next;
      continue;
    }
    refused_ = kNone;
    std::unique_ptr<CapturedWork> captured = stream.capture([&] { enqueue(begin, end); });
    if (captured) {
      pieces.push_back({begin, end, std::move(captured)});
      begin = end;
    } else if (refused_ != kNone) {
      can_be_in_[refused_] = false;  // and once more, without it
    } else {
      is_possible_ = false;  // the device cannot, or has no room for one more
    }
  }
  if (!is_possible_) pieces.clear();
  return pieces;
}

}  // namespace autograph
