// MODEL: a path or zoo:NAME?batch=N, and the flags that put numbers in for its symbolic extents.
#pragma once

#include <string>
#include <vector>

#include "autograph/model_io.h"
#include "autograph/seeded_inputs.h"
#include "cli/command.h"
#include "cli/session.h"

namespace autograph::cli {

/// MODEL, --batch and --dim.
struct ModelOptions {
  std::string model;
  int64_t batch = 0;              ///< 0: not given.
  std::vector<std::string> dims;  ///< "NAME=N"
};

/// The three as an option table.
std::vector<Option> model_option_table(ModelOptions& options);

/// A model that was loaded or built.
struct LoadedModel {
  std::string name;  ///< As the user wrote it.
  Model model;
  SeedOptions seeds;  ///< What the flags say about extents.
};

/// Loads or builds. Throws what load_onnx() and build_zoo_model() throw, UnsupportedError for saved plans.
LoadedModel load_model(const Session& session, const ModelOptions& options);

/// Is it a file, not zoo:NAME?
bool is_model_file(const std::string& model);

}  // namespace autograph::cli
