// What a program switches on and off from outside and functions ask for while they compute: does a layer train?
#pragma once

#include <memory>
#include <string>

namespace autograph {

/// A yes or no that decides what a function computes. A captured function (autograph/capture.h) that asked for it is
/// captured again in calls that find it otherwise:
///
///     bool Module::is_training() const {
///       if (is_capturing()) training_.guard("training of '" + path() + "'");
///       return training_.is_on();
///     }
class Setting {
 public:
  explicit Setting(bool is_on) : is_on_(std::make_shared<bool>(is_on)) {}
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

  bool is_on() const { return *is_on_; }
  /// What a function sets itself before it asks is no reason to capture it again.
  void set(bool on);
  /// Said by whoever asks, while a function is captured: its graph is for this setting as it is now. `what` names it in
  /// Captured::explain(). Does nothing at other times.
  void guard(const std::string& what) const;

 private:
  std::shared_ptr<bool> is_on_;  // graphs that ask for it may live longer
};

}  // namespace autograph
