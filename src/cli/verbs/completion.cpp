// `autograph completion SHELL`: the completion script; `--values KIND` is what the scripts ask for when Tab is pressed.
#include "autograph/error.h"
#include "base/join.h"
#include "cli/options/help.h"
#include "cli/options/names.h"
#include "cli/session.h"
#include "cli/verbs.h"

namespace autograph::cli {
namespace {

struct Options {
  std::string shell;
  std::string values;
};

int run(Session& session, const Options& options) {
  if (!options.values.empty()) {
    for (const ValueKind kind : {ValueKind::model, ValueKind::zoo_model, ValueKind::task, ValueKind::op,
                                 ValueKind::strategy, ValueKind::device}) {
      if (dynamic_kind(kind) == options.values) session.print_text(join(names_of(kind), "\n") + "\n");
    }
    return 0;
  }
  if (options.shell.empty()) throw UserError("[cli] completion: expected SHELL (bash, zsh or fish), got none");
  session.print_text(completion_script(*session.program, options.shell));
  return 0;
}

}  // namespace

Command completion_command() {
  auto options = std::make_shared<Options>();
  return {
      .name = "completion",
      .doc = "print a completion script for a shell",
      .examples = {{"source <(autograph completion bash)", "Complete verbs, flags and names in this bash."},
                   {"autograph completion fish | source", "The same in fish."}},
      .options = {{.names = "SHELL",
                   .doc = "bash, zsh or fish.",
                   .target = &options->shell,
                   .kind = ValueKind::choice,
                   .choices = {"bash", "zsh", "fish"}},
                  {.names = "--values",
                   .value_name = "KIND",
                   .doc = "Print the names of a kind, one a line: what the scripts call.",
                   .target = &options->values,
                   .kind = ValueKind::choice,
                   .choices = {"model", "zoo_model", "task", "op", "strategy", "device"}}},
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli
