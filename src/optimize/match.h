// Reading a graph as a pattern: small questions that passes put together into "a value made by X from Y, read only
// here".
//
// All questions look backwards from a value, through at most a fixed number of nodes, so that a pass which asks them
// once for each node stays linear in the size of the graph.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "autograph/graph.h"
#include "base/function_ref.h"

namespace autograph {

struct OpDef;
struct PassContext;

// ---- Values ----------------------------------------------------------------------------------------------------

/// The node whose output 0 is `v`, when its op is `op`; else null.
const Node* made_by(const Graph& graph, ValueId v, const OpDef& op);

/// Is it one of these?
bool is_one_of(const OpDef& op, std::initializer_list<const OpDef*> ops);

/// How often `v` is read, as an input of nodes and as an output of the graph.
size_t num_reads(const Graph& graph, ValueId v);

/// As made_by(), when the value is read exactly once: nobody misses it once its reader is gone.
const Node* made_once_by(const Graph& graph, ValueId v, const OpDef& op);

/// The node that alone reads `v`, and reads it once; invalid when there is none.
NodeId only_reader(const Graph& graph, ValueId v);

/// A constant of f32, or null.
const Tensor* constant_f32(const Graph& graph, ValueId v);

/// The element of a constant with exactly one real element.
std::optional<double> scalar_constant(const Graph& graph, ValueId v);

/// The elements of a constant of integers.
std::optional<std::vector<int64_t>> integer_constants(const Graph& graph, ValueId v);

/// Does the value depend on constants alone, so that it is computed once, when compiling? Looks at a bounded number of
/// nodes before it, and says no beyond: larger computations on constants are folded before a search.
bool is_weight(const Graph& graph, ValueId v);

/// Does all that the node reads?
bool is_weight_only(const Graph& graph, NodeId id);

/// Are the extents certainly the same?
bool same_extents(const Shape& a, const Shape& b);

/// Are both certainly tensors of one dtype and one shape?
bool same_tensor_type(const Type& a, const Type& b);

/// Is it a tensor of f32, f16 or bf16: the dtypes that kernels and fused ops share?
bool is_short_float(const Type& type);

/// Is it a dtype of integers of a byte or less?
bool is_narrow_integer(DType dtype);

// ---- Numbers ---------------------------------------------------------------------------------------------------

/// Is `actual` the number `expected`, up to the rounding to `dtype` and to the few digits that frameworks write?
bool is_close(double actual, double expected, DType dtype);

// ---- Rewriting -------------------------------------------------------------------------------------------------

/// `v` with these extents; itself where it has them.
ValueId reshaped(Graph& graph, ValueId v, const Dims& dims);

/// Is a kernel expected for a node that was added? Else the node goes again.
bool keep_if_expected(Graph& graph, const PassContext& context, NodeId added);

/// Makes every reader of `from` read `to`, which also takes over the name of a graph output that has none, and merges
/// the provenance of the node behind `from` into the node behind `to`.
void replace_value(Graph& graph, ValueId from, ValueId to);

/// As replace_value() for the first outputs of a node, which goes: the others, if any, must be unread.
void replace_node(Graph& graph, NodeId node, const std::vector<ValueId>& results);

/// Replaces `root` by `replacement`, erases the nodes that nobody reads any more, from the producer of `root`
/// backwards, and hands their origins on to `heir`; invalid: to the node that makes `replacement`.
void replace_pattern(Graph& graph, ValueId root, ValueId replacement, NodeId heir = {});

/// Does nobody read what the node makes?
bool is_unread(const Graph& graph, const Node& node);

/// Calls `rewrite` for each node that is still there, producers first, and erases what is dead then. True when a call
/// said that it changed the graph.
bool rewrite_nodes(Graph& graph, FunctionRef<bool(NodeId)> rewrite);

/// Erases a node whose outputs nobody reads, and then those that only it kept. Returns the origins of all of them.
Provenance erase_unread(Graph& graph, NodeId node);

}  // namespace autograph
