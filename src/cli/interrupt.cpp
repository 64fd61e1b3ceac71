#include "cli/interrupt.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "autograph/error.h"

namespace autograph::cli {
namespace {

volatile sig_atomic_t deferred = 0;     // is a scope alive?
volatile sig_atomic_t interrupted = 0;  // was there a signal in it?
timespec first_at;                      // when; meaningful while `interrupted`

// One wish to stop may arrive twice: shells and wrappers send it to the program and to its group.
bool is_echo() {
  constexpr double kEchoSeconds = 0.3;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec - first_at.tv_sec) +
             1e-9 * static_cast<double>(now.tv_nsec - first_at.tv_nsec) <
         kEchoSeconds;
}

// Files appear by rename when they are complete, so that the process may end at once, with the code that scripts know.
extern "C" void on_interrupt(int) {
  if (deferred && !interrupted) {
    clock_gettime(CLOCK_MONOTONIC, &first_at);
    interrupted = 1;
    return;
  }
  if (deferred && is_echo()) return;
  constexpr char kMessage[] = "\ninterrupted\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  _exit(static_cast<int>(ExitCode::interrupted));
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

InterruptScope::InterruptScope() {
  interrupted = 0;
  deferred = 1;
}

InterruptScope::~InterruptScope() { deferred = 0; }

bool InterruptScope::was_interrupted() { return interrupted != 0; }

}  // namespace autograph::cli
