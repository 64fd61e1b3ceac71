// gather_elements and scatter_elements walk their indices line by line along the innermost axis. In a line either every
// index moves along it, or every element stays in its column and the index moves along another axis.
#pragma once

#include <cstdint>

#include "autograph/kernel.h"

namespace autograph {

/// The lines of the indices of a call with inputs (data, indices).
class IndexLines {
 public:
  explicit IndexLines(const KernelCall& call);
  int64_t extent() const { return extent_; }  ///< Of the data along the axis.
  int64_t length() const { return length_; }  ///< Indices in a line.
  int64_t count() const { return count_; }
  /// Lines that belong to one position of the axes before the indexed one: no two such groups meet in the data.
  int64_t group() const { return group_; }
  /// Elements between neighbours along the indexed axis of the data.
  int64_t stride() const { return stride_; }
  /// Elements by which neighbours in a line are apart before their indices count: 0 or 1.
  int64_t step() const { return step_; }
  /// Where in the data a line starts for indices of 0.
  int64_t start(int64_t line) const;

 private:
  struct Axis {
    int64_t extent, stride;
  };
  std::vector<Axis> outer_;  // of the indices, with the strides of the data; 0 for the indexed axis
  int64_t extent_ = 1, length_ = 1, count_ = 1, group_ = 1, stride_ = 1, step_ = 0;
};

}  // namespace autograph
