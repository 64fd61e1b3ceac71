// Settings of a run in its checkpoints, and that a run which goes on has the same.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "autograph/trainer.h"

namespace autograph {

/// An object of names and values, to stand in a checkpoint's config as "settings".
nlohmann::json settings_json(const std::vector<RunSetting>& settings);

/// Compares those of `config` with those of `options`, by name; where one of both has none, their identities. Throws
/// UserError that names each one that differs, with both values.
void check_same_run(const nlohmann::json& config, const TrainerOptions& options);

}  // namespace autograph
