// Labels as files have them, words or numbers, and the classes that they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace autograph {

/// Classes of labels.
struct LabelClasses {
  std::vector<int64_t> labels;     ///< A class for each word.
  std::vector<std::string> names;  ///< Of the classes.
};

/// Numbers 0, 1, ... (below 65,536) as they stand when all words are such, otherwise places among the sorted words.
LabelClasses find_classes(const std::vector<std::string>& words);

}  // namespace autograph
