// Addresses are taken with the unwinder of the compiler and looked up only for a message, with libbacktrace where the
// compiler brings it (AG_HAS_BACKTRACE) and with the dynamic linker's table of symbols otherwise.
#include "eager/source_lines.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <unwind.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#ifdef AG_HAS_BACKTRACE
#include <backtrace.h>
#endif

namespace autograph {
namespace {

constexpr size_t kDepth = 16;
constexpr size_t kOwnFrames = 2;  // the unwinder's callback level and return_places() itself

_Unwind_Reason_Code add_place(_Unwind_Context* context, void* places) {
  auto& list = *static_cast<std::vector<uintptr_t>*>(places);
  list.push_back(_Unwind_GetIP(context));
  return list.size() < kDepth ? _URC_NO_REASON : _URC_END_OF_STACK;
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

struct Frame {
  std::string function, file;
  int line = 0;
};

// Is it in the library, or in a header that it uses? By the file where it is known: functions of programs may be in our
// namespace, and with few debug symbols names come without theirs.
bool is_own(const Frame& frame) {
  constexpr std::string_view kThisFile = "src/eager/source_lines.cpp";
  static const std::string root = std::string(__FILE__).substr(0, std::string_view(__FILE__).size() - kThisFile.size());
  const std::string_view head = std::string_view(frame.function).substr(0, frame.function.find('('));
  if (head.find("std::") != std::string_view::npos) return true;
  if (frame.file.empty()) return head.find("autograph::") != std::string_view::npos;
  const auto is_below = [&](std::string_view folder) { return frame.file.find(folder) != std::string::npos; };
  return frame.file.rfind(root + "src/", 0) == 0 || is_below("include/autograph/") || is_below("/include/c++/");
}

#ifdef AG_HAS_BACKTRACE
void ignore_error(void*, const char*, int) {}

// Called for each function that was inlined at an address, innermost first: the first foreign one counts.
int take_line(void* data, uintptr_t, const char* file, int line, const char* function) {
  auto& frame = *static_cast<Frame*>(data);
  if (!function) return 0;
  frame = {demangled(function), file ? file : "", line};
  return is_own(frame) ? 0 : 1;
}

void take_symbol(void* data, uintptr_t, const char* name, uintptr_t, uintptr_t) {
  if (name) static_cast<Frame*>(data)->function = demangled(name);
}

Frame frame_at(uintptr_t place) {
  static backtrace_state* const state = backtrace_create_state(nullptr, 1, ignore_error, nullptr);
  Frame frame;
  if (!state) return frame;
  backtrace_pcinfo(state, place - 1, take_line, ignore_error, &frame);
  if (frame.function.empty()) backtrace_syminfo(state, place - 1, take_symbol, ignore_error, &frame);
  return frame;
}
#else
Frame frame_at(uintptr_t place) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(place - 1), &info) == 0 || !info.dli_sname) return {};  // NOLINT
  return {demangled(info.dli_sname), "", 0};
}
#endif

}  // namespace

std::vector<uintptr_t> return_places() {
  std::vector<uintptr_t> places;
  places.reserve(kDepth);
  _Unwind_Backtrace(add_place, &places);
  if (places.size() > kOwnFrames) places.erase(places.begin(), places.begin() + kOwnFrames);
  return places;
}

std::string line_of(const std::vector<uintptr_t>& places) {
  for (const uintptr_t place : places) {
    const Frame frame = frame_at(place);
    if (frame.function.empty() || is_own(frame)) continue;
    if (frame.file.empty()) return frame.function;
    return frame.file + ":" + std::to_string(frame.line) + " (" + frame.function + ")";
  }
  return "";
}

}  // namespace autograph
