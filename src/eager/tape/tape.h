// Eager values and the nodes that stand behind them: a tape that is held together by references alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograph/eager.h"
#include "eager/origin.h"
#include "eager/prepared_call.h"

namespace autograph {

/// A hook by its identity, which removing it asks for.
using SharedHook = std::shared_ptr<const GradientHook>;

/// A call that gradients flow back through.
class TapeNode {
 public:
  TapeNode();
  ~TapeNode();
  TapeNode(const TapeNode&) = delete;
  TapeNode& operator=(const TapeNode&) = delete;

  std::shared_ptr<const CallInfo> info;
  std::vector<Var> inputs;
  std::vector<Datum> outputs;  // not the values themselves, which hold the node
  std::shared_ptr<const Origin> origin;
  GradientFunction function;                           // in place of a rule, where the op is null
  std::vector<std::pair<uint32_t, SharedHook>> hooks;  // with the output that each is for
  const uint64_t number;                               // larger than those of the nodes that it depends on

  /// "add in layer1 at train.cpp:27", or how the place becomes known.
  std::string describe() const;
  static int64_t num_live();
};

/// An eager value.
class Eager final : public EagerValue, public std::enable_shared_from_this<Eager> {
 public:
  Eager(std::shared_ptr<const Type> type, Datum datum) : EagerValue(std::move(type)), datum_(std::move(datum)) {}
  Eager(std::shared_ptr<const Type> type, Datum datum, std::shared_ptr<TapeNode> producer, uint32_t slot)
      : EagerValue(std::move(type)), datum_(std::move(datum)), producer_(std::move(producer)), slot_(slot) {}

  const Tensor* known() const override;
  std::vector<Var> apply(const OpDef& op, const std::vector<Var>& inputs, Attributes attributes,
                         int num_outputs) override;
  Var constant(Tensor tensor) const override;
  Var in_graph(Graph& graph) override;
  Var variable() const override;
  std::vector<Var> vjp(const std::vector<Var>& outputs, const std::vector<Var>& output_gradients,
                       const std::vector<Var>& wanted) override;
  Var hooked(Var gradient) const override;

  const Datum& datum() const { return datum_; }
  const Tensor& tensor() const { return datum_.tensor(); }
  const std::shared_ptr<TapeNode>& producer() const { return producer_; }
  uint32_t slot() const { return slot_; }
  bool is_variable() const { return variable_ != nullptr; }
  bool requires_grad() const { return producer_ || variable_ || snapshot_of_; }
  /// The variable that gradients of this value belong to: itself, or what it is a snapshot of; null for others.
  Eager* leaf() { return variable_ ? this : snapshot_of_.get(); }
  const Eager* leaf() const { return variable_ ? this : snapshot_of_.get(); }
  /// Called with gradients of this value, in this order.
  std::vector<SharedHook> hooks() const;
  /// What a node on record keeps of this value: itself, or of a variable its elements as they are now.
  Var as_recorded();

  /// What only variables have.
  struct Variable {
    Var gradient;
    std::vector<SharedHook> hooks;
  };
  Variable& as_variable() const { return *variable_; }
  void make_variable() { variable_ = std::make_unique<Variable>(); }
  void set_tensor(Tensor tensor);

 private:
  Datum datum_;
  std::shared_ptr<TapeNode> producer_;  // null: nothing on record
  uint32_t slot_ = 0;                   // which of its outputs
  std::unique_ptr<Variable> variable_;
  std::shared_ptr<Eager> snapshot_of_;  // a variable
  std::weak_ptr<Eager> snapshot_;       // of a variable: the one of the elements as they are now
};

/// The inputs of a node that is put on record.
std::vector<Var> recorded_inputs(std::span<const Var> inputs);

/// The eager value that `value` stands for; throws ValueError, "[where] ...", for values of graphs.
Eager& eager_of(const Var& value, std::string_view where);
/// Output `slot` of a node, again: the same elements, the same past.
Var output_of(const std::shared_ptr<TapeNode>& node, uint32_t slot);
/// Do gradients belong to values of this type?
bool carries_floats(const Type& type);
/// What `hook` makes of a gradient of a value of this type.
Var changed_by(const GradientHook& hook, const Var& gradient, const Type& type);
/// Throws ShapeError unless `gradient`, which `from` gave, can be one of a value of this type.
void check_gradient(const Var& gradient, const Type& type, const std::string& from);
/// Are all floats in `datum` finite?
bool is_finite(const Datum& datum);
/// Throws ValueError unless the floats in `datum` are finite; `what` begins the message.
void check_finite(const Datum& datum, const std::string& what);

}  // namespace autograph
