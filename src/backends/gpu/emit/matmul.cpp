// matmul, gemm and matmul_integer.
#include <functional>

#include "backends/gpu/emit/families.h"
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

// "x[...]", the element at (row, column) of the matrix of batch b.
ElementText element_of(const IndexType& index, const std::string& name, DType dtype, const std::string& type,
                       const Stack& stack) {
  return [=](const std::string& b, const std::string& row, const std::string& column) {
    const std::string at =
        fmt::format("{} + {} * {}", row_of(index, stack, b, row), column, index.literal(stack.column));
    return fmt::format("({}){}", type, load(dtype, name, at));
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

// Of an operand of bytes, whose zero point is taken off before it is multiplied; `line`: of which one of several.
ElementText shifted_element(const KernelCall& call, const IndexType& index, const std::string& name, size_t slot,
                            const Stack& stack,
                            const std::function<std::string(const std::string&, const std::string&)>& line) {
  const ElementText plain = element_of(index, name, call.inputs[slot].dtype(), "i32", stack);
  if (!call.has_input(slot + 2)) {
    return [=](const std::string& b, const std::string& row, const std::string& column) {
      return fmt::format("(u32)({})", plain(b, row, column));
    };
  }
  const bool are_many = num_elements(call.input_dims(slot + 2)) > 1;
  return [=](const std::string& b, const std::string& row, const std::string& column) {
    return fmt::format("(u32)({} - {}_zeros[{}])", plain(b, row, column), name, are_many ? line(row, column) : "0");
  };
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

Emitted emit_matmul_integer(const KernelCall& call, const Target& target) {
  if (!can_multiply(DType::i32, target)) return refused("groups of 256 items");
  constexpr const char* kNames[] = {"left_bytes", "right_bytes", "left_bytes_zeros", "right_bytes_zeros"};
  for (const size_t slot : {0, 1}) {
    if (!is_whole(call.inputs[slot].dtype())) return refused("operands that are no integers");
  }
  Matmul matmul = matmul_of(call.input_dims(0), call.input_dims(1), call.output_dims(0));
  Product& product = matmul.product;
  product.type = "u32";  // sums wrap around
  Writer writer(target);
  cover_operands(writer.index(), call);
  const auto lit = [&](int64_t value) { return writer.index().literal(value); };
  product.left = shifted_element(
      call, writer.index(), kNames[0], 0, matmul.left,
      [&](const std::string& row, const std::string&) { return fmt::format("({}) % {}", row, lit(matmul.rows)); });
  product.right = shifted_element(call, writer.index(), kNames[1], 1, matmul.right,
                                  [](const std::string&, const std::string& column) { return column; });
  product.write = [&](const std::string& batch, const std::string& m, const std::string& n, const std::string& sum) {
    writer.line("y[({} * {} + {}) * {} + {}] = (i32)({});", batch, lit(product.rows), m, lit(product.columns), n, sum);
  };
  std::vector<Parameter> parameters;
  for (size_t slot = 0; slot < std::size(kNames); ++slot) {
    if (!call.has_input(slot)) continue;
    parameters.push_back(input_parameter(kNames[slot], storage_type(call.inputs[slot].dtype()), slot));
  }
  parameters.push_back(output_parameter("y", "i32"));
  write_product(writer, parameters, product);
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
