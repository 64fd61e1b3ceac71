// Settings of a run in its checkpoints, and that a run which goes on has the same.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "autograph/trainer.h"

namespace autograph {

/// Adds settings and attachments, where there are some, to the config of a checkpoint.
void add_settings(nlohmann::json& config, const TrainerOptions& options);

/// Compares those of `config` with those of `options`, by name; where one of both has none, their identities. Throws
/// UserError that names each one that differs, with both values.
void check_same_run(const nlohmann::json& config, const TrainerOptions& options);

}  // namespace autograph
