// matmul and gemm in f32 with a bias and an epilogue.
//
// A stack of matrices times one matrix is one tall product. Other stacks go to oneDNN's batched product, which
// broadcasts extents of 1. A product with a matrix of constants may also be run as oneDNN's inner product or as a 1x1
// convolution over channels-last pixels, which have other implementations; all are offered. gemm's alpha is an output
// scale, its c a sum after the product.
//
// With bf16 both factors are rounded to bf16, constant ones once; sums and output stay in f32.
#include <bit>
#include <string_view>

#include "autograph/op_def.h"
#include "backends/cpu/anchored_call.h"
#include "backends/cpu/onednn/bf16.h"
#include "backends/cpu/onednn/conv/convolution_turn.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/post_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/onednn/row_tiles.h"
#include "backends/cpu/refusal.h"
#include "ops/defs.h"
#include "runtime/memory/packed_constants.h"

namespace autograph {
namespace onednn {
namespace {

using MemoryDims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;

// Tags of the variants.
enum Form : int { kMatmul = 0, kInnerProduct = 1, kConvolution = 2 };

bool is_gemm(const AnchoredCall& call) { return &call.op() == &gemm_def(); }

// The axis of the output along which the columns of the product lie. A product with a vector has one column, and no
// axis for it: the last one is that of the rows.
std::optional<size_t> column_axis(const AnchoredCall& call) {
  const auto rank = static_cast<size_t>(call.output().shape().rank());
  return rank == 0 || call.dims(1).size() == 1 ? std::nullopt : std::optional(rank - 1);
}

// Is it one number per column?
bool is_row(const AnchoredCall& call, const Operand& operand) {
  if (operand.input < 0 || !operand.type.is_tensor() || !column_axis(call)) return false;
  const Dims dims = operand.type.shape().static_dims();
  const Dims out = call.output().shape().static_dims();
  if (dims.empty() || out.empty() || dims.size() > out.size() || dims.back() != out.back()) return false;
  return operand.type.shape().num_elements() == dims.back();
}

// A vector that the product adds to every row: the first op of a matmul's epilogue, or gemm's c. Output scales apply to
// a bias too, so c is none where there is an alpha.
const Operand* find_bias(const AnchoredCall& call) {
  if (is_gemm(call)) {
    const bool fits = call.has(2) && is_row(call, call.operand(2)) && call.attributes().real("alpha") == 1.0F;
    return fits ? &call.operand(2) : nullptr;
  }
  if (call.epilogue().empty()) return nullptr;
  const EpilogueOp& first = call.epilogue()[0];
  if (first.op != &add_def() || first.operands.size() != 2) return nullptr;
  const Operand& other = other_operand(first);
  return is_row(call, other) ? &other : nullptr;
}

size_t first_post_op(const AnchoredCall& call) { return !is_gemm(call) && find_bias(call) ? 1 : 0; }

std::string why_not(const KernelCall& call) {
  const auto product = read_product(call);
  if (!product) return "not a matrix product with a chain of elementwise ops behind it";
  if (product->operand(0).input < 0 || product->operand(1).input < 0) return "a constant inside the body";
  if (std::max(product->dims(0).size(), product->dims(1).size()) > DNNL_MAX_NDIMS) return "more than 12 dims";
  if (is_gemm(*product) && product->has(2) && product->attributes().real("beta") != 1.0F) return "beta other than 1";
  if (is_gemm(*product) && product->has(2) && product->operand(2).input < 0) return "a constant inside the body";
  if (product->output().shape().dims().empty() && !product->epilogue().empty()) return "an epilogue on a scalar";
  const bool adds_tensor = is_gemm(*product) && product->has(2) && !find_bias(*product);
  if (adds_tensor && !product->epilogue().empty()) return "a sum that is no row in front of an epilogue";
  std::string reason = why_not_f32(call);
  if (reason.empty() && !product->epilogue().empty()) {
    reason = why_not_post_ops(*product, column_axis(*product), first_post_op(*product));
  }
  return reason;
}

std::string why_not_bf16(const KernelCall& call) {
  std::string reason = why_no_bf16();
  return reason.empty() ? why_not(call) : reason;
}

// A matrix as given, read as its transpose when `transposed`.
Desc matrix(const Dims& given, bool transposed) {
  if (!transposed) return row_major(given);
  return {{given[1], given[0]}, dnnl::memory::data_type::f32, MemoryDims{1, given[1]}};
}

// What the product sees: all three of one rank.
struct Product {
  Desc a, b, y;
  bool is_flat = false;  // a, b and y are matrices
};

Product stacked_product(const AnchoredCall& call) {
  MemoryDims a = call.dims(0);
  MemoryDims b = call.dims(1);
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  if (b.size() == 2) {
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < a.size(); ++i) rows *= a[i];
    return {row_major({rows, a.back()}), row_major(b), row_major({rows, b[1]}), true};
  }
  const size_t rank = std::max(a.size(), b.size());
  a.insert(a.begin(), rank - a.size(), 1);
  b.insert(b.begin(), rank - b.size(), 1);
  MemoryDims y;
  for (size_t i = 0; i + 2 < rank; ++i) y.push_back(std::max(a[i], b[i]));
  y.push_back(a[rank - 2]);
  y.push_back(b[rank - 1]);
  return {row_major(a), row_major(b), row_major(y), false};
}

Product product_of(const AnchoredCall& call) {
  if (!is_gemm(call)) return stacked_product(call);
  return {matrix(call.dims(0), call.attributes().flag("transA")),
          matrix(call.dims(1), call.attributes().flag("transB")), row_major(call.output().shape().static_dims()), true};
}

bool has_constant_matrix(const AnchoredCall& call) {
  return call.operand(1).constant.is_present() && product_of(call).is_flat;
}

// oneDNN's product.
struct Matmul {
  Desc a, b, bias, y;
  dnnl::primitive_attr attributes;

  dnnl::matmul::primitive_desc describe() const {
    const dnnl::matmul::desc desc = bias.is_zero() ? dnnl::matmul::desc(a, b, y) : dnnl::matmul::desc(a, b, bias, y);
    return {desc, attributes, cpu_engine()};
  }
  // The same for so many rows of a.
  Matmul with_rows(int64_t rows) const {
    Matmul part = *this;
    part.a = row_major({rows, a.dims()[1]});
    part.y = row_major({rows, y.dims()[1]});
    return part;
  }
  // The same with what is known of b.
  Matmul with_matrix(const Desc& known) const {
    Matmul part = *this;
    part.b = known;
    return part;
  }
};

// Does the product add in the same order however many rows there are? Others ("gemm") do not, and need no code for each
// number of rows.
bool adds_alike(const dnnl::matmul::primitive_desc& pd) {
  return std::string_view(pd.impl_info_str()).starts_with("brg:");
}

// What both forms share: post-ops, bias, arguments.
class ProductMaker {
 public:
  ProductMaker(const AnchoredCall& call, const KernelCall& kernel_call, DataType operands = DataType::f32)
      : call_(call),
        threads_(kernel_call.threads),
        packed_(kernel_call.packed),
        operands_(operands),
        product_(product_of(call)) {
    const auto y = product_.y.dims();
    if (!call.output().shape().dims().empty()) {
      post_ops_ = make_post_ops(call, column_axis(call), {y, y.size() - 1}, first_post_op(call));
    }
    if (find_bias(call)) {
      MemoryDims dims(y.size(), 1);
      dims.back() = y.back();
      bias_ = row_major(dims);
    }
  }

  std::unique_ptr<Kernel> matmul() {
    const Matmul whole = whole_matmul();
    const int64_t rows = rows_of_tiles();
    if (rows > 0) {
      const RowTiles::Pair tiles{held_tile(whole, rows), held_tile(whole, kRowsOfRest)};
      if (can_be_used(tiles)) return make_late(whole, tiles);
    }
    const dnnl::matmul::primitive_desc pd = whole.describe();
    // The first shape of weights may be the only one.
    if (rows > 0 && adds_alike(pd) && PrimitiveKernel::is_packed(matrix_argument(pd.weights_desc()), packed_)) {
      const RowTiles::Pair tiles{share_tile(whole, rows, pd), share_tile(whole, kRowsOfRest, pd)};
      if (can_be_used(tiles)) return make_late(whole, tiles);
    }
    return finish(dnnl::matmul(pd), pd.weights_desc(), product_.b, pd.scratchpad_desc());
  }

  std::unique_ptr<Kernel> inner_product() {
    // Its weights are [outputs, inputs]: the transpose of b.
    const auto b = product_.b.dims();
    const bool transposed = is_gemm(call_) && call_.attributes().flag("transB");
    const Desc given =
        transposed ? row_major({b[1], b[0]}) : Desc({b[1], b[0]}, dnnl::memory::data_type::f32, MemoryDims{1, b[1]});
    const Desc bias = find_bias(call_) ? row_major({b[1]}) : Desc();
    const dnnl::inner_product_forward::desc desc(dnnl::prop_kind::forward_inference, product_.a,
                                                 any_layout(given.dims()), bias, product_.y);
    const dnnl::inner_product_forward::primitive_desc pd(desc, make_attributes(), cpu_engine());
    bias_ = bias;
    return finish(dnnl::inner_product_forward(pd), pd.weights_desc(), given, pd.scratchpad_desc());
  }

  // The rows of a are the pixels of an image with one channel per column.
  std::unique_ptr<Kernel> convolution() {
    const auto a = product_.a.dims();
    const auto b = product_.b.dims();
    const MemoryDims y{1, b[1], 1, a[0]};
    const bool transposed = is_gemm(call_) && call_.attributes().flag("transB");
    const MemoryDims weights{b[1], b[0], 1, 1};
    const Desc given =
        transposed ? row_major(weights) : Desc(weights, dnnl::memory::data_type::f32, MemoryDims{1, b[1], 1, 1});
    const Desc bias = find_bias(call_) ? row_major({b[1]}) : Desc();
    post_ops_ = make_post_ops(call_, column_axis(call_), {y, 1}, first_post_op(call_));
    const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                               desc_in(Layout::channels_last, {1, b[0], 1, a[0]}), any_layout(weights),
                                               bias, desc_in(Layout::channels_last, y), {1, 1}, {0, 0}, {0, 0});
    const ConvolutionTurn turn(DataType::f32);
    const dnnl::convolution_forward::primitive_desc pd(desc, make_attributes(), cpu_engine());
    bias_ = bias;
    product_.a = pd.src_desc();
    product_.y = pd.dst_desc();
    return finish(dnnl::convolution_forward(pd), pd.weights_desc(), given, pd.scratchpad_desc());
  }

 private:
  static constexpr int64_t kRowsOfRest = 4;

  Matmul whole_matmul() {
    const Desc b = has_constant_matrix(call_) ? any_layout(product_.b.dims(), operands_) : with_type(product_.b);
    return {with_type(product_.a), b, bias_, product_.y, make_attributes()};
  }

  // How many rows are computed at a time until the shape has come back; 0 where that gains nothing: few rows come in
  // few numbers, and a large product runs longer than its code takes to make.
  int64_t rows_of_tiles() const {
    constexpr double kMostFlops = 2.5e8;
    constexpr int64_t kLeastRows = 5, kSomeRows = 16, kManyRows = 128;
    const auto is_row = [](const Argument& argument) { return argument.wanted.dims()[0] == 1; };
    const bool can_be_late = packed_ && operands_ == DataType::f32 && has_constant_matrix(call_) &&
                             product_.a == row_major(product_.a.dims()) &&
                             std::all_of(post_ops_.arguments.begin(), post_ops_.arguments.end(), is_row);
    if (!can_be_late) return 0;
    const int64_t rows = product_.a.dims()[0];
    const auto b = product_.b.dims();
    if (rows < kLeastRows || 2.0 * static_cast<double>(rows * b[0]) * static_cast<double>(b[1]) > kMostFlops) return 0;
    return rows < kSomeRows ? kRowsOfRest : rows < kManyRows ? kSomeRows : kManyRows / 2;
  }

  std::string form_of_tile(const Matmul& part) const {
    const auto strides = product_.b.data.format_desc.blocking.strides;
    ProblemKind kind;
    kind.add(threads_).add(part.a.dims()).add(part.y.dims()).add(strides[0]).add(part.bias.is_zero() ? 0 : 1);
    if (is_gemm(call_)) kind.add(std::bit_cast<int32_t>(call_.attributes().real("alpha")));
    return form_of_rows("brg", kind.add(post_ops_.ops));
  }

  // What kernels of other shapes hold: then nothing needs to be described for this one.
  std::shared_ptr<const RowTile> held_tile(const Matmul& whole, int64_t rows) const {
    return PackedConstants::held<RowTile>(packed_, {call_.operand(1).constant}, form_of_tile(whole.with_rows(rows)));
  }

  // For a matrix that lies as that of the whole. Null where oneDNN has none.
  std::shared_ptr<const RowTile> share_tile(const Matmul& whole, int64_t rows,
                                            const dnnl::matmul::primitive_desc& of_all) const {
    const TeamScope scope(1);
    const Matmul part = whole.with_rows(rows).with_matrix(of_all.weights_desc());
    try {
      const auto make = [&] {
        const dnnl::matmul::primitive_desc pd = part.describe();
        if (!adds_alike(pd)) throw dnnl::error(dnnl_unimplemented, "products that add in another order");
        return row_tile(dnnl::matmul(pd), pd, of_all.scratchpad_desc(), rows);
      };
      return PackedConstants::share(packed_, {call_.operand(1).constant}, form_of_tile(part), make);
    } catch (const dnnl::error&) {
      return nullptr;
    }
  }

  // One of them may have been made for another number of rows, for which oneDNN wanted the matrix in another layout.
  static bool can_be_used(const RowTiles::Pair& tiles) {
    return tiles[0] && tiles[1] && tiles[0]->weights == tiles[1]->weights;
  }

  std::unique_ptr<Kernel> make_late(const Matmul& whole, const RowTiles::Pair& tiles) {
    const int64_t rows = product_.a.dims()[0];
    const Desc weights = tiles[0]->weights, scratchpad = tiles[0]->scratchpad_of_all;
    auto make = [known = whole.with_matrix(weights), most_scratch = scratchpad.get_size()] {
      const dnnl::matmul::primitive_desc pd = known.describe();
      check_fits(pd.scratchpad_desc(), most_scratch);
      if (!adds_alike(pd)) throw dnnl::error(dnnl_unimplemented, "a product that adds in another order");
      return dnnl::primitive(dnnl::matmul(pd));
    };
    auto kernel = finish({}, weights, product_.b, scratchpad);
    kernel->set_tiles(std::make_unique<RowTiles>(tiles, RowLines{.in = rows, .out = rows},
                                                 post_ops_.accumulated_input >= 0, threads_),
                      std::make_unique<LatePrimitive>(make));
    return kernel;
  }

  Argument matrix_argument(const Desc& wanted) const {
    return {DNNL_ARG_WEIGHTS, false,  static_cast<size_t>(call_.operand(1).input),
            product_.b,       wanted, call_.operand(1).constant};
  }

  dnnl::primitive_attr make_attributes() {
    dnnl::primitive_attr attributes = new_attributes();
    if (is_gemm(call_)) {
      const float alpha = call_.attributes().real("alpha");
      if (alpha != 1.0F) attributes.set_output_scales(0, {alpha});
      add_gemm_sum();
    }
    attributes.set_post_ops(post_ops_.ops);
    return attributes;
  }

  // The same memory in the type of the operands: dense in the order of the given one.
  Desc with_type(const Desc& given) const {
    if (operands_ == DataType::f32) return given;
    Desc result = given;
    result.data.data_type = dnnl::memory::convert_to_c(operands_);
    return result;
  }

  // gemm's c where it is no row: a sum in front of the epilogue.
  void add_gemm_sum() {
    if (!call_.has(2) || find_bias(call_)) return;
    MemoryDims dims = call_.dims(2);
    dims.insert(dims.begin(), 2 - dims.size(), 1);
    PostOps with_sum;
    with_sum.ops.append_binary(dnnl::algorithm::binary_add, row_major(dims));
    with_sum.arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, false,
                                  static_cast<size_t>(call_.operand(2).input), row_major(dims), row_major(dims),
                                  call_.operand(2).constant});
    post_ops_ = std::move(with_sum);
  }

  std::unique_ptr<PrimitiveKernel> finish(dnnl::primitive primitive, const Desc& wanted, const Desc& given,
                                          const Desc& scratchpad) {
    const auto slot = [&](const Operand& operand) { return static_cast<size_t>(operand.input); };
    const bool pack = has_constant_matrix(call_);
    std::vector<Argument> arguments{
        {DNNL_ARG_SRC, false, slot(call_.operand(0)), product_.a, with_type(product_.a)},
        {DNNL_ARG_WEIGHTS, false, slot(call_.operand(1)), given, wanted, pack ? call_.operand(1).constant : Tensor()},
        {DNNL_ARG_DST, true, 0, product_.y, product_.y}};
    if (const Operand* bias = find_bias(call_)) {
      arguments.push_back({DNNL_ARG_BIAS, false, slot(*bias), bias_, bias_, bias->constant});
    }
    for (Argument& argument : post_ops_.arguments) arguments.push_back(std::move(argument));
    auto kernel = std::make_unique<PrimitiveKernel>(std::move(primitive), std::move(arguments), scratchpad, packed_);
    if (post_ops_.accumulated_input >= 0) {
      kernel->set_accumulated_input(static_cast<size_t>(post_ops_.accumulated_input));
    }
    kernel->set_last_pass(post_ops_.last, post_ops_.added_last, threads_);
    return kernel;
  }

  const AnchoredCall& call_;
  int threads_;
  PackedConstants* packed_;
  DataType operands_;  // of a and b
  Product product_;
  PostOps post_ops_;
  Desc bias_;
};

// Inner products and convolutions have no scale, and add a row at most.
bool can_be_other_form(const AnchoredCall& call) {
  if (!has_constant_matrix(call)) return false;
  if (!is_gemm(call)) return true;
  return call.attributes().real("alpha") == 1.0F && !call.attributes().flag("transA") &&
         (!call.has(2) || find_bias(call));
}

// Before AVX-512 a product goes through oneDNN's sgemm, which reads a long way down the columns of b, or of a where
// that is transposed, when it packs them. Rows a multiple of 4 KiB apart all meet in one set of the first cache, and
// then it takes twice as long (rows of 2 KiB: 1.3 times). It packs known matrices, too, in each run: of up to some
// hundred rows a known matrix takes 0.4 to 0.9 of its time as the weights of a convolution, which are packed once. One
// row is multiplied by what is there.
double slowdown(const AnchoredCall& call) {
  constexpr int64_t kManyRows = 512, kPageOfFloats = 1024;
  if (dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core) return 1;
  const Product product = product_of(call);
  const bool is_known = has_constant_matrix(call);
  if (!product.is_flat || product.a.dims()[0] == 1 || (!is_known && product.b.dims()[0] < kManyRows)) return 1;
  const auto meets = [](const Desc& matrix, int64_t rows_apart, int axis) {
    return matrix.data.format_desc.blocking.strides[axis] == rows_apart && rows_apart % kPageOfFloats == 0;
  };
  if (meets(product.a, product.a.dims()[0], 1) || meets(product.b, product.b.dims()[1], 0)) return 2;
  return is_known ? 1.3 : 1;
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  const auto product = read_product(call);
  const KernelCall anchor = product->anchor_call(call.threads);
  const OpCost cost = cost_of(product->op(), {product->attributes(), anchor.inputs, anchor.outputs});
  constexpr double kFlopsPerUsAndThread = 100e3;
  constexpr double kBytesPerUs = 12e3;
  const double compute_us = cost.flops / (kFlopsPerUsAndThread * call.threads);
  const double other_us = 2 + cost.bytes / kBytesPerUs;
  const double slower = slowdown(*product);
  // A known matrix is read once more where it is packed in each run.
  const double us = (has_constant_matrix(*product) ? slower : 1) * other_us + slower * compute_us;
  std::vector<KernelVariant> list{{.name = "", .inputs = {}, .outputs = {}, .cost_us = us, .tag = kMatmul}};
  if (can_be_other_form(*product)) {
    const double convolution_us = 1.1 * (other_us + compute_us);
    list.push_back({.name = "inner_product", .inputs = {}, .outputs = {}, .cost_us = us * 1.05, .tag = kInnerProduct});
    list.push_back(
        {.name = "convolution", .inputs = {}, .outputs = {}, .cost_us = convolution_us, .tag = kConvolution});
  }
  return list;
}

Prepared prepare(const KernelCall& call) {
  return try_prepare([&] {
    const auto product = read_product(call);
    ProductMaker maker(*product, call);
    const int form = call.variant ? call.variant->tag : kMatmul;
    if (form == kInnerProduct) return maker.inner_product();
    return form == kConvolution ? maker.convolution() : maker.matmul();
  });
}

// The plain form alone: the others are of use where f32 has no good kernel for it.
std::vector<KernelVariant> bf16_variants(const KernelCall& call) {
  const auto product = read_product(call);
  const KernelCall anchor = product->anchor_call(call.threads);
  const OpCost cost = cost_of(product->op(), {product->attributes(), anchor.inputs, anchor.outputs});
  constexpr double kFlopsPerUsAndThread = 400e3;
  constexpr double kBytesPerUs = 12e3;
  double us = 2 + cost.flops / (kFlopsPerUsAndThread * call.threads) + cost.bytes / kBytesPerUs;
  us += conversion_us(product->operand(0).type, DataType::bf16, call.threads);
  if (!has_constant_matrix(*product)) us += conversion_us(product->operand(1).type, DataType::bf16, call.threads);
  return {{.name = "", .inputs = {}, .outputs = {}, .cost_us = us, .tag = kMatmul}};
}

Prepared prepare_bf16(const KernelCall& call) {
  return try_prepare([&] {
    const auto product = read_product(call);
    return ProductMaker(*product, call, DataType::bf16).matmul();
  });
}

KernelDef kernel_for(std::string_view name, std::string_view op) {
  return {.name = name, .op = op, .why_not = why_not, .prepare = prepare, .variants = variants};
}

KernelDef bf16_kernel_for(std::string_view op) {
  return {.name = "cpu.matmul_bf16_onednn",
          .op = op,
          .why_not = why_not_bf16,
          .prepare = prepare_bf16,
          .variants = bf16_variants};
}

}  // namespace

KernelDef matmul_kernel() { return kernel_for("cpu.matmul_onednn", matmul_def().name); }
KernelDef gemm_kernel() { return kernel_for("cpu.gemm_onednn", gemm_def().name); }
KernelDef fused_matmul_kernel() { return kernel_for("cpu.matmul_onednn", fused_def().name); }
std::vector<KernelDef> bf16_matmul_kernels() {
  return {bf16_kernel_for(matmul_def().name), bf16_kernel_for(gemm_def().name), bf16_kernel_for(fused_def().name)};
}

}  // namespace onednn
}  // namespace autograph
