// A primitive for fewer threads that stands in for another: see team_primitive.h.
#pragma once

#include <dnnl.hpp>

namespace autograph::onednn {

struct Twin {
  int threads = 0;
  dnnl::primitive primitive = {};   ///< Empty: oneDNN has none.
  dnnl::primitive repack = {};      ///< From the weights of the other to its own; empty: it reads the same.
  dnnl::memory::desc weights = {};  ///< Its own, with `repack`.
};

/// The same implementation as `wide` on the same layouts; those of the weights may differ.
Twin make_twin(const dnnl::primitive& wide, int threads);

}  // namespace autograph::onednn
