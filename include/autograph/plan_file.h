// Saved plans (.agplan): what a search found, kept with all that is needed to run it without searching again.
//
// A plan is bound to the machine on which it was measured: elsewhere it still gives the right numbers, but need not be
// the fastest. `differences()` tells whether it is elsewhere, `revalidate()` what to do then.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "autograph/compare_values.h"
#include "autograph/compile.h"
#include "autograph/search.h"

namespace autograph {

/// Where a plan was made.
struct PlanOrigin {
  std::string version;                   ///< Of AutoGraph.
  std::string model;                     ///< Of what model, in the words of the user.
  std::string device;                    ///< CompileOptions::device.
  std::string identity;                  ///< The machine, its libraries and their versions.
  int threads = 0;                       ///< Threads of a run.
  bool tune = false;                     ///< CompileOptions::tune.
  bool exact = false;                    ///< CompileOptions::exact.
  Precision precision = Precision::f32;  ///< CompileOptions::precision.
};

/// What the graph gives for inputs that anybody can draw again.
struct PlanProbe {
  uint64_t seed = 0;           ///< Of seeded_inputs(), but for inputs with a default.
  std::vector<Datum> outputs;  ///< What was computed where the plan was made; empty when outputs are no tensors.
};

/// The content of a plan file.
struct SavedPlan {
  Optimized optimized;
  PlanOrigin origin;
  PlanProbe probe;
  std::vector<double> node_us;  ///< Measured time of each node by its position in topological order; may be empty.
  KernelTimes kernel_times;     ///< By which kernels were chosen where PlanOrigin::tune; they hold for that machine.
  std::map<std::string, Tensor> input_defaults;  ///< As Model::input_defaults: what inputs are that a run leaves out.
};

/// Where compile() with these options happens.
PlanOrigin plan_origin(const CompileOptions& options, const std::string& model);

/// Runs what was found once on inputs drawn from `seed`, or that have a default, and measures its nodes.
SavedPlan make_plan(Optimized optimized, const CompileOptions& options, const std::string& model, uint64_t seed,
                    const std::map<std::string, Tensor>& input_defaults = {});

/// The same with `compiled`, made of `optimized` with `options`, CompileOptions::profile and no passes, in place of
/// compiling it once more. Its states, where it has any, must be as before the first run.
SavedPlan make_plan(Optimized optimized, const Executable& compiled, const CompileOptions& options,
                    const std::string& model, uint64_t seed, const std::map<std::string, Tensor>& input_defaults = {});

/// Compiles it as it was made: with its kernel times where they hold. With CompileOptions::tune tuning goes on from
/// there, and whole plans are run where the plan has none that were.
Executable compile(const SavedPlan& plan, CompileOptions options);

/// Writes by way of a temporary file; throws IoError.
void save_plan(const SavedPlan& plan, const std::string& path);

/// About what writing the weights of a graph takes until they are on a disk, in a plan file or another.
double seconds_to_save(const Graph& graph);

/// Reads what save_plan() wrote. Throws FormatError for a file that is damaged, cut off, followed by something, or
/// written by another version; IoError when it cannot be read.
SavedPlan load_plan(const std::string& path);

/// In what ways `here` differs from where the plan was made, in words; empty when measurements hold.
std::vector<std::string> differences(const PlanOrigin& saved, const PlanOrigin& here);

/// What is worth checking of a plan that was made elsewhere.
enum class Revalidation : uint8_t {
  numbers,  ///< Compare the outputs: one run.
  all,      ///< Also time it, in turns with the same graph on one stream.
};

/// What re-validation found.
struct Revalidated {
  Executable executable;      ///< The faster one, ready to run.
  bool kept_schedule = true;  ///< False: one stream was faster here.
  Difference difference;      ///< From the outputs of the probe; not ok: do not use it.
  double saved_ms = 0;        ///< Of the plan; 0 when not timed.
  double plain_ms = 0;        ///< Of the same graph on one stream; 0 when not timed.
};

/// Throws what compile() throws.
Revalidated revalidate(const SavedPlan& plan, const CompileOptions& options, Revalidation how,
                       const Tolerance& tolerance = {});

}  // namespace autograph
