// Compiling a graph for a device and running it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograph/donation.h"
#include "autograph/graph.h"
#include "autograph/kernel_times.h"
#include "autograph/precision.h"
#include "autograph/run_report.h"
#include "autograph/schedule.h"
#include "autograph/state_store.h"
#include "autograph/tensor.h"

namespace autograph {

/// How far choosing kernels by measurement has come.
struct TuneProgress {
  size_t done = 0;          ///< Steps of the plan asked about; in the network: plans run.
  size_t all = 0;           ///< Of so many, at most.
  size_t measured = 0;      ///< Kernels or plans measured so far.
  bool in_network = false;  ///< Whole plans are run, kernels have been measured.
};

/// Why a kernel runs before the graph does.
enum class KernelTrial : uint8_t { measure, attest };

/// What there is rarely a reason to set: for experiments, searches and those who look for faults.
struct ExpertOptions {
  /// Where nodes of the graph run; passes are not run then. Null: one after the other, each on all threads. Not for
  /// graphs with shapes that are known only while running, which run as if there were none.
  std::shared_ptr<const Schedule> schedule = nullptr;
  bool use_passes = true;  ///< Run the passes that are not needed for running.
  std::vector<std::string> disabled_passes =
      {};  ///< Passes to leave out, by name; ValueError when there is no such pass.
  /// Bind the threads of a run to processors of their own; the caller's only while it runs. For machines that run
  /// nothing else: runs at the same time would meet on the same processors.
  bool pin_threads = false;
  /// Use all threads even where other programs keep processors busy for long. Else a run then takes as many as find a
  /// processor, since a team waits for its last thread in every step.
  bool fixed_threads = false;
  /// With CompileOptions::tune: times measured before on this machine, which are asked before the cache is. May be
  /// null.
  std::shared_ptr<const KernelTimes> kernel_times = nullptr;
  bool tune_in_network =
      true;  ///< With CompileOptions::tune: run whole plans, too, and choose by what kernels take there.
  /// Asked before kernels are run to be measured and, with a name of the kernel and its call, before one is run to be
  /// attested. False: what has not been measured yet is chosen by estimate, what has not been attested yet is trusted
  /// this time. Null: always.
  std::function<bool(KernelTrial trial, std::string_view kernel)> may_try = nullptr;
};

/// Where a run is looked through for NaN and infinity.
enum class NanCheck : uint8_t {
  off,
  /// Behind every step of the plan that runs without it, too, where nodes may be joined. Where a step makes one, and
  /// where an input or a weight holds a NaN, the nodes run one by one from the same inputs, so that the first is named.
  /// What a later op of a joined step turns into a number is not seen.
  steps,
  /// Behind every node of the graph as it was given: no pass that may be left out runs.
  nodes,
};

/// How to compile.
struct CompileOptions {
  std::string device = "cpu";  ///< One of available_devices(), or of add_device().
  int threads = 0;             ///< Threads of one run; 0 = what this process may use (cgroup quota included).
  /// Refuse plans that need more than this for activations; 0 = no limit. In the memory of a device states count, too:
  /// those for which there is no room wait on the host, and travel around the steps that use them (print_plan()).
  size_t memory_budget_bytes = 0;
  Precision precision = Precision::f32;
  bool exact = false;  ///< No kernels that sum in another order than the op suggests (Winograd).
  bool tune = false;   ///< Choose kernels and layouts by measuring them; measurements are kept in a cache on disk.
  std::string cache_folder = {};  ///< Of the cache; "": `$XDG_CACHE_HOME/autograph` or `~/.cache/autograph`.
  /// Trust a kernel only when one run of it, with these shapes and weights, gave what the reference gives; once, what
  /// was found is kept in the cache. Kernels that gave something else are not taken any more, with this or without.
  /// `tune` does so, too. See attested_kernels.h.
  bool attest = false;
  std::function<void(const TuneProgress&)> on_tune = nullptr;  ///< Called while measuring.
  /// Free weights of which kernels keep packed copies, where all shapes are known: Executable::graph() then has
  /// constants without elements (`raw() == nullptr`), and halves the memory of large models.
  bool release_weights = false;
  /// What the graph's states are; those that it does not know yet are added. Nothing: a store of the executable's own.
  std::optional<StateStore> states = {};
  /// Inputs whose memory run_into() may be given as that of an output of the same dtype and shape, too: no input and no
  /// output stands here twice. ValueError, TypeError or ShapeError when a pair does not fit.
  std::vector<Donation> donations = {};
  /// Outputs of run() stay in the memory of the device, where it has its own: for inputs of runs to come, and for
  /// Tensor::to_host(). Otherwise they are copied to the host.
  bool keep_on_device = false;
  /// Stop with NonfiniteError, which names the node, at the first NaN and at the first infinity that is made from
  /// finite inputs.
  NanCheck check_nan = NanCheck::off;
  bool profile = false;  ///< Record the time of every step; see Executable::profile().
  ExpertOptions expert = {};
};

/// What one run gave: the outputs in the order of the graph's, and by name.
class Outputs : public std::vector<Datum> {
 public:
  Outputs() = default;
  Outputs(std::vector<Datum> values, std::shared_ptr<const std::vector<std::string>> names)
      : std::vector<Datum>(std::move(values)), names_(std::move(names)) {}
  using std::vector<Datum>::operator[];
  /// The tensor of the output `name`; throws ValueError with the nearest name when there is none, TypeError when it is
  /// no tensor.
  const Tensor& operator[](std::string_view name) const;

 private:
  std::shared_ptr<const std::vector<std::string>> names_;  // null: none
};

/// An input of a run by name.
using NamedInput = std::pair<std::string, Datum>;

/// A compiled graph. Thread-safe: any number of threads may call run() at once. Signal handlers of the program need an
/// alternate stack (SA_ONSTACK) on threads that run graphs, see README, Limits.
class Executable {
 public:
  /// Empty: everything but assignment throws ValueError.
  Executable();
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  ~Executable();

  /// Runs once. Inputs in the order of the graph's inputs; dims that were symbolic are bound by them. Inputs lie on the
  /// host or in the memory of the device, which then need not copy them.
  /// Throws ShapeError or TypeError naming the input when one does not fit, BudgetError before allocating too much.
  Outputs run(const std::vector<Datum>& inputs) const;
  /// As above, in any order: `program.run({{"x", x}, {"mask", mask}})["y"]`. Throws ValueError naming inputs that are
  /// missing, given twice or not of the graph.
  Outputs run(std::initializer_list<NamedInput> inputs) const;
  /// As above, for inputs that are collected while the program runs.
  Outputs run(std::span<const NamedInput> inputs) const;
  /// As run(), writing into tensors of the caller: no allocation once warm, but for kernels that have packed a state
  /// which was written since. All outputs must be static for these inputs; throws ShapeError when one is not or does
  /// not fit, ValueError when one shares memory with another or with an input, unless CompileOptions::donations has the
  /// pair and the memory is the same.
  void run_into(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) const;

  /// What the states of the graph are between runs. A run that ends with an error may have updated some of them.
  const StateStore& states() const;
  /// The graph as it is executed.
  const Graph& graph() const;
  /// Memory of the plan used last; a graph whose input types are all static has its plan from the start.
  MemoryReport memory() const;
  /// What lies in the arena of that plan at the step where most of it is in use, largest first: who owns the peak.
  /// Tensors that the backward pass of a training step needs name one of its nodes as their last reader.
  std::vector<PeakTensor> memory_at_peak() const;
  /// How that plan came to be: its passes, what they did, how long it took. Where there is no plan yet, the passes that
  /// have run while extents were not known.
  CompileReport compile_report() const;
  /// Kernels chosen for that plan.
  std::vector<KernelChoice> kernel_choices() const;
  /// With CompileOptions::tune: the times from which the kernels of a graph with static inputs were chosen.
  KernelTimes kernel_times() const;
  /// Steps of the last profiled run; empty unless CompileOptions::profile.
  std::vector<StepProfile> profile() const;
  /// The plan as text: steps in order with kernels and arena offsets.
  std::string print_plan() const;
  /// The schedule by which it runs; sequential where nodes run one after the other.
  const Schedule& schedule() const;
  /// What a run takes by the clock of a simulated device, launched as a captured graph; nothing on other devices.
  std::optional<double> simulated_latency_ms() const;
  /// Number of threads that a run uses.
  int threads() const;
  /// Number of threads that a run would use now: fewer while other programs keep processors busy.
  int threads_now() const;

  /// Implementation, for the library itself.
  class Impl;
  explicit Executable(std::unique_ptr<Impl> impl);

 private:
  Impl& impl() const;
  std::unique_ptr<Impl> impl_;
  std::shared_ptr<const std::vector<std::string>> output_names_;
};

/// Compiles `graph` as it stands, without a search (optimize() searches); throws UnsupportedError listing every op
/// without a kernel, DeviceError when the device is not there.
Executable compile(Graph graph, const CompileOptions& options = {});

/// Devices of this build on this machine, best first.
std::vector<std::string> available_devices();

}  // namespace autograph
