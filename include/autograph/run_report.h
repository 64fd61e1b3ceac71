// What a compiled graph tells about itself: passes, memory, kernels, times.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "autograph/pass_report.h"

namespace autograph {

/// How a plan came to be.
struct CompileReport {
  std::vector<PassReport> passes;  ///< In their order; empty where a schedule was given, which is for a finished graph.
  double plan_ms = 0;              ///< Choosing and making kernels, placing memory; with `tune` measuring, too.
};

/// Memory of one plan, in bytes.
struct MemoryReport {
  size_t arena_bytes = 0;           ///< Planned: one arena for intermediate tensors and the kernels' working memory.
  size_t sum_of_tensors_bytes = 0;  ///< What the same would take without reuse.
  size_t lower_bound_bytes = 0;     ///< Largest sum of what is alive at once: no plan can take less.
  size_t weight_bytes = 0;          ///< Constants, prepacked copies included.
};

/// A tensor, or working memory of a kernel, that is in use when a plan uses most memory.
struct PeakTensor {
  std::string type;         ///< "f32[8,64,112,112]"; "" for working memory.
  std::string node;         ///< Provenance of the node that makes it, or works with it.
  std::string op;           ///< Op of that node.
  std::string last_reader;  ///< Provenance of the last node that reads it; "" where it leaves the run.
  size_t bytes = 0;
};

/// What one step of a profiled run took.
struct StepProfile {
  std::string name;     ///< Provenance of the node, or its op.
  std::string op;       ///< Op name.
  std::string kernel;   ///< Kernel that ran.
  double start_us = 0;  ///< Since the start of the run.
  double duration_us = 0;
  int stream = 0;      ///< Track it ran on.
  std::string layout;  ///< Of its first input and output, "a -> b" where they differ; "" when they are no tensors.
  double flops = 0;    ///< Work as cost_of() counts it; 0 when the shapes were known only while running.
  double bytes = 0;    ///< Inputs and outputs, each moved once.
  size_t choice = 0;   ///< Index of its entry in Executable::kernel_choices().
};

/// One refusal or choice of a kernel: the answer to "why is this node slow".
struct KernelChoice {
  std::string node;                   ///< Provenance of the node.
  std::string op;                     ///< Op name.
  std::string kernel;                 ///< The kernel taken.
  std::vector<std::string> refusals;  ///< "candidate: reason", best candidate first.
};

/// A kernel that gave wrong numbers on this machine when it was attested, and is not taken any more.
struct RefusedKernel {
  std::string kernel;  ///< With its variant: "cpu.conv_onednn brgconv:avx512_core".
  std::string call;    ///< What it was to compute: op, types, threads.
  std::string fault;   ///< What it gave, and what is right.
};

}  // namespace autograph
