#include "cli/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>

#include "autograph/error.h"

namespace autograph::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> deferred = false;     // is a scope alive?
std::atomic<bool> interrupted = false;  // was there a signal in it?

// One wish to stop may arrive twice: shells and wrappers send it to the program and to its group.
constexpr std::chrono::milliseconds kEcho{300};

sigset_t interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

// Files appear by rename when they are complete, so that the process may end at once, with the code that scripts know.
[[noreturn]] void end_program() {
  constexpr char kMessage[] = "\ninterrupted\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  _exit(static_cast<int>(ExitCode::interrupted));
}

void listen() {
  const sigset_t set = interrupts();
  Clock::time_point first;
  for (int signal = 0;;) {
    if (sigwait(&set, &signal) != 0) continue;
    if (deferred && !interrupted) {
      first = Clock::now();
      interrupted = true;
    } else if (!deferred || Clock::now() - first >= kEcho) {
      end_program();
    }
  }
}

}  // namespace

void install_interrupt_handler() {
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  try {
    std::thread(listen).detach();
  } catch (const std::system_error&) {
    // No thread to be had: Ctrl-C ends the program as it ends others.
    admit_interrupts();
  }
}

void admit_interrupts() {
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

InterruptScope::InterruptScope() : is_inner_(deferred) {
  if (is_inner_) return;
  interrupted = false;
  deferred = true;
}

InterruptScope::~InterruptScope() {
  if (!is_inner_) deferred = false;
}

bool InterruptScope::was_interrupted() { return interrupted; }

}  // namespace autograph::cli
