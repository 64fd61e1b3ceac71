// Rows of channels computed a few at a time by a primitive that serves any number of them: a convolution of single
// pixels is the same for each row. oneDNN keeps such a primitive for all shapes, and it adds in the same order as one
// that was made for the whole, so that it gives the same bits.
#pragma once

#include <dnnl.hpp>
#include <memory>
#include <span>
#include <vector>

#include "backends/cpu/onednn/movable_memory.h"

namespace autograph::onednn {

/// A primitive that reads and writes so many rows of f32, made for one thread.
struct RowTile {
  dnnl::primitive primitive;
  dnnl::memory::desc src, dst, scratchpad;
  int64_t rows = 0;
};

class RowTiles {
 public:
  /// What one run at a time works with.
  class State;

  /// `accumulates`: the primitive adds to what lies in its output.
  RowTiles(RowTile tile, int64_t rows, bool accumulates, int threads);
  size_t scratch_bytes() const;
  /// `args` are those of a primitive for all rows; they must outlive the state.
  std::unique_ptr<State> new_state(std::span<const dnnl_exec_arg_t> args) const;
  void run(State& state, const float* x, float* y, char* scratch) const;

 private:
  struct Worker;
  // Where things are in the scratch memory of a worker.
  size_t rows_in_at() const;
  size_t rows_out_at() const;
  size_t bytes_of_worker() const;
  void run_tile(Worker& worker, int64_t first, const float* x, float* y, char* scratch) const;
  void run_rest(Worker& worker, int64_t first, const float* x, float* y, char* scratch) const;
  void execute(Worker& worker, const float* x, float* y, char* scratch) const;

  RowTile tile_;
  int64_t rows_;
  bool accumulates_;
  int threads_;
  size_t in_row_, out_row_;  // elements
};

struct RowTiles::Worker {
  dnnl::stream stream{cpu_engine()};
  MovableMemory src, dst, scratchpad;
  std::vector<dnnl_exec_arg_t> args;
};

class RowTiles::State {
  friend class RowTiles;
  std::vector<Worker> workers_;  // one for each thread
};

}  // namespace autograph::onednn
