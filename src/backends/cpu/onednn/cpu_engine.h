// oneDNN's engine for processors.
#pragma once

#include <dnnl.hpp>

namespace autograph::onednn {

/// The one CPU engine.
const dnnl::engine& cpu_engine();

}  // namespace autograph::onednn
