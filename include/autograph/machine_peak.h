// What this processor does at best, measured by loops that do nothing else: the roof with which the achieved speed of
// kernels is compared (the roofline model: a kernel takes at least flops / peak and at least bytes / bandwidth).
//
// Nothing is cached: other work on the machine lowers what is measured, and a stored figure would hide that.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace autograph {

/// Fused multiply-adds on registers alone, in f32; a multiply-add counts 2.
struct ComputePeak {
  int threads = 1;
  double gflops = 0;  ///< 1e9 operations per second, all threads together.
};

/// Streaming through memory that stays in one level of the hierarchy.
struct MemoryPeak {
  std::string level;               ///< "L1", "L2", "L3" or "memory".
  int threads = 1;                 ///< Each with a working set of its own.
  size_t bytes_per_thread = 0;     ///< The working set: a part of what the level holds; more than L3 for "memory".
  size_t capacity_per_thread = 0;  ///< Largest working set that the level holds; no limit for "memory".
  double read_gb_per_s = 0;        ///< 1e9 bytes read per second, all threads together.
  double copy_gb_per_s = 0;        ///< 1e9 bytes read or written per second (a copied byte counts 2).
};

struct MachinePeak {
  std::string isa;                   ///< Widest instruction set of the loops, in the words of Highway: "AVX3", "AVX2".
  std::vector<ComputePeak> compute;  ///< By threads: 1, 2, 4 and so on to all.
  std::vector<MemoryPeak> memory;    ///< By level, for one thread and for all.

  /// Peak of the largest measured thread count that does not exceed `threads`; 0 when nothing was measured.
  double gflops(int threads) const;
  /// The level that holds `bytes` spread evenly over `threads`, as measured with the largest thread count that does
  /// not exceed `threads`; null when nothing was measured.
  const MemoryPeak* level_for(double bytes, int threads) const;
};

/// Measures for up to `threads` threads (0: all that this process may use; never more), in about half
/// a second.
MachinePeak measure_machine_peak(int threads = 0);

}  // namespace autograph
