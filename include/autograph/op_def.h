// OpDef: everything AutoGraph knows about one op, as data and functions, in one place.
//
// Semantics that hold for every op:
// - Tensors are row-major without gaps. Ops are pure unless their traits say otherwise; outputs never alias inputs in
//   the reference implementation.
// - Broadcasting is NumPy's: align dims at the right, extent 1 stretches.
// - Floats follow IEEE 754: NaN propagates through arithmetic; max and min propagate NaN; comparisons with NaN are
//   false. f16, bf16 and narrower floats compute in f32 and round once at the end.
// - Signed integers wrap around; integer division truncates towards zero; division by zero gives 0 (hardware would
//   trap).
// - Axes may be negative: they count from the end.
// - Zero-element tensors are legal everywhere; reductions over nothing give the identity where there is one.
// - The reference implementation accumulates float sums in f64.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/attribute.h"
#include "autograph/graph.h"

namespace autograph {

class Var;

// ---- Schema ----------------------------------------------------------------------------------------------------

/// How often an input or output occurs.
enum class Arity : uint8_t {
  single,    ///< Exactly once.
  optional,  ///< Once or not at all.
  variadic,  ///< Any number; only as the last parameter.
  internal,  ///< Once or not at all: an output for gradients, which no file format has.
};

/// An input or output of an op.
struct Param {
  std::string_view name;        ///< Name in docs and messages.
  std::string_view type_var;    ///< Type variable, for example "T"; see OpDef::types. "" = any kind of value.
  std::string_view doc;         ///< Shape and meaning.
  Arity arity = Arity::single;  ///< How often.
};

/// The dtypes a type variable ranges over. All tensors that share a variable share the dtype.
struct TypeVar {
  std::string_view name;  ///< "T"
  DTypeSet allowed;       ///< Which dtypes.
};

/// An attribute of an op.
struct AttributeSpec {
  std::string_view name;                             ///< Name, as in ONNX where the op is there.
  AttributeType type = AttributeType::integer;       ///< Its type.
  std::string_view doc;                              ///< Meaning and range.
  std::optional<AttributeValue> default_value = {};  ///< Filled in when not given.
  bool required = false;                             ///< Must be given.
  std::vector<std::string_view> allowed = {};        ///< For text: the legal values.
  /// For integers: filled in, when not given, with a number that no other node of the graph has. Copies of a node keep
  /// it, and what a node is rewritten to.
  bool unique = false;
};

/// Facts that passes ask for instead of names.
struct Traits {
  bool pure = true;               ///< Same inputs give same outputs, no side effects.
  bool elementwise = false;       ///< Output element i depends on input elements i (after broadcasting) alone.
  bool commutative = false;       ///< The first two inputs may be swapped.
  bool associative = false;       ///< May be re-bracketed (exactly on integers, up to rounding on floats).
  bool view = false;              ///< Output 0 has exactly the elements of input 0, in order, under another shape.
  bool in_place_ok = false;       ///< Output 0 may take the memory of input 0.
  bool random = false;            ///< Draws random numbers.
  bool collective = false;        ///< Talks to other ranks.
  bool effect = false;            ///< Does something besides its outputs: runs even where nothing reads them.
  bool barrier = false;           ///< Output k is input k; everything that makes the inputs comes before the readers.
  bool control_flow = false;      ///< Runs nested graphs.
  bool anchor = false;            ///< Does the work of a group of nodes run as one; elementwise ops may follow it.
  bool reads_shape_only = false;  ///< Looks at the shape of input 0, never at its elements.
  /// Each element of an output is one of an input of its type, or 0: which one depends on shapes, attributes and
  /// integer inputs alone.
  bool moves = false;
};

// ---- Inference -------------------------------------------------------------------------------------------------

/// What an op's infer function sees and fills in.
class InferContext {
 public:
  virtual ~InferContext() = default;
  const Attributes& attributes() const { return *attributes_; }
  size_t num_inputs() const { return input_types_.size(); }
  size_t num_outputs() const { return output_types_.size(); }
  bool has_input(size_t slot) const {
    return slot < input_types_.size() && input_types_[slot].kind() != Type::Kind::none;
  }
  /// Type of input `slot`; Kind::none when it is not given.
  const Type& input(size_t slot) const;
  /// Shape of a tensor input.
  const Shape& shape(size_t slot) const { return input(slot).shape(); }
  /// Dtype of a tensor input.
  DType dtype(size_t slot) const { return input(slot).dtype(); }
  /// The elements of input `slot` when they are already known, else null.
  virtual const Tensor* known_value(size_t slot) const = 0;
  /// Known integer elements of input `slot` as i64.
  std::optional<std::vector<int64_t>> known_integers(size_t slot) const;
  /// Output types of the nested graph `attribute` when its inputs have these types.
  std::vector<Type> infer_nested(std::string_view attribute, const std::vector<Type>& input_types) const;

  void set_output(size_t slot, Type type);
  void set_output(size_t slot, DType dtype, Shape shape) { set_output(slot, Type(dtype, std::move(shape))); }
  /// Set by outputs so far.
  const std::vector<Type>& output_types() const { return output_types_; }

  /// Throws ErrorType as "[op] what: detail (node ...)".
  template <class ErrorType>
  [[noreturn]] void fail(std::string_view what, std::string_view detail) const {
    throw ErrorType(message(what, detail));
  }
  /// Throws ErrorType as fail() does, unless `condition` holds. Build `detail` cheaply: it is evaluated always.
  template <class ErrorType>
  void require(bool condition, std::string_view what, std::string_view detail) const {
    if (!condition) fail<ErrorType>(what, detail);
  }
  /// `axis` counted from the front; throws ValueError unless -rank <= axis < rank (or == rank with `allow_end`).
  int64_t normalized_axis(int64_t axis, int64_t rank, std::string_view what = "axis") const;
  /// Throws ShapeError unless input `slot` has a known rank of `rank`; does nothing while the rank is unknown.
  void require_rank(size_t slot, int64_t rank) const;

 protected:
  std::string message(std::string_view what, std::string_view detail) const;
  const OpDef* op_ = nullptr;
  const Attributes* attributes_ = nullptr;
  std::string where_;  // describes the node; may be empty
  std::vector<Type> input_types_;
  std::vector<Type> output_types_;
};

/// Sets the type of every output, or throws ShapeError, TypeError or ValueError. Must be pure.
using InferFn = void (*)(InferContext&);

// ---- Execution -------------------------------------------------------------------------------------------------

/// One call of a reference implementation whose output shapes infer could tell.
struct OpCall {
  const Attributes& attributes;
  std::span<const TensorView> inputs;   ///< Missing optional inputs are views with is_present() == false.
  std::span<const TensorView> outputs;  ///< Allocated, uninitialised (strings: empty). May be fewer than the op has.

  /// Input `slot`, absent when not given.
  TensorView input(size_t slot) const { return slot < inputs.size() ? inputs[slot] : TensorView(); }
  TensorView output(size_t slot) const { return outputs[slot]; }
  bool has_output(size_t slot) const { return slot < outputs.size() && outputs[slot].is_present(); }
};

/// Fills all outputs. Plain loops; this defines what the op means.
using ReferenceFn = void (*)(const OpCall&);

/// Applies an elementwise formula to `count` elements. Input k starts at inputs[k] and advances by steps[k] elements
/// (0 broadcasts one element); the output is dense.
using ScalarLoop = void (*)(const Attributes& attributes, std::span<const void* const> inputs,
                            std::span<const int64_t> steps, void* output, int64_t count);

/// The loop for input dtypes (one each; undefined for absent ones) and output dtype; null when there is none.
using ScalarLoopFn = ScalarLoop (*)(std::span<const DType> inputs, DType output);

/// What an op sees that handles sequences, optionals or nested graphs, or whose output shapes depend on the elements.
class EvaluateContext {
 public:
  virtual ~EvaluateContext() = default;
  virtual const Attributes& attributes() const = 0;
  virtual size_t num_inputs() const = 0;
  virtual size_t num_outputs() const = 0;
  /// Declared type of input `slot`.
  virtual const Type& input_type(size_t slot) const = 0;
  /// Input `slot`; nothing when not given.
  virtual const Datum& input(size_t slot) const = 0;
  /// Runs the nested graph `attribute` on these inputs and returns its outputs.
  virtual std::vector<Datum> run_nested(std::string_view attribute, const std::vector<Datum>& inputs) = 0;
  /// Allocates a tensor inside the run's byte budget; throws BudgetError when it would exceed it.
  virtual Tensor allocate(DType dtype, Dims dims) = 0;
  /// Is input `slot` there?
  bool has_input(size_t slot) const { return slot < num_inputs() && input(slot).is_present(); }
  /// Input `slot` as a tensor.
  const Tensor& tensor(size_t slot) const { return input(slot).tensor(); }
};

/// Returns num_outputs() values.
using EvaluateFn = std::vector<Datum> (*)(EvaluateContext&);

// ---- Gradient and decomposition --------------------------------------------------------------------------------

/// What decompose sees: handles into the graph that is being rewritten.
struct DecomposeContext {
  Graph& graph;
  const Attributes& attributes;
  std::vector<Var> inputs;  ///< Missing optional inputs are Vars with is_valid() == false.
  size_t num_outputs;
};

/// The op's body in other ops: one Var per output (invalid where an optional output is not wanted).
using DecomposeFn = std::vector<Var> (*)(DecomposeContext&);

/// What a gradient rule sees: a node of the graph that is being differentiated, the gradients of its outputs, and which
/// of its inputs' gradients somebody asks for. Rules add nodes to the graph; those are differentiated like all others,
/// which is what makes gradients of gradients.
class VjpContext {
 public:
  virtual ~VjpContext() = default;
  virtual Graph& graph() = 0;
  virtual const OpDef& op() const = 0;
  virtual const Attributes& attributes() const = 0;
  virtual size_t num_inputs() const = 0;
  virtual size_t num_outputs() const = 0;
  /// Is input `slot` given?
  virtual bool has_input(size_t slot) const = 0;
  /// Must the rule set the gradient of input `slot`? Never of integers, nor of inputs that are not given.
  virtual bool wants(size_t slot) const = 0;
  /// Input `slot`; invalid when it is not given.
  virtual Var in(size_t slot) = 0;
  /// Output `slot`.
  virtual Var out(size_t slot) = 0;
  /// Does a gradient flow into output `slot`? Into at least one it does.
  virtual bool has_gy(size_t slot) const = 0;
  /// Gradient of output `slot`, in its shape and dtype; zeros where none flows.
  virtual Var gy(size_t slot) = 0;
  /// Integer elements of input `slot` as i64 when they are known before running.
  virtual std::optional<std::vector<int64_t>> known_integers(size_t slot) const = 0;
  /// The same; throws UnsupportedError naming the node when they are only known while running.
  virtual std::vector<int64_t> integers(size_t slot) const = 0;
  /// Sets the gradient of input `slot`, summed over the axes along which the op broadcast that input.
  virtual void set(size_t slot, const Var& gradient) = 0;
  /// Says that the gradient of input `slot` is zero by nature.
  virtual void set_none(size_t slot) = 0;
  /// The outputs of the node with `count` outputs instead of the ones it has (the indices of a maximum, say): readers
  /// of the node read the new one from then on, so that nothing is computed twice.
  virtual std::vector<Var> with_outputs(int count) = 0;
  /// The gradient of a nested graph of the node as a graph. Its inputs: those of the nested graph, then the gradients
  /// of those of its outputs that `given` marks. Its outputs: gradients of those of its inputs that `wanted` marks,
  /// zeros where none flows.
  virtual Graph vjp_of(const Graph& body, const std::vector<bool>& wanted, const std::vector<bool>& given) = 0;
  /// Throws UnsupportedError "[gradient] op: `detail` (node ...)".
  [[noreturn]] virtual void unsupported(std::string_view detail) const = 0;
  /// For rules that add to few elements of many, in place of set(): the gradient of input `slot` so far, or zeros, ...
  virtual Var so_far(size_t slot) = 0;
  /// ... and what it is with that of this node. Line by line neither further zeros nor a sum are computed.
  virtual void set_total(size_t slot, const Var& gradient) = 0;
};

/// Sets the gradient of each input that is wanted.
using VjpFn = void (*)(VjpContext&);

// ---- Cost, samples ---------------------------------------------------------------------------------------------

/// Types of a node's inputs and outputs, all static.
struct CostContext {
  const Attributes& attributes;
  std::span<const Type> inputs;
  std::span<const Type> outputs;
};

/// What running a node takes.
struct OpCost {
  double flops = 0;  ///< Floating-point operations; a multiply-add counts 2.
  double bytes = 0;  ///< Bytes read and written once each.
};

using CostFn = OpCost (*)(const CostContext&);

/// A legal call of an op, for conformance tests and random graphs.
struct OpSample {
  std::vector<Datum> inputs;  ///< Nothing = optional input not given.
  Attributes attributes = {};
  int num_outputs = -1;  ///< As NodeOptions::num_outputs.
};

class Random;  // autograph/random.h
using SampleFn = OpSample (*)(Random&);

// ---- ONNX ------------------------------------------------------------------------------------------------------

class ForeignNode;

/// Turns a node of another format into nodes of ours; one value per output.
using ImportFn = std::vector<ValueId> (*)(ForeignNode&);

/// Changes a node on its way out: an attribute that became an input, an older form. `to` starts as a plain copy.
struct ExportNode;
using ExportFn = void (*)(ExportNode&);

/// How an op is spelled in ONNX.
struct OnnxName {
  std::string_view name = "";      ///< "Conv"; "" = no ONNX form of its own (export decomposes it).
  int since = 1;                   ///< First opset whose form `import` understands.
  std::string_view domain = "";    ///< "" = ai.onnx.
  ImportFn import = nullptr;       ///< For forms that differ from the schema; null = same attributes, same inputs.
  ExportFn export_node = nullptr;  ///< Likewise on the way out.
  int export_since = 0;            ///< First opset that has the form we write; 0 = `since`.
  bool import_only = false;        ///< Never written: an older or alternative spelling.
};

// ---- The definition --------------------------------------------------------------------------------------------

/// Everything about one op. Exactly one of scalar, reference and evaluate is set, or decompose alone.
struct OpDef {
  std::string_view name = "";                  ///< snake_case, unique.
  std::string_view doc = "";                   ///< One sentence, with the formula.
  std::vector<Param> inputs = {};              ///< In order.
  std::vector<Param> outputs = {};             ///< In order.
  std::vector<TypeVar> types = {};             ///< Type variables used by inputs and outputs.
  std::vector<AttributeSpec> attributes = {};  ///< All attributes.
  InferFn infer = nullptr;                     ///< Required.
  ScalarLoopFn scalar = nullptr;               ///< For elementwise ops: the formula; the reference loops over it.
  ReferenceFn reference = nullptr;             ///< For ops whose output shapes infer can tell.
  EvaluateFn evaluate = nullptr;               ///< For ops on sequences, with nested graphs or data-dependent shapes.
  DecomposeFn decompose = nullptr;             ///< Body in other ops.
  VjpFn vjp = nullptr;                         ///< Gradient rule.
  std::string_view no_grad = "";               ///< Why there is no gradient, where there is none by nature.
  Traits traits = {};                          ///< Facts for passes.
  CostFn cost = nullptr;                       ///< Default: bytes of inputs and outputs, one flop per output element.
  std::vector<OnnxName> onnx = {};             ///< Spellings in ONNX, the one to export first.
  SampleFn sample = nullptr;                   ///< Required: a random legal call.
};

/// Does a node of the op do something besides its outputs, or one of its nested graphs, so that it always runs, and in
/// the order in which such nodes stand?
bool has_effect(const OpDef& op, const Attributes& attributes);

/// The attribute spec named `name`, or null.
const AttributeSpec* find_attribute(const OpDef& op, std::string_view name);

/// Cost of a call: op.cost, or the default.
OpCost cost_of(const OpDef& op, const CostContext& context);

/// All ops, sorted by name.
std::span<const OpDef* const> all_ops();

/// Adds an op of a program's own to all_ops(): from then on the text form, ONNX files (by the spellings in op.onnx) and
/// find_op() know it, too. Graphs that are built take it without that: apply(op, inputs). It runs by its `reference`,
/// `scalar`, `evaluate` or `decompose` on every device of the processor.
/// `op` must live as long as the program does. Throws ValueError when its name is taken, or when the definition lacks
/// what it needs.
void register_op(const OpDef& op);

/// The op named `name`, or null.
const OpDef* find_op(std::string_view name);

/// The op named `name`; throws UnsupportedError with the nearest name when there is none.
const OpDef& get_op(std::string_view name);

}  // namespace autograph
