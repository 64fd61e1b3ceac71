// Inputs for a graph, drawn from a seed: what `run`, `check` and `bench` feed where the user gives nothing. The same
// seed gives the same bits on every machine.
//
// Extents that are not numbers: as given by name or by place ("x[2]", which is how extents without a name are given);
// else `batch` for names of a batch ("batch", "batch_size", "N", or an unknown leading extent); else 8 for names of a
// length ("seq", "len", "time", "token", "frame") and 16000 for those of sound ("sample", "audio", "wave", behind the
// first axis); else 224 in pictures (4 axes, of which the second or the last has extent 1, 3 or 4); else 1. A name that
// is an expression ("past_sequence_length + 1") is computed from the extents of its parts.
//
// Inputs that options have a value for are that value.
//
// Elements: floats are normal with deviation 1. Integers that index a table of constants or states, label classes, or
// say which image (directly, or through casts and reshapes), are drawn below the smallest such extent; integers named
// as a mask are 1, as positions count up, other i32 and i64 are 0 or 1. u8 takes 0..255, other narrow integers -8..7.
// Booleans are true for a mask, else drawn. Strings are short words. A sequence gets two elements, an optional its
// value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autograph/graph.h"
#include "autograph/tensor.h"

namespace autograph {

/// What to fill inputs with.
struct SeedOptions {
  uint64_t seed = 0;                          ///< Same seed, same elements.
  std::optional<int64_t> batch;               ///< Extent of batch symbols; 1 when not given.
  std::map<std::string, int64_t> dims;        ///< Extents by name, or by the place where they stand: "x[2]".
  std::map<std::string, Tensor> values = {};  ///< Inputs that are not drawn, by name: such as a model has a value for.
};

/// The type of input `index` with numbers for all extents. Throws ShapeError for an input of unknown rank, ValueError
/// when a name in `options.dims` occurs in no input or `batch` is given and no extent is a batch.
Type bound_input_type(const Graph& graph, size_t index, const SeedOptions& options = {});

/// A value for input `index`. Throws as bound_input_type().
Datum seeded_input(const Graph& graph, size_t index, const SeedOptions& options = {});

/// One value for every input of `graph`, in order. Throws as bound_input_type().
std::vector<Datum> seeded_inputs(const Graph& graph, const SeedOptions& options = {});

/// A copy of `graph` (which shares its weights) whose inputs have the types of bound_input_type(), with all other types
/// inferred again.
Graph bind_inputs(const Graph& graph, const SeedOptions& options = {});

/// The same with the types of these values, one for each input. Throws what Executable::run() throws where they do not
/// fit.
Graph bind_inputs(const Graph& graph, const std::vector<Datum>& inputs);

}  // namespace autograph
