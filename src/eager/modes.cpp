#include "eager/modes.h"

#include "autograph/devices.h"
#include "autograph/eager.h"
#include "base/check.h"
#include "eager/capture/recording.h"

namespace autograph {

EagerModes& modes() {
  thread_local EagerModes of_thread;
  return of_thread;
}

NoGrad::NoGrad() : previous_(modes().records) {
  modes().records = false;
  if (Recording* capture = modes().capture) capture->begin_no_grad();
}

NoGrad::~NoGrad() {
  modes().records = previous_;
  if (Recording* capture = modes().capture) capture->end_no_grad();
}

CheckFinite::CheckFinite() : previous_(modes().checks_finite) { modes().checks_finite = true; }
CheckFinite::~CheckFinite() { modes().checks_finite = previous_; }

SourceLines::SourceLines() : previous_(modes().keeps_lines) { modes().keeps_lines = true; }
SourceLines::~SourceLines() { modes().keeps_lines = previous_; }

SourceScope::SourceScope(SourceLine place) : previous_(modes().place), place_(place) { modes().place = &place_; }
SourceScope::~SourceScope() { modes().place = previous_; }

struct EagerDevice::Settings {
  const Device* device;
  int threads;
};

EagerDevice::EagerDevice(const std::string& device, int threads)
    : previous_(std::make_unique<Settings>(Settings{modes().device, modes().threads})) {
  AG_CHECK_USER(threads >= 0, ValueError, "[eager] threads: expected 0 or more, got {}", threads);
  const Device& found = get_device(device);
  AG_CHECK_USER(!found.memory(), UnsupportedError,
                "[eager] device: expected one that computes in the host's memory, got {} (capture the function and "
                "compile its graph for it)",
                device);
  modes().device = &found;
  modes().threads = threads;
}

EagerDevice::~EagerDevice() {
  modes().device = previous_->device;
  modes().threads = previous_->threads;
}

}  // namespace autograph
