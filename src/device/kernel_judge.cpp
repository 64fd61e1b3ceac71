#include "device/kernel_judge.h"

namespace autograph {

void KernelJudge::drop_wrong(const KernelCall& call, Offers& offers) {
  const std::vector<std::string> faults = known_faults(call, offers.offers);
  std::vector<Offer> right;
  for (size_t i = 0; i < faults.size(); ++i) {
    if (faults[i].empty()) {
      right.push_back(std::move(offers.offers[i]));
    } else {
      offers.refusals.push_back(offers.offers[i].name() + ": " + faults[i]);
    }
  }
  offers.offers = std::move(right);
}

}  // namespace autograph
