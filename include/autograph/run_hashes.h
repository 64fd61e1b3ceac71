// What the nodes of a run gave, as hashes in a file: two such files tell where two runs part - on two machines, with
// two numbers of threads, of two versions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "autograph/hash.h"
#include "autograph/statistics.h"
#include "autograph/watch.h"

namespace autograph {

/// A tensor of a run.
struct HashedValue {
  std::string name;  ///< As NodeValue::name.
  std::string type;  ///< "f32[2,3]"
  Hash128 hash;      ///< Of type and elements: equal for the same bits.
  std::optional<Statistics> statistics;
  std::vector<double> sample;  ///< Elements spread evenly, in row-major order; all of them where there are few.
};

/// A node that ran.
struct HashedNode {
  std::string name;
  std::string op;
  std::string kernel;
  std::vector<Hash128> inputs;  ///< Of those that are tensors, in their order.
  std::vector<HashedValue> outputs;
};

/// A run, and how it was made.
struct RunHashes {
  std::string model = {};
  std::string version = {};  ///< Of AutoGraph.
  std::string machine = {};
  std::string device = {};
  int threads = 0;
  std::vector<HashedValue> inputs = {};  ///< Of the graph.
  std::vector<HashedNode> nodes = {};    ///< In the order in which they ran.
};

/// While it lives, adds the nodes of all runs that the calling thread begins; see NodeWatch.
class RunHasher {
 public:
  explicit RunHasher(RunHashes& run);
  /// Adds an input of the graph; what is no tensor is left out.
  void add_input(const std::string& name, const Datum& value);

 private:
  RunHashes& run_;
  NodeWatch watch_;
};

/// Writes one JSON document a line: what the run is, its inputs, its nodes. Throws IoError.
void write_run_hashes(const std::string& path, const RunHashes& run);
/// Reads it back; throws IoError, and FormatError naming the line.
RunHashes read_run_hashes(const std::string& path);

/// A value that two runs have, and that is not the same in both.
struct RunDifference {
  std::string value;  ///< Its name.
  std::string name;   ///< Of the node in run A; "" for an input of the graph.
  std::string op;     ///< Likewise.
  std::string kernel_a;
  std::string kernel_b;
  std::string type_a;
  std::string type_b;
  size_t turn = 0;  ///< Behind which run of the node in one run of the graph, for nodes in loops: 0 for the first.
  /// Are the inputs of the node the same in both runs, so that it is this node where they part?
  bool inputs_agree = false;
  /// The largest difference of the elements kept, and of smallest, largest and mean element, by the largest magnitude:
  /// an estimate. Infinite where types differ, or NaN and infinities are elsewhere.
  double relative = 0;
};

/// Two runs compared.
struct RunComparison {
  size_t num_compared = 0;                 ///< Values that both have.
  size_t num_close = 0;                    ///< Of these not the same, but within the tolerance.
  std::vector<RunDifference> differences;  ///< The others, in the order of run A.
  std::vector<std::string> only_in_a;      ///< Values that the other run does not have: passes joined other nodes.
  std::vector<std::string> only_in_b;
  /// The first difference that is made by the node itself; the first one where there is none such. Null: none at all.
  const RunDifference* first() const;
};

/// Compares values of the same name, for loops turn by turn; not those of nodes without a name (GraphBuilder gives
/// none) of an op that one run has more often. Differences of at most `rtol` (see RunDifference) count as close. Throws
/// ValueError when the runs have no value in common.
RunComparison compare_runs(const RunHashes& a, const RunHashes& b, double rtol = 0);

}  // namespace autograph
