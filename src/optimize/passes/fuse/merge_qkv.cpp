// merge_qkv: matrix products of one tensor with several constant matrices become one product and a split.
//
//   x wq + bq, x wk + bk, x wv + bv    becomes    split(x [wq wk wv] + [bq bk bv])
//
// For matmul, with the constant vector that is added behind it if there is one, and for gemm with alpha = beta = 1.
// Holds before: f32, f16, bf16 or f64 matrices of rank 2 that nothing else reads; the joined matrix is not above
// max_folded_bytes.
//
// The pieces of the split are copies, so this pays only where one large product is much faster than several small ones,
// or where the split's readers take it as it is: the pass runs on request alone.
#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// A product of the group's input.
struct Member {
  NodeId node;
  ValueId weights;
  ValueId bias;    // a vector; invalid: none
  ValueId result;  // behind the bias
  int64_t columns = 0;
};

// What members of a group share: input, op, whether the matrix is transposed, dtype, and rows of the matrix.
using GroupKey = std::tuple<ValueId, const OpDef*, bool, DType, int64_t>;

bool is_plain_gemm(const Node& node) {
  const Attributes& attributes = node.attributes();
  return attributes.real("alpha") == 1 && attributes.real("beta") == 1 && !attributes.flag("transA");
}

// The constant vector of `columns` elements that the only reader of `v` adds; the sum becomes the member's result.
void take_bias(const Graph& graph, Member& member) {
  const ValueId v = member.result;
  if (num_reads(graph, v) != 1 || graph.value(v).uses().empty()) return;
  const Use use = graph.value(v).uses().front();
  const Node& node = graph.node(use.node);
  const ValueId other = &node.op() == &add_def() ? node.input(1 - use.slot) : ValueId{};
  if (!other.is_valid() || !graph.value(other).is_constant()) return;
  if (graph.value(other).constant().dims() != Dims{member.columns}) return;
  member.bias = other;
  member.result = node.output(0);
}

std::optional<std::pair<GroupKey, Member>> read_member(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const bool is_gemm = &node.op() == &gemm_def();
  if (!is_gemm && &node.op() != &matmul_def()) return std::nullopt;
  if (is_gemm && !is_plain_gemm(node)) return std::nullopt;
  const Value& weights = graph.value(node.input(1));
  const Shape& x = graph.type(node.input(0)).shape();
  if (!weights.is_constant() || weights.constant().rank() != 2 || num_reads(graph, node.input(1)) != 1)
    return std::nullopt;
  if (!dtypes::kFloat.contains(weights.type().dtype()) || !x.has_rank() || x.rank() < 2) return std::nullopt;
  const bool is_transposed = is_gemm && node.attributes().flag("transB");
  const Dims& dims = weights.constant().dims();
  Member member{id, node.input(1), {}, node.output(0), dims[is_transposed ? 0 : 1]};
  if (member.columns < 1) return std::nullopt;
  if (!is_gemm) {
    take_bias(graph, member);
  } else if (node.input(2).is_valid()) {
    const Value& bias = graph.value(node.input(2));
    if (!bias.is_constant() || bias.constant().dims() != Dims{member.columns}) return std::nullopt;
    member.bias = node.input(2);
  }
  const GroupKey key{node.input(0), &node.op(), is_transposed, weights.type().dtype(), dims[is_transposed ? 1 : 0]};
  return std::pair(key, member);
}

// Copies `rows` rows of `tensor` (or zeros) side by side into `joined`, from byte `offset` of each row on.
void copy_rows(const Graph& graph, ValueId tensor, size_t rows, size_t row_bytes, std::pair<Tensor&, size_t> target) {
  if (!tensor.is_valid()) return;
  auto& [joined, offset] = target;
  const size_t stride = joined.size_bytes() / rows;
  const char* from = static_cast<const char*>(graph.value(tensor).constant().raw());
  char* to = static_cast<char*>(joined.mutable_raw()) + offset;
  for (size_t r = 0; r < rows; ++r) std::memcpy(to + r * stride, from + r * row_bytes, row_bytes);
}

class Merger {
 public:
  Merger(Graph& graph, const std::vector<Member>& members, const GroupKey& key)
      : graph_(graph),
        members_(members),
        input_(std::get<0>(key)),
        op_(*std::get<1>(key)),
        is_transposed_(std::get<2>(key)),
        dtype_(std::get<3>(key)),
        rows_(std::get<4>(key)) {
    for (const Member& member : members) columns_ += member.columns;
  }

  bool fits(int64_t max_bytes) const {
    const double bytes =
        static_cast<double>(rows_) * static_cast<double>(columns_) * static_cast<double>(element_size(dtype_));
    return members_.size() > 1 && rows_ > 0 && bytes <= static_cast<double>(max_bytes);
  }

  void merge() {
    const bool has_bias =
        std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.bias.is_valid(); });
    const bool is_gemm = &op_ == &gemm_def();
    std::vector<ValueId> inputs{input_, graph_.add_constant(joined_weights())};
    const ValueId bias = has_bias ? graph_.add_constant(joined_bias()) : ValueId{};
    if (is_gemm && has_bias) inputs.push_back(bias);
    ValueId result = first_output(graph_.add_node(op_, inputs, graph_.node(members_.front().node).attributes()));
    if (!is_gemm && has_bias) result = first_output(graph_.add_node(add_def(), {result, bias}));
    std::vector<int64_t> sizes;
    for (const Member& member : members_) sizes.push_back(member.columns);
    const ValueId split_sizes = graph_.add_constant(Tensor::vector(sizes));
    const NodeId split = graph_.add_node(split_def(), {result, split_sizes}, {{"axis", int64_t{-1}}},
                                         {{}, static_cast<int>(sizes.size())});
    for (size_t k = 0; k < members_.size(); ++k)
      replace_pattern(graph_, members_[k].result, graph_.node(split).output(k));
  }

 private:
  ValueId first_output(NodeId node) const { return graph_.node(node).output(0); }

  Tensor joined_weights() const {
    Tensor joined = Tensor::zeros(dtype_, is_transposed_ ? Dims{columns_, rows_} : Dims{rows_, columns_});
    // Transposed matrices stand one below the other, which is one row each.
    const size_t rows = is_transposed_ ? 1 : static_cast<size_t>(rows_);
    size_t offset = 0;
    for (const Member& member : members_) {
      const size_t row_bytes = graph_.value(member.weights).constant().size_bytes() / rows;
      copy_rows(graph_, member.weights, rows, row_bytes, {joined, offset});
      offset += row_bytes;
    }
    return joined;
  }

  Tensor joined_bias() const {
    Tensor joined = Tensor::zeros(dtype_, {columns_});
    size_t offset = 0;
    for (const Member& member : members_) {
      const size_t bytes = static_cast<size_t>(member.columns) * element_size(dtype_);
      copy_rows(graph_, member.bias, 1, bytes, {joined, offset});
      offset += bytes;
    }
    return joined;
  }

  Graph& graph_;
  const std::vector<Member>& members_;
  const ValueId input_;
  const OpDef& op_;
  const bool is_transposed_;
  const DType dtype_;
  const int64_t rows_;
  int64_t columns_ = 0;
};

}  // namespace

bool merge_qkv(Graph& graph, PassContext& context) {
  std::map<GroupKey, std::vector<Member>> groups;
  for (const NodeId id : graph.topological_order()) {
    if (auto found = read_member(graph, id)) groups[found->first].push_back(found->second);
  }
  bool changed = false;
  for (const auto& [key, members] : groups) {
    Merger merger(graph, members, key);
    if (!merger.fits(context.max_folded_bytes)) continue;
    merger.merge();
    changed = true;
  }
  if (changed) graph.erase_dead();
  return changed;
}

}  // namespace autograph
