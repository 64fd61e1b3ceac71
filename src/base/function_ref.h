// A reference to something that can be called: what std::function is, without owning or allocating anything. The callee
// must outlive it.
#pragma once

#include <type_traits>
#include <utility>

namespace autograph {

template <class Signature>
class FunctionRef;

template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class Callee>
  requires(!std::is_same_v<std::remove_cvref_t<Callee>, FunctionRef>)
      FunctionRef(Callee&& callee)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : callee_(const_cast<void*>(static_cast<const void*>(&callee))), call_([](void* to, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<Callee>*>(to))(std::forward<Args>(args)...);
        }) {}
  Result operator()(Args... args) const { return call_(callee_, std::forward<Args>(args)...); }

 private:
  void* callee_;
  Result (*call_)(void*, Args...);
};

}  // namespace autograph
