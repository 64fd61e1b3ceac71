// How wide a stage should be, by measurement: stages of several streams stay only where they end sooner than their
// nodes do one after the other.
#pragma once

#include "engine/strategies/trials/trial.h"

namespace autograph {

/// `proposal.schedule` with one stream in every stage whose streams do not pay on the device; sequential when none
/// does. Runs the graph several times both ways.
Schedule keep_paying_stages(const Trial& trial, const Proposal& proposal);

}  // namespace autograph
