// TIFF, by libtiff: the first image of the file, whatever its compression, as 8-bit RGB.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "ops/image/image_decoder.h"

#ifdef AG_HAS_TIFF
#include <tiffio.h>
#endif

namespace autograph {

#ifdef AG_HAS_TIFF
namespace {

struct Source {
  std::span<const uint8_t> bytes;
  uint64_t at = 0;
};

tmsize_t take_bytes(thandle_t handle, void* out, tmsize_t count) {
  auto* source = static_cast<Source*>(handle);
  const uint64_t left = source->bytes.size() - std::min<uint64_t>(source->at, source->bytes.size());
  const auto taken = static_cast<size_t>(std::min<uint64_t>(left, static_cast<uint64_t>(std::max<tmsize_t>(count, 0))));
  if (taken > 0) std::memcpy(out, source->bytes.data() + source->at, taken);
  source->at += taken;
  return static_cast<tmsize_t>(taken);
}

tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return 0; }

toff_t seek(thandle_t handle, toff_t offset, int whence) {
  auto* source = static_cast<Source*>(handle);
  const uint64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? source->at : source->bytes.size();
  source->at = from + offset;
  return source->at;
}

int close_nothing(thandle_t) { return 0; }
toff_t size_of(thandle_t handle) { return static_cast<Source*>(handle)->bytes.size(); }
void stay_silent(const char*, const char*, va_list) {}

struct Closer {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};

}  // namespace

bool read_tiff(std::span<const uint8_t> bytes, const PixelSink& sink) {
  // The library's handlers are the process's; both write to the standard error otherwise.
  [[maybe_unused]] static const bool silent = [] {
    TIFFSetErrorHandler(stay_silent);
    TIFFSetWarningHandler(stay_silent);
    return true;
  }();
  Source source{bytes};
  const std::unique_ptr<TIFF, Closer> tiff(TIFFClientOpen("image", "rm", &source, take_bytes, write_nothing, seek,
                                                          close_nothing, size_of, nullptr, nullptr));
  uint32_t width = 0;
  uint32_t height = 0;
  if (!tiff || !TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) ||
      !TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) || !is_sane_extent(height, width)) {
    return false;
  }
  uint8_t* out = sink(height, width);
  std::vector<uint32_t> pixels(size_t{height} * width);
  constexpr int kStopAtErrors = 1;
  if (!TIFFReadRGBAImageOriented(tiff.get(), width, height, pixels.data(), ORIENTATION_TOPLEFT, kStopAtErrors)) {
    return false;
  }
  for (size_t i = 0; i < pixels.size(); ++i) {
    out[3 * i] = TIFFGetR(pixels[i]);
    out[3 * i + 1] = TIFFGetG(pixels[i]);
    out[3 * i + 2] = TIFFGetB(pixels[i]);
  }
  return true;
}
#else
bool read_tiff(std::span<const uint8_t>, const PixelSink&) { throw_no_decoder("TIFF", "libtiff-dev"); }
#endif

}  // namespace autograph
