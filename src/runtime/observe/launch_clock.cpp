#include "runtime/observe/launch_clock.h"

#include <utility>

namespace autograph {
namespace {

thread_local LaunchClock* clock_of_thread = nullptr;

}  // namespace

LaunchClock::LaunchClock() : outer_(std::exchange(clock_of_thread, this)) {}

LaunchClock::~LaunchClock() { clock_of_thread = outer_; }

LaunchClock* LaunchClock::of_this_thread() { return clock_of_thread; }

}  // namespace autograph
