// Layouts other than row-major in which every element of memory is one of the tensor.
#pragma once

#include <vector>

#include "autograph/layout.h"
#include "autograph/shape.h"

namespace autograph {

/// Those that tensors of such dims may have: padding would have to stay zero, which not every formula gives.
inline std::vector<Layout> unpadded_layouts(const Dims& dims) {
  std::vector<Layout> layouts;
  for (const Layout layout : {Layout::channels_last, Layout::blocked8, Layout::blocked16}) {
    if (fits_rank(layout, dims.size()) && dims[1] % channel_block(layout) == 0) layouts.push_back(layout);
  }
  return layouts;
}

}  // namespace autograph
