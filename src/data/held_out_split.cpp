// What is learned from and what is held out.
#include <filesystem>

#include "autograph/data.h"
#include "base/check.h"

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
  // Files are read once for both parts: a share of 1 is the whole of them.
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return hold_out(open_dataset(path, Split::test, {}, 1), seed);
  HeldOutSplit split{open_dataset(path, Split::train, {}, kHeldOutShare, seed, size),
                     open_dataset(path, Split::test, {}, kHeldOutShare, seed, size)};
  check_held_out(split);
  return split;
}

}  // namespace autograph
