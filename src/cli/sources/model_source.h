// MODEL: a path or zoo:NAME?batch=N, and the flags that put numbers in for its symbolic extents.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "autograph/model_io.h"
#include "autograph/plan_file.h"
#include "autograph/seeded_inputs.h"
#include "cli/options/command.h"
#include "cli/session.h"

namespace autograph::cli {

/// A batch that nobody gave.
inline constexpr int64_t kNoBatch = std::numeric_limits<int64_t>::min();

/// MODEL, --map-weights, --allow-hard-links, --channel-block, --batch and --dim.
struct ModelOptions {
  std::string model;
  bool map_weights = false;
  bool allow_hard_links = false;
  int64_t channel_block = 0;  ///< 0: not given.
  int64_t batch = kNoBatch;
  std::vector<std::string> dims;         ///< "NAME=N"
  std::vector<std::string> inputs = {};  ///< "NAME=FILE.npy" or "NAME=NUMBER", of verbs with input_option().
};

/// These as an option table.
std::vector<Option> model_option_table(ModelOptions& options);

/// A model that was loaded or built.
struct LoadedModel {
  std::string name;  ///< As the user wrote it.
  Model model;
  SeedOptions seeds;                                ///< What the flags say about extents.
  std::shared_ptr<const SavedPlan> plan = nullptr;  ///< When it was read from an .agplan file; `model` has its graph.
  std::vector<Datum> inputs = {};                   ///< Once given_inputs() has been asked: their extents hold.
};

/// The model's graph with numbers for all extents: those of the inputs, where they are known, else those of the flags.
Graph bound_graph(const LoadedModel& loaded);

/// Puts it in the place of the model's. The flags have no names to go by any more.
void bind_extents(LoadedModel& loaded);

/// Loads or builds. Throws what load_onnx(), load_plan() and build_zoo_model() throw.
LoadedModel load_model(const Session& session, const ModelOptions& options);

/// The same where there are several: messages about the content of a file name it.
LoadedModel load_one_of(const Session& session, const ModelOptions& options);

/// Throws UserError when the model is a saved plan, which `verb` cannot use.
void refuse_plan(const LoadedModel& loaded, std::string_view verb);

/// Is it a file, not zoo:NAME?
bool is_model_file(const std::string& model);

/// Does a node of the graph draw random numbers? Two runs need not agree then.
bool draws_random_numbers(const Graph& graph);

}  // namespace autograph::cli
