#include "planner/assign/ascent.h"

#include <algorithm>
#include <utility>

#include "planner/assign/memory_rows.h"

namespace weft::assign {
namespace {

constexpr int kFewestRounds = 12;
constexpr int kWindow = 10;  // rounds in which the bound must grow by kGrowth of the gap
constexpr double kGrowth = 0.02;
constexpr int kSqueezes = 60;
// In larger models a plan is made to fit in every second pass only: it takes as long as the pass.
constexpr int kLarge = 1000;

}  // namespace

Ascent::Ascent(const Model& model, RowPrices prices, Cost unit, Ticks& ticks)
    : model_(model),
      unit_(unit),
      ticks_(ticks),
      dual_(model, ticks),
      search_(model, ticks),
      prices_(std::move(prices)) {
  dual_.setPrices(prices_.prices());
}

void Ascent::consider(std::vector<int> plan, Incumbent& best) {
  search_.start(std::move(plan));
  search_.makeRoom();
  search_.descend();
  if (search_.possible() && search_.cost() < best.upper) {
    best.improve(search_.values(), search_.cost(), unit_);
  }
}

void Ascent::climb(int rounds, int64_t ticks, Incumbent& best) {
  const bool hasRows = !model_.capacity.empty();
  const int64_t most = ticks_.used() + ticks;
  std::vector<Cost> bounds;
  for (int round = 0; round < rounds && (round == 0 || ticks_.used() < most); ++round) {
    const std::vector<int> plan = dual_.pass(true);
    consider(plan, best);
    std::vector<int> back = dual_.pass(false);
    if (model_.variables() < kLarge) {
      consider(std::move(back), best);
    }
    bound_ = std::max(bound_, dual_.bound());
    bounds.push_back(bound_);
    if (bound_ >= best.upper) {
      break;
    }
    if (hasRows) {
      reprice(plan, best);
    }
    if (round >= kFewestRounds && best.isKnown() && (!hasRows || prices_.settled()) &&
        static_cast<double>(bound_ - bounds[round - kWindow]) < kGrowth * static_cast<double>(best.upper - bound_)) {
      break;
    }
  }
}

void Ascent::reprice(const std::vector<int>& plan, const Incumbent& best) {
  Cost target = best.isKnown() ? best.upper : std::max(costOf(model_, plan), dual_.bound() + 1);
  if (target >= kForbidden) {
    target = dual_.bound() + std::max<Cost>(1, dual_.bound() / 16);
  }
  prices_.learn(excessOf(model_, plan), dual_.bound(), target);
  dual_.setPrices(prices_.prices());
}

void Ascent::squeeze(Incumbent& best) {
  PriceAscent squeezed(prices_.best());
  for (int i = 0; i < kSqueezes && !best.isKnown() && !model_.capacity.empty(); ++i) {
    dual_.setPrices(squeezed.prices());
    dual_.pass(true);
    dual_.pass(false);
    const std::vector<int> plan = dual_.pass(true);
    consider(plan, best);
    squeezed.squeeze(excessOf(model_, plan));
    dual_.pass(false);
  }
}

void Ascent::settle() {
  if (!model_.capacity.empty()) {
    dual_.setPrices(prices_.best());
    dual_.pass(true);
    dual_.pass(false);
    bound_ = std::max(bound_, dual_.bound());
  }
}

}  // namespace weft::assign
