// Averages of weights (UpdateOptions::average) in the place of the weights.
#pragma once

#include "autograph/trainer.h"

namespace autograph {

/// The evaluation reads the averages that the step keeps.
TrainingGraphs evaluated_by_averages(TrainingGraphs graphs);

}  // namespace autograph
