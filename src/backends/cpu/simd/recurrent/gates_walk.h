// How gradients of recurrent layers go through the positions of one direction: the sequences of a batch go their own
// ways, so every thread takes some of them through all positions.
#pragma once

#include "autograph/kernel.h"
#include "backends/cpu/threads/parallel.h"

namespace autograph::simd {

class GatesWalk {
 public:
  /// Of states [length, batch, hidden].
  GatesWalk(const KernelCall& call, const Dims& states)
      : length(states[0]),
        batch(states[1]),
        hidden(states[2]),
        reverse_(call.attributes.flag("reverse")),
        threads_(useful_threads(call.threads, length * batch * hidden * hidden)) {}

  /// The first row of step t where all rows, of all positions, stand one behind the other in memory.
  int64_t row(int64_t t) const { return (reverse_ ? length - 1 - t : t) * batch; }

  /// Calls share(begin, end): sequences [begin, end), all that one thread does.
  template <class Share>
  void for_sequences(const Share& share) const {
    for_shares(threads_, batch, [&](int64_t begin, int64_t end, int) { share(begin, end); });
  }

  /// Calls step(row(t), begin, end) from the last step t to the first.
  template <class Step>
  void go_back(const Step& step) const {
    for_sequences([&](int64_t begin, int64_t end) {
      for (int64_t t = length; t-- > 0;) step(row(t), begin, end);
    });
  }

  const int64_t length, batch, hidden;

 private:
  const bool reverse_;
  const int threads_;
};

}  // namespace autograph::simd
