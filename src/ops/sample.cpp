#include "ops/sample.h"

#include "autograph/random.h"
#include "tensor/element_types.h"

namespace autograph {

int64_t draw(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

bool draw_bool(Random& random) { return draw(random, 0, 1) != 0; }

Dims draw_dims(Random& random, int64_t min_rank, int64_t max_rank, int64_t max_extent) {
  Dims dims(static_cast<size_t>(draw(random, min_rank, max_rank)));
  for (int64_t& d : dims) d = draw(random, 1, max_extent);
  return dims;
}

Tensor draw_tensor(Random& random, DType dtype, Dims dims, double low, double high) {
  Tensor tensor = Tensor::empty(dtype, std::move(dims));
  std::uniform_real_distribution<double> distribution(low, high);
  dispatch<Concat<NumericTypes, SmallTypes, TypeList<bool>>>(dtype, [&]<class T>(TypeTag<T>) {
    T* elements = tensor.mutable_data<T>();
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        elements[i] = draw_bool(random);
      } else if constexpr (kIsFloat<T>) {
        elements[i] = T(static_cast<float>(distribution(random)));
      } else {
        const bool is_unsigned = std::is_unsigned_v<T>;
        elements[i] =
            T(draw(random, is_unsigned && low < 0 ? 0 : static_cast<int64_t>(low), static_cast<int64_t>(high)));
      }
    }
  });
  return tensor;
}

OpSample sample_unary(Random& random) { return {.inputs = {draw_tensor(random, DType::f32, draw_dims(random))}}; }

Dims draw_broadcastable(Random& random, const Dims& dims) {
  Dims result(dims.begin() + draw(random, 0, static_cast<int64_t>(dims.size())), dims.end());
  for (int64_t& d : result) {
    if (draw(random, 0, 3) == 0) d = 1;
  }
  return result;
}

OpSample sample_binary(Random& random) {
  const Dims dims = draw_dims(random);
  return {.inputs = {draw_tensor(random, DType::f32, dims),
                     draw_tensor(random, DType::f32, draw_broadcastable(random, dims))}};
}

}  // namespace autograph
