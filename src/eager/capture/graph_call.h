// A graph that is run as one op would be: with a gradient, which is such a graph again.
//
// A hook sees the whole gradient of its value: what flows in from the results, and where gradients have gradients what
// flows in from the gradient that read the value. So values with hooks are further outputs of the call, and its
// gradient takes them as inputs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autograph/compile.h"
#include "autograph/eager.h"

namespace autograph {

class TapeNode;
struct CallInfo;

/// For one thread at a time.
class GraphCall : public std::enable_shared_from_this<GraphCall> {
 public:
  GraphCall(Graph graph, const CompileOptions& options);
  /// The outputs of the graph. On record, where an input requires a gradient, are the first `num_recorded`; the others
  /// have no past.
  std::vector<Var> run(const std::vector<Var>& inputs, size_t num_recorded);
  const Graph& graph() const { return graph_; }

 private:
  void find_flows();
  bool is_wanted(size_t input, const Var& given) const;
  bool is_wanted_behind(size_t output, const std::vector<Var>& given) const;
  std::shared_ptr<TapeNode> record(const std::shared_ptr<const CallInfo>& info, const std::vector<Var>& inputs,
                                   const std::vector<Datum>& outputs);
  std::vector<Var> gradients(const std::shared_ptr<TapeNode>& node, const std::vector<Var>& output_gradients);

  Graph graph_;                  // as it was captured
  std::vector<ValueId> shared_;  // those with hooks
  Graph recorded_;               // with them as further outputs
  CompileOptions options_;
  Executable program_;
  std::vector<std::vector<size_t>> inputs_behind_;               // by output: inputs that its gradient flows to
  std::vector<char> is_reached_;                                 // by input: is it among them for any output?
  std::map<std::string, std::shared_ptr<GraphCall>> gradients_;  // by which are given and which are wanted
};

}  // namespace autograph
