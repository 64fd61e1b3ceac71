#include "backends/cpu/simd/pool/pool_rows.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/pool/pool_rows.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/pool/pool_steps-inl.h"
#include "backends/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace {

int64_t in_whole_vectors(int64_t count) { return (count + lanes_of_pool() - 1) / lanes_of_pool() * lanes_of_pool(); }

// Where the first input lies in a joined line: vectors of them are stored to whole cache lines.
int64_t first_input(const WindowAxis& axis) { return in_whole_vectors(axis.pad_begin); }
int64_t first_tap(const WindowAxis& axis) { return first_input(axis) - axis.pad_begin; }

int64_t line_size(const WindowAxis& axis) {
  const int64_t read = in_whole_vectors(axis.out) * axis.stride + (axis.kernel - 1) * axis.dilation;
  return in_whole_vectors(std::max(first_tap(axis) + read, first_input(axis) + axis.in));
}

void pad_lines(const WindowAxis& axis, bool is_mean, int64_t count, float* joined) {
  const float start = is_mean ? MeanStep::kStart : MaxStep::kStart;
  const int64_t size = line_size(axis);
  for (float* line = joined; line < joined + count * size; line += size) {
    std::fill_n(line, first_input(axis), start);
    std::fill(line + first_input(axis) + axis.in, line + size, start);
  }
}

// Calls f(the lines joined, by a function of where in them and of how many elements there are; all of a vector where
// 0).
template <class Step, class F>
HWY_INLINE void with_join(std::span<const float* const> lines, const F& f) {
  const PoolD d;
  const auto load = [=](const float* from, size_t some)
                        HWY_ATTR { return some == 0 ? hn::LoadU(d, from) : load_some(d, from, some, hn::Zero(d)); };
  if (lines.size() == 2) {
    return f([=, a = lines[0], b = lines[1]](int64_t at, size_t some)
                 HWY_ATTR { return Step::add(load(a + at, some), load(b + at, some)); });
  }
  if (lines.size() == 3) {
    return f([=, a = lines[0], b = lines[1], c = lines[2]](int64_t at, size_t some)
                 HWY_ATTR { return Step::add(Step::add(load(a + at, some), load(b + at, some)), load(c + at, some)); });
  }
  f([=](int64_t at, size_t some) HWY_ATTR {
    PoolV total = load(lines[0] + at, some);
    for (size_t i = 1; i < lines.size(); ++i) total = Step::add(total, load(lines[i] + at, some));
    return total;
  });
}

template <class Step>
HWY_INLINE void join_lines(std::span<const float* const> lines, int64_t count, float* to) {
  if (lines.empty()) return static_cast<void>(std::fill_n(to, count, Step::kStart));
  const PoolD d;
  with_join<Step>(lines, [=](const auto& join) HWY_ATTR {
    int64_t at = 0;
    for (; at + lanes_of_pool() <= count; at += lanes_of_pool()) hn::StoreU(join(at, 0), d, to + at);
    if (at == count) return;
    const auto rest = static_cast<size_t>(count - at);
    store_some(d, join(at, rest), to + at, rest);
  });
}

struct Neighbours {
  HWY_INLINE PoolV load(const float* from) const { return hn::LoadU(PoolD(), from); }
};

struct EverySecond {
  HWY_INLINE PoolV load(const float* from) const {
    const PoolD d;
#if HWY_TARGET == HWY_SCALAR
    return hn::LoadU(d, from);
#else
    return hn::ConcatEven(d, hn::LoadU(d, from + lanes_of_pool()), hn::LoadU(d, from));
#endif
  }
};

struct Strided {
  hn::Vec<hn::RebindToSigned<PoolD>> places;
  HWY_INLINE PoolV load(const float* from) const { return hn::GatherIndex(PoolD(), from, places); }
};

// The windows of a joined line, a vector of them at a time; `inputs` loads one tap of each.
template <class Step, class Inputs>
HWY_INLINE void pool_line(const WindowAxis& axis, const Inputs& inputs, const float* joined, const PoolRow& row) {
  const PoolD d;
  for (int64_t o = 0; o < axis.out; o += lanes_of_pool()) {
    const float* tap = joined + o * axis.stride;
    PoolV total = inputs.load(tap);
    for (int64_t k = 1; k < axis.kernel; ++k) total = Step::add(total, inputs.load(tap += axis.dilation));
    total = Step::finish(total, hn::LoadU(d, row.parts + o));
    if (o + lanes_of_pool() <= axis.out) {
      hn::StoreU(total, d, row.y + o);
    } else {
      store_some(d, total, row.y + o, static_cast<size_t>(axis.out - o));
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// Windows of two inputs, side by side and all inside: those of a vector are two vectors of joined elements, which need
// not go through memory.
template <class Step>
HWY_INLINE void pool_pairs(const WindowAxis& axis, const PoolRow& row) {
  const PoolD d;
  with_join<Step>(row.lines, [&](const auto& join) HWY_ATTR {
    const auto pool = [&](int64_t o, PoolV low, PoolV high) HWY_ATTR {
      const PoolV total = Step::add(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low));
      return Step::finish(total, hn::LoadU(d, row.parts + o));
    };
    int64_t o = 0;
    for (; o + lanes_of_pool() <= axis.out; o += lanes_of_pool()) {
      hn::StoreU(pool(o, join(2 * o, 0), join(2 * o + lanes_of_pool(), 0)), d, row.y + o);
    }
    if (o == axis.out) return;
    const auto rest = static_cast<size_t>(axis.out - o), lanes = hn::Lanes(d);
    const PoolV low = join(2 * o, 2 * rest < lanes ? 2 * rest : 0);
    const PoolV high = 2 * rest > lanes ? join(2 * o + lanes_of_pool(), 2 * rest - lanes) : hn::Zero(d);
    store_some(d, pool(o, low, high), row.y + o, rest);
  });
}

bool are_pairs(const WindowAxis& axis) {
  return axis.kernel == 2 && axis.dilation == 1 && axis.stride == 2 && axis.pad_begin == 0 && 2 * axis.out <= axis.in;
}
#endif

template <class Step, class Inputs>
HWY_INLINE void pool_lines(const PoolRows& task, const Inputs& inputs) {
  const float* joined = task.joined + first_tap(task.axis);
  for (const PoolRow& row : task.rows) {
    pool_line<Step>(task.axis, inputs, joined, row);
    joined += line_size(task.axis);
  }
}

// All rows are joined before the first is pooled: what has just been written is read at other offsets only later.
template <class Step>
HWY_INLINE void pool_all(const PoolRows& task) {
#if HWY_TARGET != HWY_SCALAR
  const auto has_lines = [](const PoolRow& row) { return !row.lines.empty(); };
  if (are_pairs(task.axis) && std::all_of(task.rows.begin(), task.rows.end(), has_lines)) {
    for (const PoolRow& row : task.rows) pool_pairs<Step>(task.axis, row);
    return;
  }
#endif
  float* joined = task.joined + first_input(task.axis);
  for (const PoolRow& row : task.rows) {
    join_lines<Step>(row.lines, task.axis.in, joined);
    joined += line_size(task.axis);
  }
  if (task.axis.stride == 1) return pool_lines<Step>(task, Neighbours());
  if (task.axis.stride == 2) return pool_lines<Step>(task, EverySecond());
  const hn::RebindToSigned<PoolD> di;
  pool_lines<Step>(task, Strided{hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(task.axis.stride)))});
}

void pool(const PoolRows& task) {
  if (task.is_mean) return pool_all<MeanStep>(task);
  pool_all<MaxStep>(task);
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(in_whole_vectors);
HWY_EXPORT(line_size);
HWY_EXPORT(pad_lines);
HWY_EXPORT(pool);

int64_t joined_line_size(const WindowAxis& axis) { return HWY_DYNAMIC_DISPATCH(line_size)(axis); }

int64_t pool_parts_size(const WindowAxis& axis) { return HWY_DYNAMIC_DISPATCH(in_whole_vectors)(axis.out); }

void pad_joined_lines(const WindowAxis& axis, bool is_mean, int64_t count, float* joined) {
  HWY_DYNAMIC_DISPATCH(pad_lines)(axis, is_mean, count, joined);
}

void pool_rows(const PoolRows& task) { HWY_DYNAMIC_DISPATCH(pool)(task); }

}  // namespace autograph::simd
#endif  // HWY_ONCE
