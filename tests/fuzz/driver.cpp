// Entry point of the fuzz targets: libFuzzer's when AG_LIBFUZZER is set, else a program that replays files, so that
// what was once found stays found as an ordinary test.
#include <cstddef>
#include <cstdint>

#include "autograph/error.h"
#include "fuzz/target.h"

namespace {

void run_one(std::string_view bytes) {
  try {
    autograph::fuzz::run(bytes);
  } catch (const autograph::UserError&) {
  } catch (const autograph::UnsupportedError&) {
  }
}

}  // namespace

#ifdef AG_LIBFUZZER

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  run_one({reinterpret_cast<const char*>(data), size});
  return 0;
}

#else

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

// Arguments are files or folders of files.
int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  size_t count = 0;
  const auto replay = [&count](const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    run_one(bytes);
    // Shortened and damaged copies are cheap relatives of the case.
    for (size_t step = 1; step < 16; ++step) run_one(std::string_view(bytes).substr(0, bytes.size() * step / 16));
    for (size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 64) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
      run_one(damaged);
    }
    ++count;
  };
  for (int i = 1; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) {
      replay(argv[i]);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(argv[i])) {
      if (entry.is_regular_file()) replay(entry.path());
    }
  }
  std::printf("%zu files replayed\n", count);
  return 0;
}

#endif
