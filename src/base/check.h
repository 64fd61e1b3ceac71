// Check macros. `AG_CHECK_USER` guards what a user can get wrong and throws the named error type; `AG_CHECK` guards
// what only a bug in AutoGraph can break. Both format their message with fmt, and only when the check fails.
#pragma once

#include <fmt/core.h>

#include <string>

#include "autograph/error.h"

namespace autograph {

/// Throws InternalError with the place in the source and a request to report it.
[[noreturn]] void throw_internal(const char* file, int line, const char* condition, const std::string& message);

}  // namespace autograph

/// Throws `ErrorType(fmt::format(...))` when `condition` is false.
#define AG_CHECK_USER(condition, ErrorType, ...)                   \
  do {                                                             \
    if (!(condition)) throw ErrorType(::fmt::format(__VA_ARGS__)); \
  } while (false)

/// Throws InternalError when `condition` is false; the rest of the arguments are a fmt message.
#define AG_CHECK(condition, ...)                                                                                  \
  do {                                                                                                            \
    if (!(condition)) ::autograph::throw_internal(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)

/// AG_CHECK in debug builds, nothing in release builds.
#ifdef NDEBUG
#define AG_DCHECK(...) \
  do {                 \
  } while (false)
#else
#define AG_DCHECK(...) AG_CHECK(__VA_ARGS__)
#endif
