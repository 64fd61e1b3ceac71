#include "backends/cpu/onednn/team/twin.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "backends/cpu/onednn/conv/convolution_turn.h"
#include "backends/cpu/onednn/cpu_engine.h"
#include "backends/cpu/onednn/team/team_scope.h"

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

// Whether a twin reads weights where `wide` has them, or has a layout of its own for them: how many channels lie
// together may follow from the number of threads.
enum class Weights : uint8_t { shared, repacked };

// Weights that come with sums for inputs below zero are no plain copy of each other in two layouts.
bool are_plain(const dnnl_memory_desc_t* weights) { return weights && weights->extra.flags == 0; }

bool has_weights_of(const Facts& twin, const Facts& wide, Weights weights) {
  const dnnl_memory_desc_t* own = twin.layout(dnnl_query_weights_md);
  const dnnl_memory_desc_t* given = wide.layout(dnnl_query_weights_md);
  return weights == Weights::shared ? is_same(own, given) : are_plain(own) && are_plain(given);
}

// Can a primitive stand in for `wide`: the same computation in memory that is laid out alike?
bool is_twin(const Facts& twin, const Facts& wide, Weights weights) {
  if (std::strcmp(twin.implementation(), wide.implementation()) != 0) return false;
  const bool has_layouts = is_same(twin.layout(dnnl_query_src_md), wide.layout(dnnl_query_src_md)) &&
                           is_same(twin.layout(dnnl_query_weights_md, 1), wide.layout(dnnl_query_weights_md, 1)) &&
                           is_same(twin.layout(dnnl_query_dst_md), wide.layout(dnnl_query_dst_md)) &&
                           is_same(twin.layout(dnnl_query_diff_src_md), wide.layout(dnnl_query_diff_src_md)) &&
                           is_same(twin.layout(dnnl_query_diff_weights_md), wide.layout(dnnl_query_diff_weights_md)) &&
                           is_same(twin.layout(dnnl_query_diff_dst_md), wide.layout(dnnl_query_diff_dst_md));
  return has_layouts && has_weights_of(twin, wide, weights) && twin.scratchpad_bytes() <= wide.scratchpad_bytes();
}

// Says in `wanted`, which left a layout open, what it became.
void settle(dnnl_memory_desc_t& wanted, const dnnl_memory_desc_t* became) {
  if (became && wanted.format_kind == dnnl_format_kind_any) wanted = *became;
}

// The operation of a primitive, with the layouts that it chose; those of repacked weights stay open.
union Operation {
  dnnl_primitive_kind_t kind;
  dnnl_convolution_desc_t convolution;  // and deconvolution
  dnnl_matmul_desc_t matmul;
  dnnl_inner_product_desc_t inner_product;
  dnnl_pooling_v2_desc_t pooling;
  dnnl_lrn_desc_t lrn;
};

template <class T>
void settle_all(T& operation, const Facts& wide, Weights weights) {
  settle(operation.src_desc, wide.layout(dnnl_query_src_md));
  settle(operation.dst_desc, wide.layout(dnnl_query_dst_md));
  if constexpr (requires { operation.weights_desc; }) {
    if (weights == Weights::shared) settle(operation.weights_desc, wide.layout(dnnl_query_weights_md));
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
void copy_settled(T& operation, const Facts& wide, Weights weights) {
  std::memcpy(&operation, wide.operation(), sizeof operation);
  settle_all(operation, wide, weights);
}

// Nothing for kinds that no kernel here uses.
std::optional<Operation> operation_of(const Facts& wide, Weights weights) {
  if (!wide.operation()) return std::nullopt;
  Operation operation{};
  switch (wide.kind()) {
    case dnnl_convolution:
    case dnnl_deconvolution: copy_settled(operation.convolution, wide, weights); break;
    case dnnl_matmul: copy_settled(operation.matmul, wide, weights); break;
    case dnnl_inner_product: copy_settled(operation.inner_product, wide, weights); break;
    case dnnl_pooling_v2: copy_settled(operation.pooling, wide, weights); break;
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
  return made && is_twin(Facts(made), wide, Weights::shared) ? description : Description();
}

Description description_like(const Facts& wide, Weights weights) {
  if (wide.kind() == dnnl_reorder) return reorder_like(wide);
  const std::optional<Operation> operation = operation_of(wide, weights);
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
    if (made && is_twin(Facts(made), wide, weights)) return description;
  } while (dnnl_primitive_desc_iterator_next(iterator) == dnnl_success);
  return {};
}

// Empty when oneDNN has none.
dnnl::primitive primitive_like(const Facts& wide, Weights weights) {
  const Description description = description_like(wide, weights);
  if (!description) return {};
  dnnl_primitive_t made = nullptr;
  if (dnnl_primitive_create(&made, description.get()) != dnnl_success) return {};
  dnnl::primitive twin;
  twin.reset(made);
  // oneDNN looks primitives that it keeps up by what they compute, and may give one of another implementation.
  return is_twin(facts_of(twin), wide, weights) ? twin : dnnl::primitive();
}

Twin repacked_twin(const Facts& wide, int threads) {
  dnnl::primitive primitive = primitive_like(wide, Weights::repacked);
  if (!primitive) return {threads};
  const dnnl::memory::desc given(*wide.layout(dnnl_query_weights_md));
  const dnnl::memory::desc own(*facts_of(primitive).layout(dnnl_query_weights_md));
  const dnnl::reorder::primitive_desc repack(cpu_engine(), given, cpu_engine(), own, {}, true);
  if (!repack) return {threads};
  return {threads, std::move(primitive), dnnl::reorder(repack), own};
}

}  // namespace

Twin make_twin(const dnnl::primitive& wide, int threads) {
  const TeamScope scope(threads);
  const Facts facts = facts_of(wide);
  if (dnnl::primitive primitive = primitive_like(facts, Weights::shared)) return {threads, std::move(primitive)};
  return repacked_twin(facts, threads);
}

}  // namespace autograph::onednn
