// use_block_matmul: a product with weights of a byte or less keeps them so, instead of computing them as floats first.
//
//   matmul(x, dequantize(q))               becomes    block_matmul(x, q)
//   matmul(x, transpose(dequantize(q)))    becomes    block_matmul(x, q)
//   gemm(x, dequantize(q), c)              becomes    add(block_matmul(x, q), c)
//
// So quantizers write weights in standard ops (QDQ), which others write as MatMulNBits. q, scales and zero points must
// be constant; scales are of the tensor, of each output, or of blocks along the inner dim. The scale of an output is
// that of blocks of our own.
//
// Kernels may round x to 16 bits in each block: some 1e-5 of the largest output, where products of f32 are off by 1e-6
// and weights of 8 bits by 1e-2. MatMulNBits allows as much where its accuracy level is one of half precision, and
// ONNX Runtime rounds to 8 bits when it makes one of this form. Not where a plan is to be exact.
//
// Runs behind use_integers, which wants such weights where x is quantized, too.
#include <algorithm>
#include <optional>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "graph/nested/new_nodes.h"
#include "ops/defs.h"
#include "ops/quantize/granularity.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"
#include "tensor/element_types.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

using NarrowTypes = TypeList<int8_t, uint8_t, Int4, UInt4, Int2, UInt2>;

// Weights of n outputs and k inputs as a model gives them: a constant dequantization of [n, k] or [k, n].
struct Weights {
  Tensor q, scale, zero;  // zero: absent where none is given
  Attributes attributes;  // of the dequantization
  bool has_outputs_first = false;

  int64_t n() const { return q.dims()[has_outputs_first ? 0 : 1]; }
  int64_t k() const { return q.dims()[has_outputs_first ? 1 : 0]; }
  int64_t index_of(int64_t output, int64_t i) const { return has_outputs_first ? output * k() + i : i * n() + output; }
  bool is_signed() const { return q.dtype() == DType::i8 || q.dtype() == DType::i4 || q.dtype() == DType::i2; }
  int64_t bits() const { return q.dtype() == DType::i8 || q.dtype() == DType::u8 ? 8 : 4; }
};

// What block_matmul takes: middle is the zero point where none is given.
struct Blocks {
  Tensor q, scale, zero;
};

const Tensor* constant_of(const Graph& graph, const Node& node, size_t slot) {
  if (slot >= node.inputs().size() || !node.inputs()[slot].is_valid()) return nullptr;
  const Value& value = graph.value(node.inputs()[slot]);
  return value.is_constant() ? &value.constant() : nullptr;
}

// The matrix `v`, whose dims are [n, k] with `has_outputs_first`.
std::optional<Weights> find_weights(const Graph& graph, ValueId v, bool has_outputs_first) {
  if (const Node* turned = made_by(graph, v, transpose_def())) {
    const auto* perm = turned->attributes().find_as<std::vector<int64_t>>("perm");
    if (perm && *perm != std::vector<int64_t>{1, 0}) return std::nullopt;
    v = turned->input(0);
    has_outputs_first = !has_outputs_first;
  }
  const Node* node = made_by(graph, v, dequantize_linear_def());
  if (!node || graph.type(v).dtype() != DType::f32) return std::nullopt;
  const Tensor *q = constant_of(graph, *node, 0), *scale = constant_of(graph, *node, 1);
  const bool has_zero = node->inputs().size() > 2 && node->inputs()[2].is_valid();
  const Tensor* zero = constant_of(graph, *node, 2);
  if (!q || !scale || (has_zero && !zero)) return std::nullopt;
  if (q->rank() != 2 || q->num_elements() == 0 || !is_narrow_integer(q->dtype())) return std::nullopt;
  return Weights{*q, *scale, has_zero ? *zero : Tensor(), node->attributes(), has_outputs_first};
}

// Elements along the inner dim that share a scale, or how many of them we take; 0 where neighbours there have scales of
// their own.
int64_t block_of(const Weights& weights) {
  constexpr int64_t kMost = 128, kLeast = 32;
  const int64_t inner_axis = weights.has_outputs_first ? 1 : 0;
  const bool is_inner = front_axis(weights.attributes.integer("axis"), 2) == inner_axis;
  const int64_t given = weights.attributes.integer("block_size");
  if (given > 0) return is_inner ? given : 0;
  if (is_inner && weights.scale.num_elements() > 1) return 0;
  return std::min(kMost, (weights.k() + kLeast - 1) / kLeast * kLeast);
}

// Whole numbers from 0 on, packed as block_matmul has them. What fills the last block up is read by nobody.
Tensor pack(const Weights& weights, int64_t blocks, int64_t block) {
  const int64_t bits = weights.bits(), per_byte = 8 / bits, middle = weights.is_signed() ? 1 << (bits - 1) : 0;
  Tensor packed = Tensor::zeros(DType::u8, {weights.n(), blocks, block / per_byte});
  auto* const out = packed.mutable_data<uint8_t>();
  const int64_t row_bytes = blocks * block / per_byte;
  constexpr int64_t kTile = 64;  // outputs whose cache lines are read and written together
  dispatch<NarrowTypes>(weights.q.dtype(), [&]<class Q>(TypeTag<Q>) {
    const Q* const q = weights.q.data<Q>();
    for (int64_t begin = 0; begin < weights.n(); begin += kTile) {
      const int64_t end = std::min(begin + kTile, weights.n());
      for (int64_t i = 0; i < weights.k(); ++i) {
        for (int64_t output = begin; output < end; ++output) {
          const int64_t number = static_cast<int64_t>(q[weights.index_of(output, i)]) + middle;
          out[output * row_bytes + i / per_byte] |= static_cast<uint8_t>(number << (i % per_byte * bits));
        }
      }
    }
  });
  return packed;
}

Blocks blocks_of(const Weights& weights, int64_t block) {
  const int64_t n = weights.n(), blocks = (weights.k() + block - 1) / block;
  const int64_t middle = int64_t{1} << (weights.bits() - 1);
  const Granularity scale_of(weights.attributes, weights.q.view(), weights.scale.view());
  const std::vector<double> scales = weights.scale.to_f64();
  const std::vector<double> zeros = weights.zero.is_present() ? weights.zero.to_f64() : std::vector<double>{};
  std::vector<float> scale, zero;
  for (int64_t output = 0; output < n; ++output) {
    for (int64_t b = 0; b < blocks; ++b) {
      const auto which = static_cast<size_t>(scale_of(weights.index_of(output, b * block)));
      scale.push_back(static_cast<float>(scales[which]));
      const auto number = static_cast<int64_t>(zeros.empty() ? 0 : zeros[which]) + (weights.is_signed() ? middle : 0);
      zero.push_back(static_cast<float>(number));
    }
  }
  const bool is_middle =
      std::all_of(zero.begin(), zero.end(), [&](float z) { return z == static_cast<float>(middle); });
  return {pack(weights, blocks, block), Tensor::of<float>({n, blocks}, scale),
          is_middle ? Tensor() : Tensor::of<float>({n, blocks}, zero)};
}

// Is it x w, or x w + c?
bool is_plain_product(const Node& node) {
  if (&node.op() == &matmul_def()) return true;
  if (&node.op() != &gemm_def()) return false;
  const Attributes& attributes = node.attributes();
  return attributes.integer("transA") == 0 && attributes.real("alpha") == 1 && attributes.real("beta") == 1;
}

bool pack_weights_of(Graph& graph, const PassContext& context, NodeId id) {
  constexpr int64_t kBitsOfX = 16;
  const Node& node = graph.node(id);
  if (!is_plain_product(node) || graph.type(node.input(0)).dtype() != DType::f32) return false;
  const bool is_gemm = &node.op() == &gemm_def();
  const auto weights = find_weights(graph, node.input(1), is_gemm && node.attributes().integer("transB") != 0);
  const int64_t block = weights ? block_of(*weights) : 0;
  if (block == 0 || block * weights->bits() % 8 != 0) return false;
  const Blocks blocks = blocks_of(*weights, block);
  // By value: adding a node may move the others.
  const Provenance provenance = node.provenance();
  const Var x(graph, node.input(0)), c = is_gemm && node.inputs().size() > 2 ? Var(graph, node.input(2)) : Var();
  const size_t first_new = graph.node_capacity();
  const Var zero = blocks.zero.is_present() ? constant(graph, blocks.zero) : Var();
  const Var product = block_matmul(x, constant(graph, blocks.q), constant(graph, blocks.scale), zero, weights->k(),
                                   weights->bits(), kBitsOfX);
  if (!keep_if_expected(graph, context, graph.value(product.id()).producer())) return false;
  const Var y = c.is_valid() ? add(product, c) : product;
  set_provenance_of_new(graph, first_new, provenance);
  replace_node(graph, id, {y.id()});
  return true;
}

}  // namespace

bool use_block_matmul(Graph& graph, PassContext& context) {
  if (!context.expects_kernel) return false;
  return rewrite_nodes(graph, [&](NodeId id) { return pack_weights_of(graph, context, id); });
}

}  // namespace autograph
