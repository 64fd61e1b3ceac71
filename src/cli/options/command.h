// The option table: what verbs there are, what they take and how they are explained. Parsing (CLI11), --help, shell
// completion and the man page are all made from these structs; no text about a flag is written twice.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace autograph::cli {

class Session;

/// What kind of text an option takes: decides how it is completed and what a typo is compared with.
enum class ValueKind : uint8_t {
  text,       ///< Anything.
  file,       ///< A path.
  directory,  ///< A path to a folder.
  model,      ///< A path or zoo:NAME.
  zoo_model,  ///< The NAME of a built-in model.
  task,       ///< The name of a task to train, or a path.
  op,         ///< The name of an operator.
  strategy,   ///< The name of a strategy.
  device,     ///< The name of a device.
  choice,     ///< One of Option::choices.
};

/// Where a parsed value goes; bool makes the option a flag, a list lets it be given several times.
using Target = std::variant<bool*, std::string*, int64_t*, double*, std::vector<std::string>*>;

/// One flag, option or positional argument.
struct Option {
  std::string names;            ///< "-o,--output"; a positional is written without dashes: "MODEL".
  std::string value_name = {};  ///< Placeholder in help; "" for flags.
  std::string doc = {};         ///< One sentence.
  Target target = static_cast<bool*>(nullptr);
  ValueKind kind = ValueKind::text;
  std::vector<std::string> choices = {};  ///< For ValueKind::choice.
  bool required = false;
  std::string env = {};  ///< Environment variable that gives the value when the flag does not; or "".
  bool common = false;   ///< Every verb takes it.

  bool is_positional() const { return names.empty() || names[0] != '-'; }
  bool is_flag() const { return std::holds_alternative<bool*>(target); }
};

/// A command line that somebody might type, and what it is for.
struct Example {
  std::string command;
  std::string doc;
};

/// A verb, or the whole program.
struct Command {
  std::string name;
  std::string doc;                        ///< One line.
  std::string details = {};               ///< Paragraphs for --help and the man page.
  std::vector<Example> examples = {};     ///< Shown first.
  std::vector<Option> options = {};       ///< In the order in which they are shown.
  std::vector<Command> commands = {};     ///< Nested verbs: exactly one must be given.
  std::function<int(Session&)> run = {};  ///< Does the work; returns the exit code.
};

/// Long name of an option without dashes ("output" for "-o,--output"), or the placeholder of a positional.
std::string long_name(const Option& option);

/// All spellings: {"-o", "--output"}.
std::vector<std::string> spellings(const Option& option);

}  // namespace autograph::cli
