// matmul, gemm, and matmul of bytes.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/quantized/quantized.h"
#include "backends/gpu/emit/text/epilogue.h"
#include "backends/gpu/emit/text/product.h"
#include "ops/defs.h"

namespace autograph::gpu {
namespace {

// Where the matrices of an operand begin, and the steps of their rows and columns.
struct Stack {
  Walk batches;
  int64_t row = 0;
  int64_t column = 0;
};

// Where row `row` of the matrix of batch `b` begins.
std::string row_of(const IndexType& index, const Stack& stack, const std::string& b, const std::string& row) {
  return fmt::format("{} + {} * {}", position(index, b, stack.batches), row, index.literal(stack.row));
}

// Where element (row, column) of the matrix of batch b lies.
std::string place_of(const IndexType& index, const Stack& stack, const std::string& b, const std::string& row,
                     const std::string& column) {
  return fmt::format("{} + {} * {}", row_of(index, stack, b, row), column, index.literal(stack.column));
}

// "x[...]", the element there.
ElementText element_of(const IndexType& index, const std::string& name, DType dtype, const std::string& type,
                       const Stack& stack) {
  return [=](const std::string& b, const std::string& row, const std::string& column) {
    return fmt::format("({}){}", type, load(dtype, name, place_of(index, stack, b, row, column)));
  };
}

// "&x[...]", of which four neighbours along `extent` elements of a row are read at once; null where they cannot be.
ElementText four_of(const IndexType& index, const std::string& name, DType dtype, const Stack& stack, int64_t extent) {
  if (dtype != DType::f32 || stack.column != 1 || extent % 4 != 0) return nullptr;
  return [=](const std::string& b, const std::string& row, const std::string& column) {
    return fmt::format("&{}[{} + {}]", name, row_of(index, stack, b, row), column);
  };
}

// Leading dims of an operand whose matrices have `matrix` elements, broadcast to those of the result.
Walk batch_walk(const Dims& leading, const Dims& to, int64_t matrix) {
  Walk walk = broadcast_walk(leading, to);
  for (int64_t& stride : walk.strides) stride *= matrix;
  return walk;
}

Emitted finish_product(Writer& writer, const Epilogue& epilogue, Product product, const Stack& a, const Stack& b) {
  const KernelCall call = epilogue.producer();
  const DType dtype = call.outputs[0].dtype();
  product.left_walks_inner = a.column == 1;
  std::vector<Parameter> parameters{epilogue.operand("left_matrix", 0), epilogue.operand("right_matrix", 1)};
  if (call.has_input(2)) parameters.push_back(epilogue.operand("addend", 2));
  for (const Parameter& parameter : epilogue.parameters()) parameters.push_back(parameter);
  product.left = element_of(writer.index(), "left_matrix", dtype, product.type, a);
  product.right = element_of(writer.index(), "right_matrix", dtype, product.type, b);
  product.left_four = four_of(writer.index(), "left_matrix", dtype, a, product.inner);
  product.right_four = four_of(writer.index(), "right_matrix", dtype, b, product.columns);
  write_product(writer, parameters, product);
  if (!epilogue.refusal().empty()) return refused(epilogue.refusal());
  writer.in_place_inputs = epilogue.in_place_inputs();
  return writer.finish();
}

// A product of matrices as matmul has it: what is multiplied, where the operands lie, and the rows of one matrix, since
// those of all may be taken for one large one.
struct Matmul {
  Product product;
  Stack left, right;
  int64_t rows = 0;
};

Matmul matmul_of(Dims a, Dims b, Dims leading) {
  // One row or one column, which the result drops.
  const bool is_row = a.size() == 1;
  const bool is_column = b.size() == 1;
  if (is_row) a.insert(a.begin(), 1);
  if (is_column) b.push_back(1);
  leading.resize(leading.size() - (is_row ? 0 : 1) - (is_column ? 0 : 1));
  Matmul matmul;
  Product& product = matmul.product;
  product.rows = matmul.rows = a[a.size() - 2];
  product.inner = a.back();
  product.columns = b.back();
  product.batches = num_elements(leading);
  product.can_split = true;
  const Dims a_leading(a.begin(), a.end() - 2);
  const Dims b_leading(b.begin(), b.end() - 2);
  // One matrix on the right: the rows of all batches are those of one large matrix.
  const bool is_one = num_elements(b_leading) == 1 && num_elements(a_leading) == product.batches;
  if (is_one) {
    product.rows *= product.batches;
    product.batches = 1;
  }
  const Dims to = is_one ? Dims{} : leading;
  matmul.left = {is_one ? Walk{} : batch_walk(a_leading, to, product.rows * product.inner), product.inner, 1};
  matmul.right = {is_one ? Walk{} : batch_walk(b_leading, to, product.inner * product.columns), product.columns, 1};
  return matmul;
}

}  // namespace

Emitted emit_matmul(const KernelCall& whole, const Target& target) {
  Epilogue epilogue(whole, matmul_def());
  if (!epilogue.refusal().empty()) return refused(epilogue.refusal());
  const KernelCall call = epilogue.producer();
  const DType dtype = call.outputs[0].dtype();
  if (!can_multiply(dtype, target)) return refused("dtype");
  Matmul matmul = matmul_of(call.input_dims(0), call.input_dims(1), call.output_dims(0));
  Product& product = matmul.product;
  product.type = product_type(dtype);
  Writer writer(target);
  epilogue.cover(writer.index());
  const std::string rows = writer.index().literal(product.rows);
  const std::string columns = writer.index().literal(product.columns);
  const std::string_view type = compute_type(dtype);
  product.write = [&](const std::string& batch, const std::string& m, const std::string& n, const std::string& sum) {
    writer.line("const Index at = ({} * {} + {}) * {} + {};", batch, rows, m, columns, n);
    epilogue.store(writer, "at", fmt::format("({}){}", type, sum));
  };
  return finish_product(writer, epilogue, product, matmul.left, matmul.right);
}

// Rows of all batches may be those of one large matrix: lines of the left operand are those of one of its matrices.
Emitted emit_byte_matmul(const KernelCall& call, const Target& target) {
  Matmul matmul = matmul_of(call.input_dims(0), call.input_dims(ByteProduct::right_slot(call)), call.output_dims(0));
  Product& product = matmul.product;
  const ByteProduct bytes(call, target, product.inner);
  if (const std::string refusal = bytes.refusal(); !refusal.empty()) return refused(refusal);
  Writer writer(target);
  cover_operands(writer.index(), call);
  const IndexType& index = writer.index();
  product.type = bytes.sum_type();
  const auto line_of = [&](const std::string& row) {
    return fmt::format("({}) % {}", row, index.literal(matmul.rows));
  };
  product.left = [&](const std::string& b, const std::string& row, const std::string& column) {
    return bytes.left(place_of(index, matmul.left, b, row, column), line_of(row));
  };
  product.right = [&](const std::string& b, const std::string& row, const std::string& column) {
    return bytes.right(place_of(index, matmul.right, b, row, column), column);
  };
  product.write = [&](const std::string& b, const std::string& m, const std::string& n, const std::string& sum) {
    const std::string at =
        fmt::format("({} * {} + {}) * {} + {}", b, index.literal(product.rows), m, index.literal(product.columns), n);
    bytes.store(writer, at, line_of(m), n, sum);
  };
  write_product(writer, bytes.parameters(), product);
  return writer.finish();
}

Emitted emit_gemm(const KernelCall& whole, const Target& target) {
  Epilogue epilogue(whole, gemm_def());
  if (!epilogue.refusal().empty()) return refused(epilogue.refusal());
  const KernelCall call = epilogue.producer();
  const DType dtype = call.outputs[0].dtype();
  if (!can_multiply(dtype, target) || !is_float(dtype)) return refused("dtype");
  const Dims a = call.input_dims(0);
  const Dims b = call.input_dims(1);
  const Dims y = call.output_dims(0);
  const bool transposes_a = call.attributes.flag("transA");
  const bool transposes_b = call.attributes.flag("transB");
  Product product;
  product.rows = y[0];
  product.columns = y[1];
  product.inner = a[transposes_a ? 0 : 1];
  product.type = product_type(dtype);
  product.can_split = true;
  const Stack left{{}, transposes_a ? 1 : a[1], transposes_a ? a[1] : 1};
  const Stack right{{}, transposes_b ? 1 : b[1], transposes_b ? b[1] : 1};
  Writer writer(target);
  epilogue.cover(writer.index());
  const auto alpha = static_cast<double>(call.attributes.real("alpha"));
  const auto beta = static_cast<double>(call.attributes.real("beta"));
  const bool adds = call.has_input(2) && beta != 0;
  const std::string columns = writer.index().literal(product.columns);
  product.write = [&](const std::string&, const std::string& m, const std::string& n, const std::string& sum) {
    writer.line("const Index at = {} * {} + {};", m, columns, n);
    std::string value = alpha == 1 ? sum : fmt::format("{} * {}", literal(dtype, alpha), sum);
    if (adds) {
      const std::string c =
          load(dtype, "addend", position(writer.index(), "at", broadcast_walk(call.input_dims(2), y)));
      value += beta == 1 ? " + " + c : fmt::format(" + {} * {}", literal(dtype, beta), c);
    }
    epilogue.store(writer, "at", value);
  };
  return finish_product(writer, epilogue, product, left, right);
}

}  // namespace autograph::gpu
