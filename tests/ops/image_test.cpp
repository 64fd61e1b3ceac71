// Image decoding: pixels of every format, and what damaged files give.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "ops/defs.h"
#include "ops/image/image_decoder.h"

namespace autograph {
namespace {

using namespace std::string_view_literals;
using Pixels = std::vector<uint8_t>;

// Nothing where the file cannot be decoded.
std::optional<Pixels> decode(ImageReader read, std::string_view file) {
  Pixels pixels;
  const auto sink = [&pixels](int64_t height, int64_t width) {
    if (height * width > 1 << 20) throw BudgetError("too large");
    pixels.resize(static_cast<size_t>(3 * height * width));
    return pixels.data();
  };
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  try {
    if (!read(bytes, sink)) return std::nullopt;
  } catch (const UnsupportedError&) {
    return std::nullopt;  // a build without the library
  } catch (const BudgetError&) {
    return std::nullopt;  // a damaged header
  }
  return pixels;
}

// Two rows of three pixels, written by Pillow in the lossless formats.
const Pixels kPixels{255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 200, 100, 50, 7, 7, 7};

constexpr std::string_view kBmp =
    "\102\115\116\000\000\000\000\000\000\000\066\000\000\000\050\000\000\000\003\000\000\000\002\000"
    "\000\000\001\000\030\000\000\000\000\000\030\000\000\000\304\016\000\000\304\016\000\000\000\000"
    "\000\000\000\000\000\000\036\024\012\062\144\310\007\007\007\000\000\000\000\000\377\000\377\000"
    "\377\000\000\000\000\000"sv;
constexpr std::string_view kPng =
    "\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\003\000\000\000\002"
    "\010\002\000\000\000\022\026\361\115\000\000\000\027\111\104\101\124\170\234\143\370\317\300\300"
    "\000\301\134\042\162\047\122\214\330\331\331\001\066\111\004\255\253\030\226\341\000\000\000\000"
    "\111\105\116\104\256\102\140\202"sv;
constexpr std::string_view kWebp =
    "\122\111\106\106\106\000\000\000\127\105\102\120\126\120\070\114\072\000\000\000\057\002\100\000"
    "\000\057\100\044\100\002\311\344\067\377\237\361\206\202\266\155\230\276\035\376\200\106\155\152"
    "\002\020\140\270\024\130\375\223\232\377\000\177\220\017\131\251\147\147\040\020\240\214\025\017"
    "\154\023\321\377\030\057"sv;
constexpr std::string_view kTiff =
    "\111\111\052\000\034\000\000\000\000\377\376\000\000\377\376\000\000\377\005\012\024\036\310\144"
    "\062\376\007\000\012\000\000\001\003\000\001\000\000\000\003\000\000\000\001\001\003\000\001\000"
    "\000\000\002\000\000\000\002\001\003\000\003\000\000\000\232\000\000\000\003\001\003\000\001\000"
    "\000\000\005\200\000\000\006\001\003\000\001\000\000\000\002\000\000\000\021\001\004\000\001\000"
    "\000\000\010\000\000\000\025\001\003\000\001\000\000\000\003\000\000\000\026\001\003\000\001\000"
    "\000\000\002\000\000\000\027\001\004\000\001\000\000\000\023\000\000\000\034\001\003\000\001\000"
    "\000\000\001\000\000\000\000\000\000\000\010\000\010\000\010\000"sv;
constexpr std::string_view kJpeg2000 =
    "\377\117\377\121\000\057\000\000\000\000\000\003\000\000\000\002\000\000\000\000\000\000\000\000"
    "\000\000\000\003\000\000\000\002\000\000\000\000\000\000\000\000\000\003\007\001\001\007\001\001"
    "\007\001\001\377\122\000\014\000\000\000\001\000\001\004\004\000\001\377\134\000\007\100\100\110"
    "\110\120\377\144\000\045\000\001\103\162\145\141\164\145\144\040\142\171\040\117\160\145\156\112"
    "\120\105\107\040\166\145\162\163\151\157\156\040\062\056\065\056\064\377\220\000\012\000\000\000"
    "\000\000\117\000\001\377\223\317\264\014\013\364\053\307\324\006\011\051\177\337\200\030\007\035"
    "\117\303\352\001\237\200\044\374\300\200\004\012\175\107\177\004\057\317\300\012\076\320\070\374"
    "\000\200\002\343\011\051\177\005\227\303\352\001\237\200\034\176\000\100\010\013\257\244\004\057"
    "\377\331"sv;

struct Example {
  const char* format;
  ImageReader read;
  std::string_view file;
  size_t trailer = 0;  // bytes at the end that hold no pixels
};

const Example kExamples[] = {
    {"bmp", read_bmp, kBmp},
    {"png", read_png, kPng},
    {"webp", read_webp, kWebp},
    {"tiff", read_tiff, kTiff},
    {"jpeg2000", read_jpeg2000, kJpeg2000, 2},
    {"pnm", read_pnm, "P3 # text\n3 2\n255\n255 0 0 0 255 0 0 0 255\n10 20 30 200 100 50 7 7 7\n", 1}};

// Is the library of this reader in the build?
bool is_built(const Example& example) {
  Pixels pixels(1024);
  try {
    example.read({reinterpret_cast<const uint8_t*>(example.file.data()), example.file.size()},
                 [&pixels](int64_t, int64_t) { return pixels.data(); });
  } catch (const UnsupportedError&) {
    return false;
  }
  return true;
}

TEST(ImageDecoder, ReadsLosslessFormatsExactly) {
  for (const Example& example : kExamples) {
    if (!is_built(example)) continue;
    EXPECT_EQ(decode(example.read, example.file), kPixels) << example.format;
  }
}

TEST(ImageDecoder, RefusesCutOffFiles) {
  for (const Example& example : kExamples) {
    for (size_t size = 2; size < example.file.size(); ++size) {
      const std::string cut(example.file.substr(0, size));  // on the heap, so that sanitizers see its end
      const auto pixels = decode(example.read, cut);
      const bool only_trailer = size + example.trailer >= example.file.size();
      EXPECT_TRUE(only_trailer || !pixels) << example.format << ", " << size << " bytes";
    }
  }
}

TEST(ImageDecoder, DamagedFilesNeverCrash) {
  std::mt19937 random(7);
  for (const Example& example : kExamples) {
    for (int round = 0; round < 300; ++round) {
      std::string file(example.file);
      for (int k = 0; k < 3; ++k) file[2 + random() % (file.size() - 2)] = static_cast<char>(random());
      decode(example.read, file);
    }
  }
}

TEST(ImageDecoder, ReadsEveryPortableFormat) {
  const Pixels two{255, 255, 255, 0, 0, 0};
  EXPECT_EQ(decode(read_pnm, "P1\n2 1\n01"), two);
  EXPECT_EQ(decode(read_pnm, "P2\n2 1\n15\n15 0"), two);
  EXPECT_EQ(decode(read_pnm, "P4\n2 1\n\x7f"), two);
  EXPECT_EQ(decode(read_pnm, "P5\n2 1\n65535\n\xff\xff\0\0"sv), two);
  EXPECT_EQ(decode(read_pnm, "P6\n2 1\n255\n\xff\xff\xff\0\0\0"sv), two);
  EXPECT_EQ(decode(read_pnm, "P6\n2 1\n255\n\xff\xff\xff\0\0"sv), std::nullopt);
  EXPECT_EQ(decode(read_pnm, "P6\n99999999 99999999\n255\n\xff"sv), std::nullopt);
}

// A bitmap of 2 x 1 pixels with that depth and compression.
std::string bitmap(uint8_t bits, uint8_t compression, std::string_view palette, std::string_view pixels) {
  std::string file = "BM";
  const auto put = [&file](uint32_t value, int size) {
    for (int i = 0; i < size; ++i) file += static_cast<char>(value >> (8 * i));
  };
  for (const uint32_t value : {0U, 0U, static_cast<uint32_t>(54 + palette.size()), 40U, 2U, 1U}) put(value, 4);
  put(1, 2);
  put(bits, 2);
  put(compression, 4);
  for (int i = 0; i < 3; ++i) put(0, 4);
  put(static_cast<uint32_t>(palette.size() / 4), 4);
  put(0, 4);
  return file.append(palette).append(pixels);
}

TEST(ImageDecoder, ReadsEveryKindOfBitmap) {
  const Pixels two{1, 2, 3, 4, 5, 6};
  const auto palette = "\3\2\1\0\6\5\4\0"sv;
  EXPECT_EQ(decode(read_bmp, bitmap(1, 0, palette, "\x40\0\0\0"sv)), two);
  EXPECT_EQ(decode(read_bmp, bitmap(4, 0, palette, "\x01\0\0\0"sv)), two);
  EXPECT_EQ(decode(read_bmp, bitmap(8, 0, palette, "\0\1\0\0"sv)), two);
  EXPECT_EQ(decode(read_bmp, bitmap(8, 1, palette, "\1\0\1\1\0\1"sv)), two);                         // runs
  EXPECT_EQ(decode(read_bmp, bitmap(8, 1, palette, "\0\2\0\1\0\1"sv)), (Pixels{1, 2, 3, 1, 2, 3}));  // none set
  EXPECT_EQ(decode(read_bmp, bitmap(8, 1, palette, "\1\0\1\1"sv)), std::nullopt);
  EXPECT_EQ(decode(read_bmp, bitmap(4, 2, palette, "\2\x01\0\1"sv)), two);
  EXPECT_EQ(decode(read_bmp, bitmap(24, 0, "", "\3\2\1\6\5\4\0\0"sv)), two);
  EXPECT_EQ(decode(read_bmp, bitmap(32, 0, "", "\3\2\1\0\6\5\4\0"sv)), two);
  EXPECT_EQ(decode(read_bmp, bitmap(16, 0, "", "\xff\x7f\x1f\0"sv)), (Pixels{255, 255, 255, 0, 0, 255}));
  EXPECT_EQ(decode(read_bmp, bitmap(32, 3, "\xff\0\0\0\0\xff\0\0\0\0\xff\0"sv, "\1\2\3\0\4\5\6\0"sv)), two);
  EXPECT_EQ(decode(read_bmp, bitmap(24, 0, "", "\3\2\1\6\5\4\0"sv)), std::nullopt);
}

Tensor run_decoder(std::string_view file, const std::string& pixel_format) {
  Graph graph;
  const ValueId x = graph.add_input(Type(DType::u8, {Dim::unknown()}), "x");
  const NodeId node = graph.add_node(image_decoder_def(), {x}, {{"pixel_format", pixel_format}});
  graph.add_output(graph.node(node).output(0), "y");
  const Tensor bytes = Tensor::of<uint8_t>({static_cast<int64_t>(file.size())}, {file.begin(), file.end()});
  return compile(graph, {}).run({bytes})[0].tensor();
}

TEST(ImageDecoder, OrdersChannelsAsAsked) {
  const auto file = "P6\n1 1\n255\n\x0a\x64\xc8"sv;
  EXPECT_EQ(run_decoder(file, "RGB").to_f64(), (std::vector<double>{10, 100, 200}));
  EXPECT_EQ(run_decoder(file, "BGR").to_f64(), (std::vector<double>{200, 100, 10}));
  EXPECT_EQ(run_decoder(file, "Grayscale").to_f64(), (std::vector<double>{84}));
  EXPECT_EQ(run_decoder(file, "Grayscale").dims(), (Dims{1, 1, 1}));
}

TEST(ImageDecoder, GivesAnEmptyImageForWhatItCannotDecode) {
  EXPECT_EQ(run_decoder("no image", "RGB").dims(), (Dims{0, 0, 3}));
  EXPECT_EQ(run_decoder("", "Grayscale").dims(), (Dims{0, 0, 1}));
  EXPECT_EQ(run_decoder("P6\n9 9\n255\n", "BGR").dims(), (Dims{0, 0, 3}));
}

}  // namespace
}  // namespace autograph
