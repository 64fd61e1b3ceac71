// The whole option table in the order in which help shows it.
#include "cli/verbs.h"

namespace autograph::cli {
namespace {

void add_common(Command& command, const std::vector<Option>& common) {
  for (Option option : common) {
    option.common = true;
    command.options.push_back(std::move(option));
  }
  for (Command& nested : command.commands) add_common(nested, common);
}

}  // namespace

Command make_program(const std::vector<Option>& common) {
  Command program{
      .name = "autograph",
      .doc = "import, check, optimise and run compute graphs",
      .details =
          "MODEL is a path to an .onnx file or a saved plan (.agplan), or zoo:NAME, with ?batch=N after a zoo name. "
          "Results go to stdout, "
          "as tables or with --json as one document; warnings, progress and logs go to stderr.",
      .examples = {{"autograph info model.onnx", "What is in it."},
                   {"autograph check model.onnx", "Does it give the right numbers here?"},
                   {"autograph bench model.onnx --seconds 5", "How fast is it?"},
                   {"autograph optimize model.onnx -o model.agplan", "Search for a faster graph and schedule."},
                   {"autograph doctor", "What this machine and this build can do."}},
      .commands = {info_command(),     check_command(),      run_command(),    bench_command(), profile_command(),
                   optimize_command(), grad_command(),       train_command(),  eval_command(),  predict_command(),
                   compare_command(),  ablate_command(),     bisect_command(), diff_command(),  diff_runs_command(),
                   viz_command(),      zoo_command(),        rules_command(),  cache_command(), ops_command(),
                   doctor_command(),   completion_command(), man_command()},
  };
  add_common(program, common);
  return program;
}

}  // namespace autograph::cli
