// WebP, by libwebp: lossy and lossless still images.
#include "ops/image/image_decoder.h"

#ifdef AG_HAS_WEBP
#include <webp/decode.h>
#endif

namespace autograph {

#ifdef AG_HAS_WEBP
bool read_webp(std::span<const uint8_t> bytes, const PixelSink& sink) {
  int width = 0;
  int height = 0;
  if (!WebPGetInfo(bytes.data(), bytes.size(), &width, &height) || !is_sane_extent(height, width)) return false;
  uint8_t* out = sink(height, width);
  const size_t size = size_t{3} * static_cast<size_t>(height) * static_cast<size_t>(width);
  return WebPDecodeRGBInto(bytes.data(), bytes.size(), out, size, 3 * width) != nullptr;
}
#else
bool read_webp(std::span<const uint8_t>, const PixelSink&) { throw_no_decoder("WebP", "libwebp-dev"); }
#endif

}  // namespace autograph
