// Which implementations oneDNN has for a kind of problem. To find out, descriptors of all of them must be made, which
// takes longer than to run a small layer. So it is asked once in a process for each kind.
#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <string>
#include <vector>

#include "base/function_ref.h"

namespace autograph::onednn {

/// A kind of problem: all that implementations look at, but of batch and space at most about how large they are. Where
/// one of the list is refused after all, another is made (see Candidates).
class ProblemKind {
 public:
  ProblemKind& add(int64_t number);
  ProblemKind& add(const dnnl::memory::dims& numbers);
  /// Within half a power of two, exactly up to 8.
  ProblemKind& add_magnitudes(const dnnl::memory::dims& extents);
  /// Which ops, with which numbers, and along which axes they broadcast.
  ProblemKind& add(const dnnl::post_ops& ops);

  const std::vector<int64_t>& key() const { return key_; }

 private:
  std::vector<int64_t> key_;
};

/// Names of the implementations for a kind of problem, best first: what `list` gave the first time.
std::vector<std::string> implementations_for(const ProblemKind& kind, FunctionRef<std::vector<std::string>()> list);

}  // namespace autograph::onednn
