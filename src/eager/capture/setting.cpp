#include "autograph/setting.h"

#include "eager/capture/recording.h"
#include "eager/modes.h"

namespace autograph {

void Setting::set(bool on) {
  if (Recording* capture = modes().capture) capture->sets(is_on_);
  *is_on_ = on;
}

void Setting::guard(const std::string& what) const {
  if (Recording* capture = modes().capture) capture->asks(is_on_, what);
}

}  // namespace autograph
