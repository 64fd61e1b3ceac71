// What CUDA's language has and C++ has not, for kernels that are compiled by the compiler of the host. Included in
// front of a generated source, which is followed by STANDIN_KERNEL for each kernel.
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <utility>

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static  // groups run one after the other
#define __launch_bounds__(...)

struct StandinIndex {
  unsigned x, y, z;
};
static StandinIndex threadIdx, blockIdx, blockDim;

struct ulonglong2 {
  unsigned long long x, y;
};

template <class To, class From>
static To standin_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}
static float __int_as_float(int x) { return standin_bits<float>(x); }
static float __uint_as_float(unsigned x) { return standin_bits<float>(x); }
static unsigned __float_as_uint(float x) { return standin_bits<unsigned>(x); }
static int atomicMax(int* p, int v) {  // threads take turns
  const int old = *p;
  if (v > old) *p = v;
  return old;
}
static long long clock64() {
  static long long now = 0;
  return now += 100000;
}

// The only assembler in generated sources: conversions between x and y, of which one is a half.
static void standin_convert(const unsigned short* half, float* number) {
  _Float16 x;
  memcpy(&x, half, sizeof(x));
  *number = (float)x;
}
static void standin_convert(const float* number, unsigned short* half) {
  const _Float16 x = (_Float16)*number;
  memcpy(half, &x, sizeof(x));
}
#undef INFINITY
#undef NAN
#define asm(...) standin_convert(&x, &y)

// ---- Running a kernel: threads that wait for each other are contexts that take turns -----------------------------

struct StandinThread {
  ucontext_t context;
  bool is_done;
};
static ucontext_t standin_scheduler;
static StandinThread* standin_current = nullptr;  // null: threads run to their end one after the other

static void __syncthreads() {
  if (standin_current) swapcontext(&standin_current->context, &standin_scheduler);
}

template <class... Parameters, size_t... numbers>
static void standin_call(void (*kernel)(Parameters...), void** values, std::index_sequence<numbers...>) {
  kernel((Parameters)values[numbers]...);
}

template <auto kernel>
struct StandinKernel;

template <class... Parameters, void (*kernel)(Parameters...)>
struct StandinKernel<kernel> {
  static constexpr size_t count = sizeof...(Parameters);
  static inline void** values = nullptr;

  static void call() { standin_call(kernel, values, std::index_sequence_for<Parameters...>()); }
  static void run_thread() {
    call();
    standin_current->is_done = true;
    swapcontext(&standin_current->context, &standin_scheduler);
  }

  static void run_group(StandinThread* threads, char* stacks, size_t stack_bytes) {
    for (unsigned t = 0; t < blockDim.x; ++t) {
      threads[t].is_done = false;
      getcontext(&threads[t].context);
      threads[t].context.uc_stack.ss_sp = stacks + t * stack_bytes;
      threads[t].context.uc_stack.ss_size = stack_bytes;
      makecontext(&threads[t].context, run_thread, 0);
    }
    for (bool any = true; any;) {
      any = false;
      for (unsigned t = 0; t < blockDim.x; ++t) {
        if (threads[t].is_done) continue;
        any = true;
        threadIdx.x = t;
        standin_current = &threads[t];
        swapcontext(&standin_scheduler, &threads[t].context);
      }
    }
    standin_current = nullptr;
  }

  static void run(void** parameters, unsigned groups, unsigned size, bool waits) {
    constexpr size_t kStackBytes = 64 * 1024;
    values = parameters;
    blockDim = {size, 1, 1};
    auto* threads = waits ? (StandinThread*)malloc(size * sizeof(StandinThread)) : nullptr;
    char* stacks = waits ? (char*)malloc(size * kStackBytes) : nullptr;
    for (unsigned g = 0; g < groups; ++g) {
      blockIdx.x = g;
      if (waits) run_group(threads, stacks, kStackBytes);
      for (unsigned t = 0; !waits && t < size; ++t) {
        threadIdx.x = t;
        call();
      }
    }
    free(threads);
    free(stacks);
  }
};

#define STANDIN_KERNEL(name, waits)                                                       \
  extern "C" const size_t standin_count_##name = StandinKernel<&name>::count;             \
  extern "C" void standin_run_##name(void** parameters, unsigned groups, unsigned size) { \
    StandinKernel<&name>::run(parameters, groups, size, waits);                           \
  }
