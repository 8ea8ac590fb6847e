#include "runtime/base/numbers.h"

#include <charconv>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace weft {
namespace {

std::string expected(const IntegerRange& range) {
  const IntegerRange any;
  if (range.least == any.least && range.most == any.most) {
    return "an integer of 64 bits";
  }
  return range.most == any.most ? absl::StrCat("an integer >= ", range.least)
                                : absl::StrCat("an integer from ", range.least, " to ", range.most);
}

}  // namespace

absl::StatusOr<int64_t> parseInteger(const std::string& text, const IntegerRange& range) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  const std::string message = absl::StrCat("'", text, "' is not ", expected(range));
  if (stop != end || problem == std::errc::invalid_argument) {
    return absl::InvalidArgumentError(message);
  }
  return problem == std::errc() && value >= range.least && value <= range.most ? absl::StatusOr<int64_t>(value)
                                                                               : absl::OutOfRangeError(message);
}

absl::StatusOr<double> parseReal(const std::string& text, const RealRange& range) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (stop != end || problem == std::errc::invalid_argument) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a finite number"));
  }
  if (problem != std::errc() || !std::isfinite(value)) {
    return absl::OutOfRangeError(absl::StrCat("'", text, "' is not a finite number"));
  }
  return value >= range.least && value <= range.most
             ? absl::StatusOr<double>(value)
             : absl::OutOfRangeError(
                   absl::StrCat("'", text, "' is not a number from ", range.least, " to ", range.most));
}

absl::StatusOr<int64_t> parseBytes(const std::string& text) {
  struct Unit {
    const char* name;
    int64_t bytes;
  };
  static constexpr Unit kUnits[] = {{"ki", 1LL << 10}, {"mi", 1LL << 20}, {"gi", 1LL << 30},   {"ti", 1LL << 40},
                                    {"k", 1000},       {"m", 1000'000},   {"g", 1000'000'000}, {"t", 1000'000'000'000}};
  const std::string message = absl::StrCat("'", text, "' is not a number of bytes (\"40g\", \"512mi\")");
  std::string digits = text;
  int64_t bytes = 1;
  for (const Unit& unit : kUnits) {
    if (absl::EndsWith(text, unit.name)) {
      digits.resize(text.size() - std::string(unit.name).size());
      bytes = unit.bytes;
      break;
    }
  }
  const absl::StatusOr<int64_t> count = parseInteger(digits, {.least = 0});
  if (!count.ok()) {
    return absl::Status(count.status().code(), message);
  }
  return *count <= std::numeric_limits<int64_t>::max() / bytes ? absl::StatusOr<int64_t>(*count * bytes)
                                                               : absl::OutOfRangeError(message);
}

}  // namespace weft
