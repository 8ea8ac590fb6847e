#include "planner/machine/machine.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/numbers.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr char kKnownKeys[] = "name, flops, memory_bandwidth, link_bandwidth, link_latency, launch_latency";

double* figure(Machine& machine, const std::string& key) {
  if (key == "flops") {
    return &machine.flops;
  }
  if (key == "memory_bandwidth") {
    return &machine.memoryBandwidth;
  }
  if (key == "link_bandwidth") {
    return &machine.linkBandwidth;
  }
  if (key == "link_latency") {
    return &machine.linkLatency;
  }
  return key == "launch_latency" ? &machine.launchLatency : nullptr;
}

absl::Status setKey(Machine& machine, const std::string& key, const std::string& value) {
  if (key == "name") {
    machine.name = value;
    return absl::OkStatus();
  }
  double* target = figure(machine, key);
  if (target == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("unknown key '", key, "'; known keys: ", kKnownKeys));
  }
  const absl::StatusOr<double> number = parseReal(value);
  bool mayBeZero = key == "link_latency" || key == "launch_latency";
  if (!number.ok() || *number < 0 || (*number == 0 && !mayBeZero)) {
    return absl::InvalidArgumentError(
        absl::StrCat("value '", value, "' of '", key, "' is not a ", mayBeZero ? "number >= 0" : "number > 0"));
  }
  *target = *number;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Machine> Machine::parse(const std::string& text) {
  Machine machine;
  int number = 0;
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (std::string line : lines) {
    ++number;
    line = std::string(absl::StripAsciiWhitespace(line.substr(0, line.find('#'))));
    if (line.empty()) {
      continue;
    }
    std::pair<std::string, std::string> entry = absl::StrSplit(line, absl::MaxSplits('=', 1));
    std::string key(absl::StripAsciiWhitespace(entry.first));
    std::string value(absl::StripAsciiWhitespace(entry.second));
    absl::Status status = line.find('=') == std::string::npos
                              ? absl::InvalidArgumentError(absl::StrCat("expected key = value, found '", line, "'"))
                              : setKey(machine, key, value);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("machine, line ", number, ": ", status.message()));
    }
  }
  return machine;
}

std::string Machine::print() const {
  // %.17g reads back to the same number.
  return absl::StrFormat(
      "name = %s\nflops = %.17g\nmemory_bandwidth = %.17g\nlink_bandwidth = %.17g\nlink_latency = %.17g\n"
      "launch_latency = %.17g\n",
      name, flops, memoryBandwidth, linkBandwidth, linkLatency, launchLatency);
}

}  // namespace weft
