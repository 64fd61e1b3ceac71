#include "tensor/change_tensors.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace autograph {
namespace {

constexpr auto kIsWide = [](const Tensor& tensor) { return tensor.num_elements() > 1; };
constexpr auto kZeros = [](const Tensor& tensor) { return Tensor::zeros(tensor.dtype(), tensor.dims()); };

Datum list_of_three() {
  return std::vector<Datum>{Tensor::scalar(1.0F), Tensor::of<float>({2}, {2, 3}),
                            Datum(std::vector<Datum>{Tensor::of<float>({2}, {4, 5})})};
}

TEST(ChangeTensors, ChangesThoseThatDiffer) {
  const Datum list = list_of_three();
  const Datum changed = change_tensors(list, kIsWide, kZeros);
  EXPECT_EQ(changed.sequence()[0].tensor().to_f64(), std::vector<double>{1});
  EXPECT_EQ(changed.sequence()[1].tensor().to_f64(), (std::vector<double>{0, 0}));
  EXPECT_EQ(changed.sequence()[2].sequence()[0].tensor().to_f64(), (std::vector<double>{0, 0}));
  EXPECT_EQ(list.sequence()[1].tensor().to_f64(), (std::vector<double>{2, 3})) << "someone else holds it";
}

TEST(ChangeTensors, CopiesNoListForNothing) {
  const Datum list = list_of_three();
  const Datum same = change_tensors(
      list, [](const Tensor&) { return false; }, kZeros);
  EXPECT_EQ(&same.sequence(), &list.sequence());
  Datum own = list_of_three();
  const Datum* const elements = own.sequence().data();
  EXPECT_EQ(change_tensors(std::move(own), kIsWide, kZeros).sequence().data(), elements);
  EXPECT_FALSE(change_tensors(Datum(), kIsWide, kZeros).is_present());
}

}  // namespace
}  // namespace autograph
