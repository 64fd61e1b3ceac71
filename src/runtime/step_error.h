// Adds where it happened to an exception that a step threw.
#pragma once

#include <string>

namespace autograph {

/// Call inside a catch block: rethrow_changed() with " (in WHERE)" after the message.
[[noreturn]] void rethrow_with_place(const std::string& where);

}  // namespace autograph
