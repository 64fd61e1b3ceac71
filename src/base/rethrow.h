// Changes the message of an exception on its way.
#pragma once

#include <string>

#include "base/function_ref.h"

namespace autograph {

/// Call inside a catch block: throws the current exception again, as the same type, with the message that `changed`
/// makes of its own. Out of memory becomes a BudgetError, foreign exceptions become InternalErrors.
[[noreturn]] void rethrow_changed(FunctionRef<std::string(const std::string&)> changed);

}  // namespace autograph
