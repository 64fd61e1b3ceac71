// What is learned from and what is held out.
#include "autograph/data.h"
#include "base/check.h"
#include "base/printable.h"
#include "data/find_set.h"

namespace autograph {
namespace {

void check_held_out(const HeldOutSplit& split) {
  AG_CHECK_USER(split.held_out->size() > 0, ValueError,
                "[data] samples: expected enough to hold out a share of {}, got {} (predict takes any number)",
                kHeldOutShare, split.training->size());
}

}  // namespace

HeldOutSplit hold_out(const DatasetPtr& dataset, uint64_t seed) {
  HeldOutSplit split{split_dataset(dataset, Split::train, kHeldOutShare, seed),
                     split_dataset(dataset, Split::test, kHeldOutShare, seed)};
  check_held_out(split);
  return split;
}

HeldOutSplit open_split(const std::string& path, uint64_t seed, const ImageSize& size) {
  const FoundSet found = find_set(path, {}, size);
  if (found.whole) return hold_out(found.whole, seed);
  AG_CHECK_USER(found.train && found.test, ValueError,
                "[data] '{}': expected samples to learn from and samples to hold out, got the {} alone",
                printable(path), found.train ? "former" : "latter");
  const HeldOutSplit split{found.train, found.test};
  check_held_out(split);
  return split;
}

}  // namespace autograph
