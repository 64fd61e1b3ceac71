// Decisions of a program that makes examples: the same code enumerates all of them or draws some at random.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <random>
#include <vector>

namespace autograph {

/// Makes decisions, either all combinations one after the other (an odometer over the decisions that were asked for) or
/// at random.
class Choices {
 public:
  /// All combinations: call next() after each example.
  Choices() = default;
  /// At random.
  explicit Choices(uint64_t seed) : is_random_(true), random_(seed) {}

  bool is_random() const { return is_random_; }

  /// A number below `count` > 0.
  size_t pick(size_t count) {
    if (count == 1) return 0;
    if (is_random_) return static_cast<size_t>(random_() % count);
    if (at_ == decisions_.size()) decisions_.push_back({0, count});
    return decisions_[at_++].chosen;
  }

  template <class T>
  T one_of(std::initializer_list<T> options) {
    return options.begin()[pick(options.size())];
  }
  template <class List>
  const auto& one_of(const List& options) {
    return options[pick(options.size())];
  }

  /// True once in `n` times; never when enumerating: for what would multiply the number of examples.
  bool rarely(size_t n) { return is_random_ && random_() % n == 0; }

  /// As pick(), but 0 when enumerating.
  size_t pick_at_random(size_t count) { return is_random_ ? pick(count) : 0; }

  /// A number that differs from example to example.
  uint64_t draw() { return random_(); }

  /// The next combination; false when all were there.
  bool next() {
    at_ = 0;
    if (is_random_) return true;
    while (!decisions_.empty() && decisions_.back().chosen + 1 == decisions_.back().count) decisions_.pop_back();
    if (decisions_.empty()) return false;
    ++decisions_.back().chosen;
    return true;
  }

 private:
  struct Decision {
    size_t chosen;
    size_t count;
  };
  bool is_random_ = false;
  std::mt19937_64 random_{1};
  std::vector<Decision> decisions_;
  size_t at_ = 0;
};

}  // namespace autograph
