// Adds where it happened to an exception that a step threw.
#pragma once

#include <string>

namespace autograph {

/// Call inside a catch block: throws the current exception again, as the same type, with " (in WHERE)" after its
/// message. Out of memory becomes a BudgetError, foreign exceptions become InternalErrors.
[[noreturn]] void rethrow_with_place(const std::string& where);

}  // namespace autograph
