// Inputs whose elements a kernel needs when it is prepared.
#pragma once

#include <initializer_list>
#include <string>

#include "autograph/kernel.h"

namespace autograph {

/// "" when the elements of all given inputs among `slots` are known now, else "<what> that are computed".
inline std::string why_not_known(const KernelCall& call, std::initializer_list<size_t> slots, const std::string& what) {
  for (const size_t slot : slots) {
    if (call.has_input(slot) && !call.constant(slot)) return what + " that are computed";
  }
  return "";
}

/// The known elements of input `slot`; absent when there are none.
inline TensorView known_input(const KernelCall& call, size_t slot) {
  const Tensor* constant = call.constant(slot);
  return constant ? constant->view() : TensorView();
}

}  // namespace autograph
