// Changes the message of an exception on its way.
#pragma once

#include <string>

#include "base/function_ref.h"
#include "base/printable.h"

namespace autograph {

/// Call inside a catch block: throws the current exception again, as the same type, with the message that `changed`
/// makes of its own. Out of memory becomes a BudgetError, foreign exceptions become InternalErrors.
[[noreturn]] void rethrow_changed(FunctionRef<std::string(const std::string&)> changed);

/// What `read` returns; messages of its exceptions, each of which is one line, show names of what is read as
/// printable() does.
template <class Read>
auto with_printable_messages(const Read& read) {
  try {
    return read();
  } catch (...) {
    rethrow_changed([](const std::string& message) { return printable(message); });
  }
}

}  // namespace autograph
