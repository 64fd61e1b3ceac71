// Ctrl-C: ends the program at once, except where a verb would rather keep what it has so far.
#pragma once

namespace autograph::cli {

/// From now on SIGINT ends the program with exit code 130. To be called before there are other threads.
///
/// A thread that does nothing else waits for the signal, and all others block it. A handler would run wherever it finds
/// a thread, and some kernels of oneDNN (its matrix product that packs nothing) use the stack pointer for a buffer on
/// the heap while they run: what a signal puts on the stack then overwrites what lies in front of that buffer.
void install_interrupt_handler();

/// Lets the calling thread have SIGINT after all: for children, which would inherit that it is blocked.
void admit_interrupts();

/// While it lives, the first Ctrl-C is only remembered; the second ends the program. Scopes inside another belong to
/// it.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  /// Was there a Ctrl-C since the scope began?
  static bool was_interrupted();

 private:
  const bool is_inner_;
};

}  // namespace autograph::cli
