#include "ir/layout/reshard_problem.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::reshard {

std::string Problem::key() const {
  return absl::StrCat(absl::StrJoin(cuts, ","), ";", absl::StrJoin(perNode, ","), ";", permuted.nodes(), ";",
                      cutsNodesEvenly, ";", absl::StrJoin(sizes, ","), ";", scatterable, ";", keyOf(from), keyOf(to));
}

GroupSpan Problem::spanOf(const Digits& digits) const {
  GroupSpan span;
  for (const Digit digit : digits) {
    const int64_t size = cuts[digit.high] / cuts[digit.low];
    span.ranks *= size;
    span.perNode *= perNode.empty() ? size : perNode[digit.low * cuts.size() + digit.high];
  }
  return span;
}

void appendDigit(Digits& digits, Digit digit) {
  if (!digits.empty() && digits.back().high == digit.low) {
    digits.back().high = digit.high;
  } else {
    digits.push_back(digit);
  }
}

void appendDigits(Digits& digits, const Digits& more) {
  for (Digit digit : more) {
    appendDigit(digits, digit);
  }
}

void insertSorted(Digits& digits, Digit digit) {
  digits.insert(std::upper_bound(digits.begin(), digits.end(), digit), digit);
  Digits joined;
  for (Digit each : digits) {
    appendDigit(joined, each);
  }
  digits = std::move(joined);
}

std::string keyOf(const State& state) {
  std::string key;
  for (const Digits& digits : state.dims) {
    appendKey(key, digits);
  }
  appendKey(key, state.partial);
  return key;
}

void appendKey(std::string& key, const Digits& digits) {
  for (Digit digit : digits) {
    key.push_back(static_cast<char>(digit.low));
    key.push_back(static_cast<char>(digit.high));
  }
  key.push_back('\xff');
}

}  // namespace weft::reshard
