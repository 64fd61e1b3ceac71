// Exceptions that cross the AutoGraph API. Every one carries an exit code, so that the command line and other clients
// can tell a bad argument from a broken file, a missing feature, a spent budget or a bug in AutoGraph.
//
// Message form: `[where] what: expected E, got G (context; hint)`.
#pragma once

#include <stdexcept>
#include <string>

namespace autograph {

/// Stable process exit codes; the command line returns them and `Error::exit_code()` carries them.
enum class ExitCode : int {
  done = 0,                ///< Finished as asked.
  failed = 1,              ///< The run failed for a reason outside AutoGraph, for example a full disk.
  usage = 2,               ///< A bad argument.
  malformed = 3,           ///< A malformed model or data file.
  unsupported = 4,         ///< An operator, opset or dtype that AutoGraph does not have.
  over_budget = 5,         ///< Memory, time or node budget exceeded.
  mismatch = 6,            ///< Numbers differ from the reference.
  device_unavailable = 7,  ///< The requested device is not there.
  timeout = 8,             ///< Gave up waiting.
  peer_lost = 9,           ///< A distributed peer was lost.
  internal = 70,           ///< A bug in AutoGraph.
  interrupted = 130,       ///< Stopped by the user.
};

/// Base of all AutoGraph exceptions.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  /// The process exit code that belongs to this error.
  ExitCode exit_code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// The caller passed something wrong. Catch this to handle every mistake a user can make.
class UserError : public Error {
 public:
  explicit UserError(const std::string& message, ExitCode code = ExitCode::usage) : Error(code, message) {}
};

/// Shapes or ranks that do not fit together.
class ShapeError : public UserError {
 public:
  explicit ShapeError(const std::string& message) : UserError(message) {}
};

/// A dtype, or a kind of value, that does not fit.
class TypeError : public UserError {
 public:
  explicit TypeError(const std::string& message) : UserError(message) {}
};

/// A value out of range.
class ValueError : public UserError {
 public:
  explicit ValueError(const std::string& message) : UserError(message) {}
};

/// A NaN or infinity where CompileOptions::check_nan looks for them.
class NonfiniteError : public UserError {
 public:
  explicit NonfiniteError(const std::string& message) : UserError(message, ExitCode::failed) {}
};

/// A malformed model, text form or data file.
class FormatError : public UserError {
 public:
  explicit FormatError(const std::string& message) : UserError(message, ExitCode::malformed) {}
};

/// More memory, time or nodes than the budget allows; raised before the resource is taken.
class BudgetError : public UserError {
 public:
  explicit BudgetError(const std::string& message) : UserError(message, ExitCode::over_budget) {}
};

/// The operating system refused: a file that cannot be opened, a full disk.
class IoError : public Error {
 public:
  explicit IoError(const std::string& message) : Error(ExitCode::failed, message) {}
};

/// Well-formed, but AutoGraph does not have it. The message lists everything that is missing.
class UnsupportedError : public Error {
 public:
  explicit UnsupportedError(const std::string& message) : Error(ExitCode::unsupported, message) {}
};

/// A device call failed, or the device is not there.
class DeviceError : public Error {
 public:
  explicit DeviceError(const std::string& message) : Error(ExitCode::device_unavailable, message) {}
};

/// A bug in AutoGraph: never caused by user input alone.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& message) : Error(ExitCode::internal, message) {}
};

}  // namespace autograph
