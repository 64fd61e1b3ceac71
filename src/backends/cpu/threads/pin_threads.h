// Binding threads to processors.
#pragma once

#include <sched.h>

#include <vector>

namespace autograph {

/// Binds the calling thread and its team of `threads` to processors of their own, of those that the caller may use;
/// does nothing when those are fewer, or when the caller is bound already. Its team stays bound.
void pin_cpu_threads(int threads);

/// Lets the calling thread use what it could before pin_cpu_threads().
void unpin_cpu_thread();

/// Where the streams of a run belong when the thread that asks for them is bound.
class StreamPins {
 public:
  /// For streams of the calling thread, which must not go on before they are done.
  StreamPins();
  /// Called by the thread of stream `stream` > 0, which has a team of `threads`.
  void bind_stream(int stream, int threads) const;
  /// Called by that thread when it is done.
  void release_stream() const;

 private:
  const cpu_set_t* mask_ = nullptr;  // what the asking thread could use before it was bound; null: it is not
  const std::vector<int>* cpus_ = nullptr;
};

}  // namespace autograph
