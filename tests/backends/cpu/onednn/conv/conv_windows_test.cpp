// Direct convolutions of one kind have the same implementations, however large the image is.
#include "backends/cpu/onednn/conv/conv_windows.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/onednn/cpu_engine.h"
#include "base/join.h"

namespace autograph::onednn {
namespace {

using Tag = dnnl::memory::format_tag;

// A convolution of two spatial axes, padded by half of its window.
struct Case {
  Dims w;
  int64_t groups = 1, stride = 1, dilation = 1;
  Tag tag = Tag::nhwc;
  Dims x;

  int64_t pad(size_t axis) const { return dilation * (w[axis + 2] / 2); }
  Dims y() const {
    Dims dims{x[0], w[0]};
    for (size_t axis = 0; axis < 2; ++axis) {
      const int64_t window = (w[axis + 2] - 1) * dilation + 1;
      dims.push_back((x[axis + 2] + 2 * pad(axis) - window) / stride + 1);
    }
    return dims;
  }
  ConvWindows windows() const {
    Attributes attributes;
    attributes.set("strides", Dims{stride, stride});
    attributes.set("dilations", Dims{dilation, dilation});
    attributes.set("pads", Dims{pad(0), pad(1), pad(0), pad(1)});
    return {attributes, x, w};
  }
  ProblemKind kind() const {
    ProblemKind kind;
    windows().add_extents(kind, x, grouped_weights(w, groups), y());
    return kind;
  }
};

std::string implementations_of(const Case& c) {
  constexpr size_t kMost = 3;
  const auto f32 = dnnl::memory::data_type::f32;
  const ConvWindows windows = c.windows();
  std::vector<std::string> names;
  try {
    const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                               {c.x, f32, c.tag}, {grouped_weights(c.w, c.groups), f32, Tag::any},
                                               {{c.w[0]}, f32, Tag::a}, {c.y(), f32, c.tag}, windows.strides,
                                               windows.dilates, windows.pads_begin, windows.pads_end);
    dnnl::convolution_forward::primitive_desc candidate(desc, cpu_engine());
    do {
      names.emplace_back(candidate.impl_info_str());
    } while (names.size() < kMost && candidate.next_impl());
  } catch (const dnnl::error&) {
    // None.
  }
  return join(names, " ");
}

Case drawn(std::mt19937& engine) {
  const auto one_of = [&](std::initializer_list<int64_t> list) { return list.begin()[engine() % list.size()]; };
  const bool is_depthwise = engine() % 4 == 0;
  const int64_t channels = one_of({3, 16, 24, 48, 96, 256}), side = is_depthwise ? one_of({3, 5}) : one_of({1, 3, 5});
  Case c;
  c.w = {is_depthwise ? channels : one_of({8, 24, 64, 192}), is_depthwise ? 1 : channels, side, side};
  c.groups = is_depthwise ? channels : 1;
  c.stride = one_of({1, 1, 2});
  c.dilation = c.stride == 1 ? one_of({1, 1, 2}) : 1;
  c.tag = std::array{Tag::nchw, Tag::nhwc, Tag::nChw16c}[engine() % 3];
  c.x = {1, channels, 0, 0};
  return c;
}

TEST(ConvWindows, ImplementationsFollowFromTheKindAlone) {
  constexpr int kCases = 300;
  std::mt19937 engine(1);
  const auto extent = [&] { return 4 + static_cast<int64_t>(engine() % (uint64_t{8} << engine() % 5)); };
  int alike = 0;
  for (int i = 0; i < kCases; ++i) {
    Case a = drawn(engine), b = a;
    for (Case* c : {&a, &b}) c->x[2] = extent(), c->x[3] = extent();
    if (a.kind().key() != b.kind().key()) continue;
    ++alike;
    EXPECT_EQ(implementations_of(a), implementations_of(b))
        << join(a.w, ",") << ": " << join(a.x, ",") << " and " << join(b.x, ",") << ", stride " << a.stride;
  }
  EXPECT_GT(alike, kCases / 3);
}

TEST(ConvWindows, KindsTellWhetherWindowsReachTheEnd) {
  Case c{.w = {8, 8, 1, 1}, .stride = 2, .x = {1, 8, 32, 40}};
  const auto kind_of = [&](int64_t height, int64_t width) {
    c.x[2] = height;
    c.x[3] = width;
    return c.kind().key();
  };
  EXPECT_EQ(kind_of(32, 40), kind_of(320, 240));
  EXPECT_NE(kind_of(32, 40), kind_of(32, 41));
  EXPECT_NE(kind_of(32, 40), kind_of(3, 40));
  EXPECT_NE(kind_of(2, 40), kind_of(4, 40));
}

// Windows are counted at both ends alone: what lies between begins inside.
TEST(ConvWindows, EmptyWindowsAreFound) {
  std::mt19937 engine(2);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(high - low + 1));
  };
  int empty = 0;
  for (int i = 0; i < 2000; ++i) {
    const int64_t in = draw(1, 12), taps = draw(1, 4), dilation = draw(1, 4), stride = draw(1, 4);
    const int64_t before = draw(0, 9), after = draw(0, 9), way = in + before + after - (taps - 1) * dilation - 1;
    if (way < 0) continue;
    bool has_empty = false;
    for (int64_t o = 0; o <= way / stride; ++o) {
      int64_t inside = 0;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t at = o * stride - before + tap * dilation;
        inside += at >= 0 && at < in ? 1 : 0;
      }
      has_empty = has_empty || inside == 0;
    }
    const Attributes attributes{
        {"strides", Dims{stride}}, {"dilations", Dims{dilation}}, {"pads", Dims{before, after}}};
    const ConvWindows windows(attributes, {1, 1, in}, {1, 1, taps});
    EXPECT_EQ(windows.has_empty, has_empty) << in << ' ' << taps << ' ' << dilation << ' ' << stride << ' ' << before;
    empty += has_empty ? 1 : 0;
  }
  EXPECT_GT(empty, 100);
}

}  // namespace
}  // namespace autograph::onednn
