// Which kernels of a device are attested, and how, as compile options say.
#pragma once

#include "accuracy/scaled_tensor.h"
#include "autograph/compile.h"
#include "autograph/devices.h"
#include "cost/verdicts.h"

namespace autograph {

/// The cache's folder that the options name, or the default one.
std::string cache_folder_of(const CompileOptions& options);

/// Errors of the kernels that the options allow.
ErrorModel error_model_of(const CompileOptions& options);

/// What is known about the kernels of a device; null for devices whose only kernels are the reference.
Verdicts* verdicts_of(const Device& device, const CompileOptions& options);

}  // namespace autograph
