// The verbs, one source each: what they take and what they do.
#pragma once

#include "cli/options/command.h"

namespace autograph::cli {

Command ablate_command();
Command bench_command();
Command bisect_command();
Command cache_command();
Command check_command();
Command compare_command();
Command completion_command();
/// `diff` of two models, `diff-runs` of what two runs wrote.
Command diff_command();
Command diff_runs_command();
Command doctor_command();
Command eval_command();
Command grad_command();
Command info_command();
Command man_command();
Command ops_command();
Command optimize_command();
Command predict_command();
Command profile_command();
Command rules_command();
/// `rules prune`.
Command prune_rules_command();
Command run_command();
Command train_command();
Command viz_command();
Command zoo_command();

/// The program with all its verbs; every command also gets the options `common`.
Command make_program(const std::vector<Option>& common);

}  // namespace autograph::cli
