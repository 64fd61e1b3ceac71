# Writes OUTPUT, a C++ source with a hash over the files named in LIST (a file, one path a line) and the text in FLAGS.
# What was found out about one build's kernels holds for no other.
file(STRINGS ${LIST} sources)
set(all "${FLAGS}")
foreach(source ${sources})
  file(SHA256 ${source} hash)
  string(APPEND all "${hash}")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "// Generated from the library's sources.
#include \"cost/verdicts.h\"

namespace autograph {

std::string build_hash() { return \"${hash}\"; }

}  // namespace autograph
")
