// Ctrl-C: ends the program at once, except where a verb would rather keep what it has so far.
#pragma once

namespace autograph::cli {

/// From now on SIGINT ends the program with exit code 130.
void install_interrupt_handler();

/// While it lives, the first Ctrl-C is only remembered; the second ends the program.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  /// Was there a Ctrl-C since the scope began?
  static bool was_interrupted();
};

}  // namespace autograph::cli
