#include "training/held_out_split.h"

#include <filesystem>

#include "base/check.h"

namespace autograph {

HeldOutSplit hold_out(const DatasetPtr& dataset, uint64_t seed) {
  HeldOutSplit split{split_dataset(dataset, Split::train, kHeldOutShare, seed),
                     split_dataset(dataset, Split::test, kHeldOutShare, seed)};
  AG_CHECK_USER(split.held_out->size() > 0, ValueError,
                "[data] samples: expected enough to hold out a share of {}, got {} (predict takes any number)",
                kHeldOutShare, dataset->size());
  return split;
}

HeldOutSplit open_split(const std::string& path, uint64_t seed) {
  // Files are read once for both parts: a share of 1 is the whole of them.
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return hold_out(open_dataset(path, Split::test, {}, 1), seed);
  return {open_dataset(path, Split::train, {}, kHeldOutShare, seed),
          open_dataset(path, Split::test, {}, kHeldOutShare, seed)};
}

}  // namespace autograph
