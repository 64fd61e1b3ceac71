// A wrong kernel among right ones: the CPU's convolutions with epilogues, where of two that multiply or add a number
// the second one gets the number of the first. So a library was wrong once.
#pragma once

#include <string>

#include "autograph/graph.h"
#include "autograph/kernel.h"

namespace autograph {

/// Name of the wrong kernel.
inline constexpr const char* kPlantedKernel = "cpu.planted";

/// The wrong kernel, as fast as the right one.
KernelDef planted_kernel();

/// A device, which compile() knows by this name, with the kernels of the CPU and the wrong one before them.
std::string planted_device();

/// Convolutions of which one has the epilogue that the wrong kernel gets wrong.
Graph planted_model();

}  // namespace autograph
