// A stand-in for NVIDIA's driver, compiler and libraries, for tests on machines without a GPU: shared libraries with
// the same names and functions. Memory of its device has addresses that the host cannot follow; work is put off as long
// as can be, and done in the order that what events do not forbid; kernels are compiled by the compiler of the host.
// What a program does that it must not is an error, as with the driver, and noted.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "backends/cuda/libraries/abi.h"

namespace autograph::standin {

#define AG_STANDIN __attribute__((visibility("default")))

/// What is there now and has not been freed, and what has been done so far.
struct Counts {
  size_t allocations = 0;
  size_t pinned = 0;
  size_t streams = 0;
  size_t events = 0;
  size_t modules = 0;
  size_t graphs = 0;     ///< Ready to be launched or not.
  size_t allocated = 0;  ///< Pieces of memory so far.
  size_t launches = 0;   ///< Kernels, those of graphs not counted.
  size_t captures = 0;   ///< Begun so far.
  size_t replays = 0;    ///< Launches of graphs.
};
AG_STANDIN Counts counts();

/// What was done that must not be done, since this was asked last; for example the use of what was freed.
AG_STANDIN std::vector<std::string> take_misuses();

/// Whether it is written down in what order the device does its work from here on.
AG_STANDIN void keep_record(bool keeps);
/// Names of kernels, "copy in" and "copy out", since this was asked last.
AG_STANDIN std::vector<std::string> take_record();

/// For the stand-ins of libraries: adds work to a stream, or to what it captures.
AG_STANDIN cuda::CUresult enqueue(cuda::CUstream stream, std::function<void()> work);

/// For work: the memory behind an address of the device, of which `bytes` are used. Null, and a misuse, where nothing
/// is there.
AG_STANDIN void* at(const void* address, size_t bytes);

/// The bytes of a program for the device, as cuModuleLoadData takes them: `library` is a shared library.
AG_STANDIN std::string pack_program(int architecture, const std::string& library);

}  // namespace autograph::standin
