// autograph with one device more, on which a kernel is wrong (support/kernels/planted_kernel.h): the linker has main()
// called through here (--wrap=main), so that the program itself knows nothing of it.
#include "support/kernels/planted_kernel.h"

// Names that the linker prescribes.
extern "C" int __real_main(int argc, char** argv);  // NOLINT(bugprone-reserved-identifier)

extern "C" int __wrap_main(int argc, char** argv) {  // NOLINT(bugprone-reserved-identifier)
  autograph::planted_device();
  return __real_main(argc, argv);
}
