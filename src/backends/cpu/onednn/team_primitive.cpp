#include "backends/cpu/onednn/team_primitive.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/onednn/conv/convolution_turn.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/threads/thread_limit.h"
#include "base/check.h"

namespace autograph::onednn {
namespace {

using Description = dnnl::handle<dnnl_primitive_desc_t>;

// What oneDNN tells about a primitive, all of it owned by the primitive.
class Facts {
 public:
  explicit Facts(const_dnnl_primitive_desc_t description) : description_(description) {}

  dnnl_primitive_kind_t kind() const { return query<dnnl_primitive_kind_t>(dnnl_query_primitive_kind); }
  const char* implementation() const { return query<const char*>(dnnl_query_impl_info_str); }
  const_dnnl_op_desc_t operation() const { return query<const_dnnl_op_desc_t>(dnnl_query_op_d); }
  const dnnl_memory_desc_t* layout(dnnl_query_t which, int index = 0) const {
    return dnnl_primitive_desc_query_md(description_, which, index);
  }
  const_dnnl_primitive_attr_t attributes() const {
    const_dnnl_primitive_attr_t attributes = nullptr;
    dnnl_primitive_desc_get_attr(description_, &attributes);
    return attributes;
  }
  size_t scratchpad_bytes() const {
    const dnnl_memory_desc_t* layout = this->layout(dnnl_query_scratchpad_md);
    return layout ? dnnl_memory_desc_get_size(layout) : 0;
  }

 private:
  template <class T>
  T query(dnnl_query_t what) const {
    T value{};
    dnnl_primitive_desc_query(description_, what, 0, &value);
    return value;
  }

  const_dnnl_primitive_desc_t description_;
};

Facts facts_of(const dnnl::primitive& primitive) {
  const_dnnl_primitive_desc_t description = nullptr;
  dnnl_primitive_get_primitive_desc(primitive.get(), &description);
  return Facts(description);
}

bool is_same(const dnnl_memory_desc_t* a, const dnnl_memory_desc_t* b) {
  return a == b || (a && b && dnnl_memory_desc_equal(a, b) != 0);
}

// Can a primitive stand in for `wide`: the same computation in memory that is laid out alike?
bool is_twin(const Facts& twin, const Facts& wide) {
  if (std::strcmp(twin.implementation(), wide.implementation()) != 0) return false;
  const bool has_layouts = is_same(twin.layout(dnnl_query_src_md), wide.layout(dnnl_query_src_md)) &&
                           is_same(twin.layout(dnnl_query_weights_md), wide.layout(dnnl_query_weights_md)) &&
                           is_same(twin.layout(dnnl_query_weights_md, 1), wide.layout(dnnl_query_weights_md, 1)) &&
                           is_same(twin.layout(dnnl_query_dst_md), wide.layout(dnnl_query_dst_md)) &&
                           is_same(twin.layout(dnnl_query_diff_src_md), wide.layout(dnnl_query_diff_src_md)) &&
                           is_same(twin.layout(dnnl_query_diff_weights_md), wide.layout(dnnl_query_diff_weights_md)) &&
                           is_same(twin.layout(dnnl_query_diff_dst_md), wide.layout(dnnl_query_diff_dst_md));
  return has_layouts && twin.scratchpad_bytes() <= wide.scratchpad_bytes();
}

// Says in `wanted`, which left a layout open, what it became.
void settle(dnnl_memory_desc_t& wanted, const dnnl_memory_desc_t* became) {
  if (became && wanted.format_kind == dnnl_format_kind_any) wanted = *became;
}

// The operation of a primitive, with the layouts that it chose.
union Operation {
  dnnl_primitive_kind_t kind;
  dnnl_convolution_desc_t convolution;  // and deconvolution
  dnnl_matmul_desc_t matmul;
  dnnl_inner_product_desc_t inner_product;
  dnnl_pooling_v2_desc_t pooling;
  dnnl_lrn_desc_t lrn;
};

template <class T>
void settle_all(T& operation, const Facts& wide) {
  settle(operation.src_desc, wide.layout(dnnl_query_src_md));
  settle(operation.dst_desc, wide.layout(dnnl_query_dst_md));
  if constexpr (requires { operation.weights_desc; }) {
    settle(operation.weights_desc, wide.layout(dnnl_query_weights_md));
    settle(operation.bias_desc, wide.layout(dnnl_query_weights_md, 1));
  }
  if constexpr (requires { operation.diff_weights_desc; }) {
    settle(operation.diff_src_desc, wide.layout(dnnl_query_diff_src_md));
    settle(operation.diff_weights_desc, wide.layout(dnnl_query_diff_weights_md));
    settle(operation.diff_dst_desc, wide.layout(dnnl_query_diff_dst_md));
  }
}

// Sets `operation`, a member of an Operation, to that of the primitive.
template <class T>
void copy_settled(T& operation, const Facts& wide) {
  std::memcpy(&operation, wide.operation(), sizeof operation);
  settle_all(operation, wide);
}

// Nothing for kinds that no kernel here uses.
std::optional<Operation> operation_of(const Facts& wide) {
  if (!wide.operation()) return std::nullopt;
  Operation operation{};
  switch (wide.kind()) {
    case dnnl_convolution:
    case dnnl_deconvolution: copy_settled(operation.convolution, wide); break;
    case dnnl_matmul: copy_settled(operation.matmul, wide); break;
    case dnnl_inner_product: copy_settled(operation.inner_product, wide); break;
    case dnnl_pooling_v2: copy_settled(operation.pooling, wide); break;
    case dnnl_lrn: std::memcpy(&operation.lrn, wide.operation(), sizeof operation.lrn); break;
    default: return std::nullopt;
  }
  return operation;
}

Description reorder_like(const Facts& wide) {
  dnnl_primitive_desc_t made = nullptr;
  dnnl_reorder_primitive_desc_create(&made, wide.layout(dnnl_query_src_md), cpu_engine().get(),
                                     wide.layout(dnnl_query_dst_md), cpu_engine().get(), wide.attributes());
  Description description(made);
  return made && is_twin(Facts(made), wide) ? description : Description();
}

Description description_like(const Facts& wide) {
  if (wide.kind() == dnnl_reorder) return reorder_like(wide);
  const std::optional<Operation> operation = operation_of(wide);
  if (!operation) return {};
  std::optional<ConvolutionTurn> turn;
  if (wide.kind() == dnnl_convolution || wide.kind() == dnnl_deconvolution) {
    turn.emplace(static_cast<DataType>(wide.layout(dnnl_query_weights_md)->data_type));
  }
  dnnl_primitive_desc_iterator_t iterator = nullptr;
  if (dnnl_primitive_desc_iterator_create(&iterator, &*operation, wide.attributes(), cpu_engine().get(), nullptr) !=
      dnnl_success) {
    return {};
  }
  const dnnl::handle<dnnl_primitive_desc_iterator_t> owner(iterator);
  do {
    dnnl_primitive_desc_t made = dnnl_primitive_desc_iterator_fetch(iterator);
    Description description(made);
    if (made && is_twin(Facts(made), wide)) return description;
  } while (dnnl_primitive_desc_iterator_next(iterator) == dnnl_success);
  return {};
}

// Empty when oneDNN has none.
dnnl::primitive make_twin(const dnnl::primitive& wide, int threads) {
  const TeamScope scope(threads);
  const Facts facts = facts_of(wide);
  const Description description = description_like(facts);
  if (!description) return {};
  dnnl_primitive_t made = nullptr;
  if (dnnl_primitive_create(&made, description.get()) != dnnl_success) return {};
  dnnl::primitive twin;
  twin.reset(made);
  // oneDNN looks primitives that it keeps up by what they compute, and may give one of another implementation.
  return is_twin(facts_of(twin), facts) ? twin : dnnl::primitive();
}

// oneDNN's C interface takes plain arrays of arguments; the C++ one builds a map on every call.
void run(const dnnl::primitive& primitive, const dnnl::stream& stream, std::span<const dnnl_exec_arg_t> args) {
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(args.size()), args.data());
  AG_CHECK(status == dnnl_success, "oneDNN execute gave status {}", static_cast<int>(status));
}

}  // namespace

int threads_in_use() {
  const int threads = set_cpu_threads(1);
  set_cpu_threads(threads);
  return threads;
}

TeamScope::TeamScope(int threads) : before_(set_cpu_threads(threads)) {}
TeamScope::~TeamScope() { set_cpu_threads(before_); }

TeamPrimitive::TeamPrimitive(dnnl::primitive primitive)
    : primitive_(std::move(primitive)), threads_(threads_in_use()) {}

std::shared_ptr<const TeamPrimitive::Twin> TeamPrimitive::twin_for(int threads) const {
  const std::lock_guard lock(last_->mutex);
  if (!last_->twin || last_->twin->threads != threads) {
    last_->twin = std::make_shared<const Twin>(Twin{threads, make_twin(primitive_, threads)});
  }
  return last_->twin;
}

void TeamPrimitive::execute(const dnnl::stream& stream, std::span<const dnnl_exec_arg_t> args) const {
  const int threads = threads_allowed(threads_);
  if (threads < threads_) {
    const std::shared_ptr<const Twin> twin = twin_for(threads);
    if (twin->primitive) {
      const TeamScope scope(threads);
      run(twin->primitive, stream, args);
      return;
    }
  }
  run(primitive_, stream, args);
}

}  // namespace autograph::onednn
