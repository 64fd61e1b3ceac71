// The engine that random legal calls of ops and random graphs draw from (OpDef::sample).
#pragma once

#include <random>

namespace autograph {

/// A 64-bit Mersenne twister: the same seed gives the same calls on every platform. A class of its own, so that the
/// many files which only pass it on need not know <random>.
class Random : public std::mt19937_64 {
 public:
  using std::mt19937_64::mersenne_twister_engine;
};

}  // namespace autograph
