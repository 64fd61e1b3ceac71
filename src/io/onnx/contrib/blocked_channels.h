// How many channels the blocks of a file hold.
#pragma once

#include "io/onnx/proto.h"

namespace autograph::io {

/// Gives every node of com.microsoft.nchwc the attribute `channel_block`, in graphs that have such nodes.
///
/// The optimiser stores weights in blocks of 8 or 16 channels, as the processor likes it that it runs on, and writes
/// nowhere which. `told` says it (0: nobody does); else a number of channels has to tell. Throws UnsupportedError where
/// nothing does, since half of the guesses would be wrong numbers; ValueError when `told` does not fit.
void mark_channel_blocks(onnx::ModelProto& model, int64_t told);

}  // namespace autograph::io
