#include "runtime/base/numbers.h"

#include <charconv>
#include <cmath>

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

}  // namespace weft
