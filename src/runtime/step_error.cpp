#include "runtime/step_error.h"

#include "base/rethrow.h"

namespace autograph {

void rethrow_with_place(const std::string& where) {
  rethrow_changed([&](const std::string& message) { return message + " (in " + where + ")"; });
}

}  // namespace autograph
