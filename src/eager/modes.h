// What the scopes of eager.h set for the calling thread.
#pragma once

#include <cstdint>

#include "autograph/device.h"
#include "autograph/source_line.h"

namespace autograph {

class Recording;

struct EagerModes {
  bool records = true;                ///< False inside NoGrad.
  bool checks_finite = false;         ///< Inside CheckFinite.
  bool keeps_lines = false;           ///< Inside SourceLines.
  const SourceLine* place = nullptr;  ///< Of the innermost SourceScope.
  Recording* capture = nullptr;       ///< The function that is being captured.
  const Device* device = nullptr;     ///< Null: "cpu".
  int threads = 0;                    ///< At most; 0: usable_cpu_count().
};

/// Those of the calling thread.
EagerModes& modes();

/// Sets whether ops are put on record, while it lives.
class RecordScope {
 public:
  explicit RecordScope(bool records) : previous_(modes().records) { modes().records = records; }
  ~RecordScope() { modes().records = previous_; }
  RecordScope(const RecordScope&) = delete;
  RecordScope& operator=(const RecordScope&) = delete;

 private:
  bool previous_;
};

}  // namespace autograph
