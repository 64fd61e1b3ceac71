#include "engine/strategies/trials/timed_run.h"

#include "base/stopwatch.h"
#include "runtime/observe/launch_clock.h"

namespace autograph {

double timed_run_ms(const Device& device, const Executable& executable, const std::vector<Datum>& inputs) {
  if (device.properties().has_clock) {
    LaunchClock clock;
    executable.run(inputs);
    return clock.us() / 1e3;
  }
  const Stopwatch watch;
  executable.run(inputs);
  return watch.ms();
}

}  // namespace autograph
