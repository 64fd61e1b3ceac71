// The graph of a function that is being captured, and what it does to the world around it.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "eager/capture/recording.h"
#include "eager/origin.h"
#include "eager/tape/tape.h"

namespace autograph {

/// What a captured graph reads from a variable in every call, by a further input.
struct CapturedRead {
  std::shared_ptr<Eager> value;
  bool is_gradient;  ///< Its gradient, not its elements.
};

/// What happens to a variable after every call.
struct CapturedWrite {
  std::shared_ptr<Eager> variable;
  bool is_gradient;
  Var value;  ///< In the graph; not valid: the gradient is cleared.
};

/// Was there a gradient when the function asked for it? Other calls must have found the same.
struct CapturedGradient {
  std::shared_ptr<Eager> variable;
  bool was_there;
};

/// What a Setting was when the function asked for it. Other calls must find it so.
struct CapturedSetting {
  std::shared_ptr<const bool> is_on;
  bool was_on;
  std::string what;
};

/// From the constructor to the destructor, the calling thread captures.
class CaptureRecording final : public Recording {
 public:
  CaptureRecording();
  ~CaptureRecording() override;
  CaptureRecording(const CaptureRecording&) = delete;
  CaptureRecording& operator=(const CaptureRecording&) = delete;

  Graph& graph() override;
  Var value_of(Eager& value, Graph& graph) override;
  void assign(Eager& variable, const Var& value) override;
  void backward(const Var& value, const BackwardOptions& options) override;
  Var gradient(Eager& variable) override;
  void set_gradient(Eager& variable, const Var& gradient) override;
  void begin_no_grad() override;
  void end_no_grad() override;
  void asks(std::shared_ptr<const bool> setting, const std::string& what) override;
  void sets(std::shared_ptr<const bool> setting) override;

  /// Ends the graph: its outputs are `results`, then the values of writes that have one.
  void finish(const std::vector<Var>& results);
  Graph& root() { return *root_; }
  const std::vector<CapturedRead>& reads() const { return reads_; }
  const std::vector<CapturedGradient>& gradients() const { return gradients_; }
  const std::vector<CapturedSetting>& settings() const { return settings_; }
  /// In the order in which variables were met.
  std::vector<CapturedWrite> writes() const;

 private:
  struct Known {
    std::shared_ptr<Eager> value;
    Var now;  // what stands for its elements
    bool is_assigned = false;
    bool has_gradient = false;  // was `gradient` asked for or set?
    bool sets_gradient = false;
    Var gradient;
  };

  /// NoGrad that has begun, and the first node that it holds for.
  struct Unrecorded {
    const Graph* graph;
    size_t first_node;
  };

  Known& known(Eager& value);
  Var read(Eager& value, bool is_gradient, const Type& type);
  std::vector<Known*> variables_behind(const Var& value);
  void refuse_nested(std::string_view what) const;
  Var in_root(const Var& value);

  std::shared_ptr<Graph> root_;
  PlaceScope places_{current_place};
  Recording* previous_;
  std::unordered_map<const Eager*, size_t> numbers_;
  std::vector<std::unique_ptr<Known>> known_;
  std::vector<CapturedRead> reads_;
  std::vector<CapturedGradient> gradients_;
  std::vector<Unrecorded> unrecorded_;  // the innermost last
  std::vector<CapturedSetting> settings_;
  std::set<std::shared_ptr<const bool>> known_settings_;  // asked for or set before
};

}  // namespace autograph
