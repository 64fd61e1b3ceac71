// Random strings for samples.
#pragma once

#include <string>

#include "ops/sample.h"

namespace autograph {

/// Short strings of words in mixed case, some of them empty.
inline Tensor draw_strings(Random& random, Dims dims) {
  Tensor tensor = Tensor::zeros(DType::string, std::move(dims));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    std::string& text = tensor.mutable_data<std::string>()[i];
    const int64_t words = draw(random, 0, 3);
    for (int64_t w = 0; w < words; ++w) {
      if (w > 0) text += ' ';
      text += draw_one_of<const char*>(random, {"a", "B", "Cd", "the", "Graph"});
    }
  }
  return tensor;
}

}  // namespace autograph
