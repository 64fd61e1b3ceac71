// How many channels the blocks of a file hold.
#pragma once

#include "io/onnx/proto.h"

namespace autograph::io {

/// Gives every node of com.microsoft.nchwc the attribute `channel_block`, in graphs that have such nodes.
///
/// The optimiser stores weights in blocks of 8 or 16 channels, as the processor likes it that it runs on, and writes
/// nowhere which. Where a number of channels tells, that is taken, else what ONNX Runtime takes on this processor.
/// Returns whether nothing told.
bool mark_channel_blocks(onnx::ModelProto& model);

}  // namespace autograph::io
