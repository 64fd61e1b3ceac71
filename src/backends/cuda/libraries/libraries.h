// Where NVIDIA's libraries are found when a program runs: one binary serves machines with and without them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace autograph::cuda {

/// Folders in which libraries are looked for beside those that the loader knows, in order: what AUTOGRAPH_CUDA_PATH
/// lists (with ':' between), CUDA_PATH and CUDA_HOME, where installers and containers put them, and the `nvidia`
/// packages of the Python environment that is active or whose python3 stands first in PATH. Only folders that are
/// there.
std::vector<std::string> library_folders();

/// A library that was opened, which is never closed: drivers keep threads.
struct Library {
  void* handle = nullptr;  ///< Null: none was found.
  std::string path;        ///< Of the file.
  std::string looked_for;  ///< Where none was found: names, folders, and what was wrong with those that were there.

  explicit operator bool() const { return handle != nullptr; }
};

/// Opens the first library of these names that `why_not` says "" of: in AUTOGRAPH_CUDA_PATH, by the loader, in the
/// other folders.
Library open_library(std::span<const char* const> names, FunctionRef<std::string(void* handle)> why_not);

/// Address of a function of an opened library; null where it has none.
void* find_function(void* handle, const char* name);

/// Fills `table` with the functions of `handle`. "", or "has no NAME" for the first that is missing.
#define AG_CUDA_LOAD(name, result, parameters)                                                          \
  table.name = reinterpret_cast<result(*) parameters>(::autograph::cuda::find_function(handle, #name)); \
  if (!table.name && missing.empty()) missing = "has no " #name;

}  // namespace autograph::cuda
