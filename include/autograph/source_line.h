// A place in the source of a program, for messages.
#pragma once

#include <cstdint>

namespace autograph {

/// File, line and function of a call, taken as a default argument: `SourceLine place = SourceLine::current()`. What
/// std::source_location is, without the header, which g++'s library hides from some releases of clang.
struct SourceLine {
  const char* file = "";
  uint32_t line = 0;
  const char* function = "";

  /// That of the call.
  static constexpr SourceLine current(const char* in_file = __builtin_FILE(), uint32_t at_line = __builtin_LINE(),
                                      const char* in_function = __builtin_FUNCTION()) {
    return {in_file, at_line, in_function};
  }
};

}  // namespace autograph
