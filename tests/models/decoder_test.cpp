// The decoder's step continues what its prompt began: same weights, positions and caches.
#include <gtest/gtest.h>

#include "autograph/compare_values.h"
#include "autograph/compile.h"
#include "autograph/zoo.h"

namespace autograph {
namespace {

// `tensor` without its last element of axis 2.
Tensor without_last(const Tensor& tensor) {
  const Dims& dims = tensor.dims();
  const int64_t rows = dims[0] * dims[1];
  std::vector<float> elements;
  for (int64_t row = 0; row < rows; ++row) {
    const float* begin = tensor.data<float>() + row * dims[2] * dims[3];
    elements.insert(elements.end(), begin, begin + (dims[2] - 1) * dims[3]);
  }
  return Tensor::of<float>({dims[0], dims[1], dims[2] - 1, dims[3]}, elements);
}

TEST(Decoder, StepContinuesThePrompt) {
  const Executable prompt = compile(build_zoo_model("decoder"), {});
  const Executable step = compile(build_zoo_model("decoder_step"), {});
  std::vector<int64_t> ids(128);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * 37 % 16384);
  const Outputs whole = prompt.run({Tensor::of<int64_t>({1, 128}, ids)});
  std::vector<Datum> inputs = {Tensor::of<int64_t>({1, 1}, {ids.back()})};
  for (size_t k = 1; k < whole.size(); ++k) inputs.emplace_back(without_last(whole[k].tensor()));
  const Outputs next = step.run(inputs);
  ASSERT_EQ(next.size(), whole.size());
  const Tensor logits = whole["logits"];
  const int64_t words = logits.dims()[2];
  const float* last = logits.data<float>() + 127 * words;
  const Tensor expected = Tensor::of<float>({1, 1, words}, std::vector<float>(last, last + words));
  EXPECT_TRUE(compare_all({next["logits"]}, {expected}, {}).ok);
  for (size_t k = 1; k < whole.size(); ++k) EXPECT_TRUE(compare_all({next[k]}, {whole[k]}, {}).ok) << "cache " << k;
}

}  // namespace
}  // namespace autograph
