// Descriptions of simulated devices: what the clock of backends/sim knows of a GPU.
//
// A description is a JSON object with a number for each field below (all are needed but `efficiency` entries) and may
// come from a file, so that a device that nobody has can be tried.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/hash.h"
#include "autograph/op_def.h"

namespace autograph {

/// Times in microseconds.
struct SimMachine {
  std::string name;         ///< "v100"; of a file, its "name".
  std::string description;  ///< One line.

  int sms = 0;                 ///< Processors ("streaming multiprocessors").
  double tflops = 0;           ///< 1e12 f32 operations per second of all of them.
  double gb_per_s = 0;         ///< 1e9 bytes per second from memory.
  double gb_per_s_part = 0;    ///< Part of the processors that saturates memory.
  double graph_start_us = 0;   ///< From the end of a kernel to the start of the next one's work, in a captured graph.
  double eager_start_us = 0;   ///< The same for kernels that the host launches.
  double eager_launch_us = 0;  ///< What a launch takes on the host, which launches one kernel after the other.
  double sync_us = 0;          ///< What a wait for a kernel of another stream adds.
  int max_streams = 0;         ///< Streams that are worth using.

  double block_outputs = 0;  ///< Output elements that a thread block computes.
  double block_bytes = 0;    ///< Bytes that a thread block moves, if that makes more blocks.
  double blocks_per_sm = 0;  ///< Thread blocks that fill a processor.
  double inner_half = 0;     ///< Length of the sums of a product at which it reaches half of its efficiency.
  /// Part of the peak that an op reaches on long sums, by its name; "default" for the others.
  std::map<std::string, double, std::less<>> efficiency;

  double copy_gb_per_s = 0;  ///< Between host and device.
  double copy_start_us = 0;  ///< Of every copy.

  Hash128 description_hash;  ///< Of all fields, as they were written.

  /// Part of the peak that `op` reaches on long sums.
  double efficiency_of(const OpDef& op) const;
};

/// Names of the devices that come with AutoGraph, sorted.
std::vector<std::string> sim_machine_names();

/// The device of this name, or of the JSON file at this path (it has a '/' or ends in ".json"). Throws ValueError
/// naming the known devices, IoError, or FormatError naming the field.
SimMachine load_sim_machine(const std::string& name);

/// Reads a description; `where` names it in messages. Throws FormatError.
SimMachine parse_sim_machine(std::string_view json, const std::string& where);

}  // namespace autograph
