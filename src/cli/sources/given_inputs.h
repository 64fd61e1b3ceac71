// Inputs for a run: those that the user gives as files, the others drawn from the seed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/sources/model_source.h"

namespace autograph::cli {

/// --input NAME=FILE.npy or NAME=NUMBER, which may be repeated.
Option input_option(ModelOptions& options);

/// A value for every input of the model, kept in `loaded`; should the verb fail, the session says which extents nobody
/// gave. Throws UserError for a name that the model does not have
/// or a number that the input cannot hold, what read_npy() throws.
const std::vector<Datum>& given_inputs(Session& session, LoadedModel& loaded, const ModelOptions& options);

/// What the model has for inputs that were given, to be saved with `graph`, which was made of it. A warning names those
/// whose types do not fit any more.
std::map<std::string, Tensor> kept_defaults(const Session& session, const LoadedModel& loaded, const Graph& graph);

}  // namespace autograph::cli
