#include "base/check.h"

#include <cstring>

namespace autograph {

void throw_internal(const char* file, int line, const char* condition, const std::string& message) {
  const char* slash = std::strrchr(file, '/');
  throw InternalError(
      fmt::format("[{}:{}] check failed: {}{}{} (a bug in AutoGraph: report this message with the model)",
                  slash ? slash + 1 : file, line, condition, message.empty() ? "" : ": ", message));
}

}  // namespace autograph
