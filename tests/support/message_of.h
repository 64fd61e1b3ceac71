// What a call throws, in words.
#pragma once

#include <string>

namespace autograph {

/// The message of the error that `act` throws, "" when it throws none. Errors that are no ErrorType go on.
template <class ErrorType, class Act>
std::string message_of(const Act& act) {
  try {
    act();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "";
}

}  // namespace autograph
