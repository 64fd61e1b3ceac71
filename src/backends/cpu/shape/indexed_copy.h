// Copies in which every output position along an axis has its own input position: repeated, mirrored or left out.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/tensor.h"

namespace autograph {

/// Such a copy of elements of any fixed size, with its tables.
class IndexedCopy {
 public:
  /// positions[a][i]: where along axis a of the input, of dims `in`, output position i comes from; negative: from
  /// nowhere.
  IndexedCopy(const Dims& in, const std::vector<std::vector<int64_t>>& positions, size_t element_bytes, int threads);
  /// `fill` is the element for positions that come from nowhere; null when there are none.
  void run(const void* in, void* out, const void* fill = nullptr) const;

 private:
  /// A stretch of the innermost axis: one block of the input, elements one by one, or filled.
  enum class Way { block, gathered, filled };
  struct Segment {
    Way way;
    int64_t begin, end;
  };

  void find_segments();
  /// Where the rows of a block begin, a block being what the axes before the last outer one count; -1: nowhere.
  int64_t block_start(int64_t block) const;
  void double_rows(const uint32_t* in, uint32_t* out, int64_t begin, int64_t end) const;
  void copy_share(const char* in, char* out, const char* fill, int64_t begin, int64_t end) const;
  void copy_row(const char* in, char* out, const char* fill, int64_t begin, int64_t end) const;
  void gather(const char* in, char* out, int64_t begin, int64_t end) const;
  void fill_units(char* out, const char* fill, int64_t units) const;

  size_t element_bytes_;
  int64_t unit_bytes_;                       // of what moves as one: an element, or the innermost axes left alone
  std::vector<std::vector<int64_t>> outer_;  // units from the start of the input; -1: filled
  std::vector<int64_t> row_;                 // the same for the innermost axis
  std::vector<Segment> segments_;            // of row_
  bool doubles_ = false;                     // row_ is 0, 0, 1, 1, .. of words
  bool doubles_rows_ = false;                // and so are the rows of a block
  int64_t units_ = 1;                        // in the output
  int threads_ = 1;
};

}  // namespace autograph
