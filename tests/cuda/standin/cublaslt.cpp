// The stand-in of libcublasLt: plain loops over column-major matrices, as cublasLt.h describes them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <string>

#include "autograph/small_float.h"
#include "cuda/standin/standin.h"

namespace autograph::cuda {

struct LtOperationData {
  int compute = 0, scale = 0;
  int32_t transpose_a = 0, transpose_b = 0, epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct LtLayoutData {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  int32_t batches = 1;
  int64_t step = 0;
};
struct LtPreferenceData {
  uint64_t workspace = 0;
  uint32_t reductions = 7;
  uint32_t alignments[4] = {256, 256, 256, 256};
};
struct cublasLtContext {
  int unused = 0;
};

namespace {

// Of an algorithm: what it was chosen for.
struct Chosen {
  uint64_t number, alignment, workspace;
  uint64_t bias_alignment;
  bool rounds_parts;  // adds up two parts of k as elements of the result
};

bool has_16_bits(int type) { return type == CUDA_R_16F || type == CUDA_R_16BF; }

// In what the library multiplies which elements.
bool can_multiply(const LtOperationData& op, int type) {
  switch (type) {
    case CUDA_R_64F: return op.compute == CUBLAS_COMPUTE_64F && op.scale == CUDA_R_64F;
    case CUDA_R_32F:
      return (op.compute == CUBLAS_COMPUTE_32F || op.compute == CUBLAS_COMPUTE_32F_FAST_16BF) && op.scale == CUDA_R_32F;
    default: return has_16_bits(type) && op.compute == CUBLAS_COMPUTE_32F && op.scale == CUDA_R_32F;
  }
}

// What an address is a multiple of, as far as that matters.
uint64_t alignment_of(const void* address) {
  const auto number = reinterpret_cast<uintptr_t>(address);
  return std::min<uint64_t>(256, number & (~number + 1));
}

template <class T>
cublasStatus_t put(T& to, const void* from, size_t bytes) {
  if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// Element (row, column) of a matrix of a batch.
template <class T>
T element(const T* data, const LtLayoutData& layout, bool transposed, int64_t batch, uint64_t row, uint64_t column) {
  if (transposed) std::swap(row, column);
  return data[batch * layout.step + static_cast<int64_t>(row) + static_cast<int64_t>(column) * layout.leading];
}

size_t bytes_of(const LtLayoutData& layout, size_t size) {
  const int64_t last = (layout.batches - 1) * layout.step + static_cast<int64_t>(layout.columns - 1) * layout.leading +
                       static_cast<int64_t>(layout.rows);
  return static_cast<size_t>(last) * size;
}

struct Product {
  LtOperationData op;
  LtLayoutData a, b, c, d;
  const void *a_data, *b_data, *c_data;
  void* d_data;
  double alpha, beta;
  bool rounds_parts;
};

bool adds_row(int32_t epilogue) { return (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }

double activated(int32_t epilogue, double x) {
  if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) return x < 0 ? 0 : x;
  if ((epilogue & CUBLASLT_EPILOGUE_GELU) == 0) return x;
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

template <class T>
void multiply(const Product& p) {
  const auto* a = static_cast<const T*>(standin::at(p.a_data, bytes_of(p.a, sizeof(T))));
  const auto* b = static_cast<const T*>(standin::at(p.b_data, bytes_of(p.b, sizeof(T))));
  const auto* c = static_cast<const T*>(standin::at(p.c_data, bytes_of(p.c, sizeof(T))));
  auto* d = static_cast<T*>(standin::at(p.d_data, bytes_of(p.d, sizeof(T))));
  const bool adds_bias = adds_row(p.op.epilogue);
  const auto* bias = adds_bias ? static_cast<const T*>(standin::at(p.op.bias, p.d.rows * sizeof(T))) : nullptr;
  if (!a || !b || !c || !d || (adds_bias && !bias)) return;
  const uint64_t inner = p.op.transpose_a ? p.a.rows : p.a.columns;
  for (int64_t batch = 0; batch < p.d.batches; ++batch) {
    for (uint64_t m = 0; m < p.d.rows; ++m) {
      for (uint64_t n = 0; n < p.d.columns; ++n) {
        double sum = 0;
        for (uint64_t k = 0; k < inner; ++k) {
          if (p.rounds_parts && k == inner / 2) sum = static_cast<double>(static_cast<T>(sum));
          sum += static_cast<double>(element(a, p.a, p.op.transpose_a != 0, batch, m, k)) *
                 static_cast<double>(element(b, p.b, p.op.transpose_b != 0, batch, k, n));
        }
        double value = p.alpha * sum;
        if (p.beta != 0) value += p.beta * static_cast<double>(element(c, p.c, false, batch, m, n));
        if (bias) value += static_cast<double>(bias[m]);
        const int64_t at = batch * p.d.step + static_cast<int64_t>(m) + static_cast<int64_t>(n) * p.d.leading;
        d[at] = static_cast<T>(activated(p.op.epilogue, value));
      }
    }
  }
}

// As cublasLt.h has it: op(A) is d.rows x inner, op(B) inner x d.columns, and leading dimensions hold a column.
bool fits(const LtOperationData& op, const LtLayoutData& a, const LtLayoutData& b, const LtLayoutData& d) {
  const uint64_t a_rows = op.transpose_a ? a.columns : a.rows, a_inner = op.transpose_a ? a.rows : a.columns;
  const uint64_t b_inner = op.transpose_b ? b.columns : b.rows, b_columns = op.transpose_b ? b.rows : b.columns;
  const bool batches = a.batches == d.batches && b.batches == d.batches;
  if (a.type != d.type || b.type != d.type || !can_multiply(op, d.type)) return false;
  const bool leading = a.leading >= static_cast<int64_t>(a.rows) && b.leading >= static_cast<int64_t>(b.rows) &&
                       d.leading >= static_cast<int64_t>(d.rows);
  return a_rows == d.rows && b_columns == d.columns && a_inner == b_inner && batches && leading;
}

bool is_aligned(const void* address, uint64_t alignment) {
  return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

}  // namespace

#define AG_EXPORT extern "C" AG_STANDIN

AG_EXPORT const char* cublasLtGetStatusName(cublasStatus_t code) {
  return code == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_INVALID_VALUE";
}
AG_EXPORT size_t cublasLtGetVersion() { return 130000; }
AG_EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
AG_EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* op, int compute, int scale) {
  *op = new LtOperationData{compute, scale};
  return CUBLAS_STATUS_SUCCESS;
}
AG_EXPORT cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t op) {
  delete op;
  return CUBLAS_STATUS_SUCCESS;
}
AG_EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t op, int which, const void* value,
                                                        size_t bytes) {
  switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return put(op->transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return put(op->transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return put(op->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return put(op->bias, value, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}
AG_EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, int type, uint64_t rows,
                                                    uint64_t columns, int64_t leading) {
  *layout = new LtLayoutData{type, rows, columns, leading};
  return CUBLAS_STATUS_SUCCESS;
}
AG_EXPORT cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
AG_EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, int which, const void* value,
                                                          size_t bytes) {
  if (which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return put(layout->batches, value, bytes);
  if (which == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return put(layout->step, value, bytes);
  return CUBLAS_STATUS_INVALID_VALUE;
}
AG_EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new LtPreferenceData;
  return CUBLAS_STATUS_SUCCESS;
}
AG_EXPORT cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
AG_EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, int which,
                                                              const void* value, size_t bytes) {
  if (which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return put(preference->workspace, value, bytes);
  if (which == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) return put(preference->reductions, value, bytes);
  const int operand = which - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  if (operand < 0 || operand > 3) return CUBLAS_STATUS_INVALID_VALUE;
  return put(preference->alignments[operand], value, bytes);
}

AG_EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t op,
                                                        cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                        cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                                        cublasLtMatmulPreference_t preference, int wanted,
                                                        cublasLtMatmulHeuristicResult_t* results, int* count) {
  *count = 0;
  if (!fits(*op, *a, *b, *d)) return CUBLAS_STATUS_INVALID_VALUE;
  if (adds_row(op->epilogue) != (op->bias != nullptr)) return CUBLAS_STATUS_INVALID_VALUE;
  // The second one cuts k into parts, as it may.
  constexpr uint32_t kRounding = CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  const bool may_round = has_16_bits(d->type) && (preference->reductions & kRounding) != 0;
  for (int k = 0; k < std::min(wanted, 2); ++k) {
    const Chosen chosen{static_cast<uint64_t>(k), preference->alignments[0], k == 0 ? 0U : 1024U,
                        alignment_of(op->bias), k == 1 && may_round};
    results[k] = {};
    std::memcpy(&results[k].algo, &chosen, sizeof(chosen));
    results[k].workspaceSize = chosen.workspace;
    ++*count;
  }
  return CUBLAS_STATUS_SUCCESS;
}

AG_EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t op, const void* alpha, const void* a,
                                        cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                                        const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                                        cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                                        void* workspace, size_t workspace_bytes, CUstream stream) {
  if (!fits(*op, *a_layout, *b_layout, *d_layout)) return CUBLAS_STATUS_INVALID_VALUE;
  Chosen chosen{};
  std::memcpy(&chosen, algo, sizeof(chosen));
  for (const void* address : {a, b, c, static_cast<const void*>(d)}) {
    if (!is_aligned(address, chosen.alignment)) return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (op->bias && !is_aligned(op->bias, chosen.bias_alignment)) return CUBLAS_STATUS_INVALID_VALUE;
  const bool has_room = workspace_bytes >= chosen.workspace && is_aligned(workspace, 256);
  if (chosen.workspace > 0 && !has_room) return CUBLAS_STATUS_INVALID_VALUE;
  const bool is_f64 = d_layout->type == CUDA_R_64F;
  const auto number = [&](const void* at) {
    return is_f64 ? *static_cast<const double*>(at) : static_cast<double>(*static_cast<const float*>(at));
  };
  const Product product{*op, *a_layout, *b_layout, *c_layout,     *d_layout,    a,
                        b,   c,         d,         number(alpha), number(beta), chosen.rounds_parts};
  const auto work = [=] {
    if (chosen.workspace > 0 && !standin::at(workspace, chosen.workspace)) return;
    switch (product.d.type) {
      case CUDA_R_64F: return multiply<double>(product);
      case CUDA_R_16F: return multiply<Half>(product);
      case CUDA_R_16BF: return multiply<BFloat16>(product);
      default: return multiply<float>(product);
    }
  };
  return standin::enqueue(stream, work) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

#define AG_SAME(name, result, parameters) static_assert(std::is_same_v<decltype(&name), result(*) parameters>);
AG_CUBLASLT_FUNCTIONS(AG_SAME)

}  // namespace autograph::cuda
