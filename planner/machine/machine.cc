#include "planner/machine/machine.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "planner/machine/known_machines.h"
#include "runtime/base/numbers.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

struct Figure {
  const char* key;
  double Machine::* value;
  bool mayBeZero;
};
constexpr Figure kFigures[] = {
    {"flops", &Machine::flops, false},
    {"flops_f64", &Machine::flopsF64, false},
    {"flops_f16", &Machine::flopsF16, false},
    {"flops_bf16", &Machine::flopsBf16, false},
    {"memory_bandwidth", &Machine::memoryBandwidth, false},
    {"launch_latency", &Machine::launchLatency, true},
    {"link_bandwidth", &Machine::linkBandwidth, false},
    {"link_latency", &Machine::linkLatency, true},
    {"network_bandwidth", &Machine::networkBandwidth, false},
    {"network_latency", &Machine::networkLatency, true},
};

struct Count {
  const char* key;
  int64_t Machine::* value;
  double most;
};
constexpr Count kCounts[] = {
    {"memory", &Machine::memory, 0x1p62},
    {"devices_per_node", &Machine::devicesPerNode, 0x1p30},
    {"nodes", &Machine::nodes, 0x1p30},
};

struct Text {
  const char* key;
  std::string Machine::* value;
};
constexpr Text kTexts[] = {{"name", &Machine::name}, {"source", &Machine::source}};

std::string knownKeys() {
  std::vector<std::string> keys;
  const auto add = [&](const auto& entry) { keys.emplace_back(entry.key); };
  std::for_each(std::begin(kTexts), std::end(kTexts), add);
  std::for_each(std::begin(kCounts), std::end(kCounts), add);
  std::for_each(std::begin(kFigures), std::end(kFigures), add);
  return absl::StrJoin(keys, ", ");
}

template <typename Entries>
auto find(const Entries& entries, const std::string& key) {
  return std::find_if(std::begin(entries), std::end(entries), [&](const auto& entry) { return key == entry.key; });
}

absl::Status setKey(Machine& machine, const std::string& key, const std::string& value) {
  if (const auto text = find(kTexts, key); text != std::end(kTexts)) {
    machine.*text->value = value;
    return absl::OkStatus();
  }
  const absl::StatusOr<double> number = parseReal(value);
  if (const auto count = find(kCounts, key); count != std::end(kCounts)) {
    const bool isCount = number.ok() && *number >= 1 && *number <= count->most &&
                         static_cast<double>(static_cast<int64_t>(*number)) == *number;
    if (!isCount) {
      return absl::InvalidArgumentError(
          absl::StrCat("value '", value, "' of '", key, "' is not a whole number from 1 to ", count->most));
    }
    machine.*count->value = static_cast<int64_t>(*number);
    return absl::OkStatus();
  }
  const auto figure = find(kFigures, key);
  if (figure == std::end(kFigures)) {
    return absl::InvalidArgumentError(absl::StrCat("unknown key '", key, "'; known keys: ", knownKeys()));
  }
  if (!number.ok() || *number < 0 || (*number == 0 && !figure->mayBeZero)) {
    return absl::InvalidArgumentError(
        absl::StrCat("value '", value, "' of '", key, "' is not a ", figure->mayBeZero ? "number >= 0" : "number > 0"));
  }
  machine.*figure->value = *number;
  return absl::OkStatus();
}

// Figures that need each other.
absl::Status check(const Machine& machine) {
  const bool manyNodes = machine.devicesPerNode > 0 && machine.nodes != 1;
  if (manyNodes && machine.networkBandwidth == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("machine: devices_per_node = ", machine.devicesPerNode,
                     " without network_bandwidth; give the bytes per second into one node, or nodes = 1"));
  }
  if (machine.devicesPerNode == 0 && (machine.nodes > 0 || machine.networkBandwidth > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("machine: ", machine.nodes > 0 ? "nodes" : "network_bandwidth",
                     " without devices_per_node: all devices would be on one node; give how many are on each"));
  }
  return absl::OkStatus();
}

// The fewest digits that read back to the same number.
std::string shortest(double value) {
  char digits[32];
  const std::to_chars_result end = std::to_chars(std::begin(digits), std::end(digits), value);
  return {digits, end.ptr};
}

// The text of the machine of that name.
std::optional<std::string> known(const std::string& name) {
  for (const KnownMachine& machine : kKnownMachines) {
    if (machine.name == name) {
      return machine.text;
    }
  }
  return std::nullopt;
}

}  // namespace

double Machine::rate(DType type) const {
  const double own = type == DType::kF64    ? flopsF64
                     : type == DType::kF16  ? flopsF16
                     : type == DType::kBF16 ? flopsBf16
                                            : flops;
  return own > 0 ? own : flops;
}

int64_t Machine::perNode(int64_t ranks) const {
  return devicesPerNode == 0 || ranks <= devicesPerNode ? ranks : std::gcd(ranks, devicesPerNode);
}

double Machine::networkShare() const {
  return devicesPerNode == 0 ? 0 : networkBandwidth / static_cast<double>(devicesPerNode);
}

absl::StatusOr<Machine> Machine::parse(const std::string& text) {
  const std::string name(absl::StripAsciiWhitespace(text));
  const bool isName = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  const std::optional<std::string> file = isName ? known(name) : text;
  if (!file) {
    return absl::InvalidArgumentError(absl::StrCat("there is no machine '", name, "'; there are ",
                                                   absl::StrJoin(names(), ", "),
                                                   ", or give a file of lines key = value: ", knownKeys()));
  }
  Machine machine;
  int number = 0;
  const std::vector<std::string> lines = absl::StrSplit(*file, '\n');
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
  WEFT_RETURN_IF_ERROR(check(machine));
  return machine;
}

std::string Machine::print() const {
  std::string text;
  for (const Text& entry : kTexts) {
    const std::string& value = this->*entry.value;
    absl::StrAppend(&text, value.empty() ? "" : absl::StrCat(entry.key, " = ", value, "\n"));
  }
  for (const Count& entry : kCounts) {
    const int64_t value = this->*entry.value;
    absl::StrAppend(&text, value == 0 ? "" : absl::StrCat(entry.key, " = ", value, "\n"));
  }
  for (const Figure& entry : kFigures) {
    const double value = this->*entry.value;
    const bool isSet = value != 0 || (entry.mayBeZero && entry.value != &Machine::networkLatency);
    absl::StrAppend(&text, isSet ? absl::StrCat(entry.key, " = ", shortest(value), "\n") : "");
  }
  return text;
}

absl::StatusOr<std::string> Machine::textOf(const std::string& nameOrPath) {
  if (known(nameOrPath)) {
    return nameOrPath;
  }
  absl::StatusOr<std::string> text = readText(nameOrPath);
  return text.ok() ? std::move(text)
                   : absl::InvalidArgumentError(absl::StrCat("machine '", nameOrPath, "': neither a file (",
                                                             text.status().message(), ") nor one of ",
                                                             absl::StrJoin(names(), ", ")));
}

std::vector<std::string> Machine::names() {
  std::vector<std::string> names;
  for (const KnownMachine& machine : kKnownMachines) {
    names.emplace_back(machine.name);
  }
  return names;
}

}  // namespace weft
