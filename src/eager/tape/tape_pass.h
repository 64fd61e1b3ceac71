// One backward pass over the tape: from values back to variables, each node once, later ones first.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "eager/tape/tape.h"

namespace autograph {

/// Needs no stack for deep chains: nodes are visited by number.
class TapePass {
 public:
  /// All that `outputs` depend on. `wanted`: values whose gradients will be asked for; null: those of all variables.
  /// `differentiable`: gradients go on record.
  TapePass(const std::vector<Var>& outputs, const std::vector<Var>* wanted, bool differentiable);

  /// Adds `gradient` to what flows into `value`.
  void seed(const Var& value, const Var& gradient);
  /// What has flowed into `value` so far, not valid where nothing has; null for values that nobody asks about.
  Var* total_of(const Var& value);
  /// Walks back from what has been seeded; once.
  void run();
  /// The gradient of one of the wanted; not valid where none flows.
  Var gradient(const Var& wanted) const;
  /// The variables that were reached, in the order in which they were found.
  const std::vector<Var>& variables() const { return variables_; }

 private:
  friend class TapeRule;

  struct Visit {
    bool is_active = false;      // does it depend on what is wanted?
    std::vector<char> wanted;    // by output
    std::vector<Var> gradients;  // by output
  };
  struct Leaf {
    bool is_wanted = false;
    Var gradient;
  };

  void collect(const std::vector<Var>& outputs);
  void mark(const std::vector<Var>* wanted);
  bool is_active(const Var& input) const;
  void visit(TapeNode& node);
  static void run_hooks(const TapeNode& node, Visit& visit);
  void call_function(TapeNode& node, Visit& visit);
  static Var sum(const Var& a, const Var& b);

  bool differentiable_;
  std::vector<std::shared_ptr<TapeNode>> nodes_;  // by number
  std::vector<Var> variables_;
  std::unordered_map<const TapeNode*, Visit> visits_;
  std::unordered_map<const Eager*, Leaf> leaves_;
};

}  // namespace autograph
