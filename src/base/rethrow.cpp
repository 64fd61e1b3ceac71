#include "base/rethrow.h"

#include <new>

#include "base/check.h"

namespace autograph {
namespace {

// Rethrows as the first of these types that `error` is; most derived types first.
template <class... Types>
void rethrow_as(const Error& error, const std::string& message) {
  (
      [&] {
        if (dynamic_cast<const Types*>(&error)) throw Types(message);
      }(),
      ...);
}

}  // namespace

void rethrow_changed(FunctionRef<std::string(const std::string&)> changed) {
  try {
    throw;
  } catch (const Error& error) {
    const std::string message = changed(error.what());
    rethrow_as<ShapeError, TypeError, ValueError, NonfiniteError, FormatError, BudgetError>(error, message);
    if (dynamic_cast<const UserError*>(&error)) throw UserError(message, error.exit_code());
    rethrow_as<IoError, UnsupportedError, DeviceError, InternalError>(error, message);
    throw Error(error.exit_code(), message);
  } catch (const std::bad_alloc&) {
    throw BudgetError(changed("[memory] step: out of memory"));
  } catch (const std::exception& error) {
    throw InternalError(changed(error.what()));
  }
}

}  // namespace autograph
