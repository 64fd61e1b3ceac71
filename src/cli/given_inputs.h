// Inputs for a run: those that the user gives as files, the others drawn from the seed.
#pragma once

#include "cli/model_source.h"

namespace autograph::cli {

/// --input NAME=FILE.npy, which may be repeated.
Option input_option(std::vector<std::string>& given);

/// A value for every input of the model. Throws UserError for a name that it does not have, what read_npy() throws.
std::vector<Datum> given_inputs(const LoadedModel& loaded, const std::vector<std::string>& given);

}  // namespace autograph::cli
