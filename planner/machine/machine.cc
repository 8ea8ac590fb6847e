#include "planner/machine/machine.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
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

enum class Range : uint8_t { kPositive, kNotNegative, kPart, kMultiple };

struct Figure {
  const char* key;
  double Machine::* value;
  Range range;
};
constexpr Figure kFigures[] = {
    {"flops", &Machine::flops, Range::kPositive},
    {"flops_f64", &Machine::flopsF64, Range::kPositive},
    {"flops_f16", &Machine::flopsF16, Range::kPositive},
    {"flops_bf16", &Machine::flopsBf16, Range::kPositive},
    {"product_efficiency", &Machine::productEfficiency, Range::kPart},
    {"fused_efficiency", &Machine::fusedEfficiency, Range::kPart},
    {"memory_bandwidth", &Machine::memoryBandwidth, Range::kPositive},
    {"memory_efficiency", &Machine::memoryEfficiency, Range::kPart},
    {"launch_latency", &Machine::launchLatency, Range::kNotNegative},
    {"host_bandwidth", &Machine::hostBandwidth, Range::kPositive},
    {"link_bandwidth", &Machine::linkBandwidth, Range::kPositive},
    {"link_latency", &Machine::linkLatency, Range::kNotNegative},
    {"network_bandwidth", &Machine::networkBandwidth, Range::kPositive},
    {"network_latency", &Machine::networkLatency, Range::kNotNegative},
    {"overlap_slowdown", &Machine::overlapSlowdown, Range::kMultiple},
};

const char* rangeText(Range range) {
  switch (range) {
    case Range::kPositive:
      return "number > 0";
    case Range::kNotNegative:
      return "number >= 0";
    case Range::kPart:
      return "part, more than 0 and at most 1";
    case Range::kMultiple:
      return "number >= 1";
  }
  return "";
}

bool isIn(Range range, double value) {
  switch (range) {
    case Range::kPositive:
      return value > 0;
    case Range::kNotNegative:
      return value >= 0;
    case Range::kPart:
      return value > 0 && value <= 1;
    case Range::kMultiple:
      return value >= 1;
  }
  return false;
}

struct Count {
  const char* key;
  int64_t Machine::* value;
  double most;
};
constexpr Count kCounts[] = {
    {"memory", &Machine::memory, 0x1p62}, {"devices_per_node", &Machine::devicesPerNode, 0x1p30},
    {"nodes", &Machine::nodes, 0x1p30},   {"multiprocessors", &Machine::multiprocessors, 0x1p20},
    {"queues", &Machine::queues, 2},      {"host_memory", &Machine::hostMemory, 0x1p62},
};

// "128x256".
struct TileText {
  const char* key;
  Tile Machine::* value;
};
constexpr TileText kTiles[] = {{"tile", &Machine::tile}};

constexpr int64_t kMostTile = 1 << 16;
constexpr int64_t kMostProduct = int64_t{1} << 40;
constexpr char kProfile[] = "profile";
constexpr char kProfileForm[] = "profile matmul TYPE M N K = SECONDS";

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
  std::for_each(std::begin(kTiles), std::end(kTiles), add);
  keys.emplace_back(kProfileForm);
  return absl::StrJoin(keys, ", ");
}

template <typename Entries>
auto find(const Entries& entries, const std::string& key) {
  return std::find_if(std::begin(entries), std::end(entries), [&](const auto& entry) { return key == entry.key; });
}

// A whole number from 1; nothing for other text.
std::optional<int64_t> countOf(const std::string& text, double most) {
  const absl::StatusOr<double> number = parseReal(text);
  const bool isCount =
      number.ok() && *number >= 1 && *number <= most && static_cast<double>(static_cast<int64_t>(*number)) == *number;
  return isCount ? std::optional(static_cast<int64_t>(*number)) : std::nullopt;
}

absl::Status setCount(Machine& machine, const Count& count, const std::string& value) {
  const std::optional<int64_t> number = countOf(value, count.most);
  if (!number) {
    return absl::InvalidArgumentError(
        absl::StrCat("value '", value, "' of '", count.key, "' is not a whole number from 1 to ", count.most));
  }
  machine.*count.value = *number;
  return absl::OkStatus();
}

absl::Status setTile(Machine& machine, const TileText& tile, const std::string& value) {
  const std::vector<std::string> sizes = absl::StrSplit(value, 'x');
  const std::optional<int64_t> rows = sizes.size() == 2 ? countOf(sizes[0], kMostTile) : std::nullopt;
  const std::optional<int64_t> columns = sizes.size() == 2 ? countOf(sizes[1], kMostTile) : std::nullopt;
  if (!rows || !columns) {
    return absl::InvalidArgumentError(
        absl::StrCat("value '", value, "' of '", tile.key, "' is not two sizes from 1 to ", kMostTile, ", as 128x256"));
  }
  machine.*tile.value = {*rows, *columns};
  return absl::OkStatus();
}

absl::Status setFigure(Machine& machine, const Figure& figure, const std::string& value) {
  const absl::StatusOr<double> number = parseReal(value);
  if (!number.ok() || !isIn(figure.range, *number)) {
    return absl::InvalidArgumentError(
        absl::StrCat("value '", value, "' of '", figure.key, "' is not a ", rangeText(figure.range)));
  }
  machine.*figure.value = *number;
  return absl::OkStatus();
}

// The fewest digits that read back to the same number.
std::string shortest(double value) {
  char digits[32];
  const std::to_chars_result end = std::to_chars(std::begin(digits), std::end(digits), value);
  return {digits, end.ptr};
}

// "profile matmul bf16 1024 10240 5120", and the seconds.
absl::Status addProfile(Machine& machine, const std::string& key, const std::string& value) {
  const std::vector<std::string> words = absl::StrSplit(key, ' ', absl::SkipEmpty());
  const auto bad = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("'", key, "': ", what, "; expected ", kProfileForm));
  };
  if (words.size() != 6 || words[1] != "matmul") {
    return bad("no measured product");
  }
  const std::optional<DType> type = parseDType(words[2]);
  if (!type || !isFloat(*type)) {
    return bad(absl::StrCat("'", words[2], "' is none of f32, f64, bf16, f16"));
  }
  ProductProfile profile{.type = *type};
  for (const auto& [word, size] : {std::pair{3, &profile.m}, {4, &profile.n}, {5, &profile.k}}) {
    const std::optional<int64_t> number = countOf(words[word], kMostProduct);
    if (!number) {
      return bad(absl::StrCat("'", words[word], "' is not a whole number from 1 to ", kMostProduct));
    }
    *size = *number;
  }
  const absl::StatusOr<double> seconds = parseReal(value);
  if (!seconds.ok() || !isIn(Range::kPositive, *seconds)) {
    return bad(absl::StrCat("value '", value, "' is not a ", rangeText(Range::kPositive)));
  }
  profile.seconds = *seconds;
  for (const ProductProfile& other : machine.profiles) {
    if (other.type == profile.type && other.m == profile.m && other.n == profile.n && other.k == profile.k) {
      return bad(absl::StrCat("this product is there already, with ", shortest(other.seconds), " seconds"));
    }
  }
  machine.profiles.push_back(profile);
  return absl::OkStatus();
}

absl::Status setKey(Machine& machine, const std::string& key, const std::string& value) {
  if (const auto text = find(kTexts, key); text != std::end(kTexts)) {
    machine.*text->value = value;
    return absl::OkStatus();
  }
  if (const auto count = find(kCounts, key); count != std::end(kCounts)) {
    return setCount(machine, *count, value);
  }
  if (const auto tile = find(kTiles, key); tile != std::end(kTiles)) {
    return setTile(machine, *tile, value);
  }
  if (const auto figure = find(kFigures, key); figure != std::end(kFigures)) {
    return setFigure(machine, *figure, value);
  }
  if (absl::StartsWith(key, kProfile)) {
    return addProfile(machine, key, value);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown key '", key, "'; known keys: ", knownKeys()));
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
  if ((machine.tile.rows > 0) != (machine.multiprocessors > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("machine: ", machine.tile.rows > 0 ? "tile" : "multiprocessors",
                                                   " without ", machine.tile.rows > 0 ? "multiprocessors" : "tile",
                                                   ": how long products take follows from both; give both, or none"));
  }
  if (machine.hostMemory > 0 && machine.hostBandwidth == 0) {
    return absl::InvalidArgumentError(absl::StrCat("machine: host_memory = ", machine.hostMemory,
                                                   " without host_bandwidth: nothing comes there; give both, or none"));
  }
  if (machine.overlapSlowdown > 0 && machine.queues == 1) {
    return absl::InvalidArgumentError(absl::StrCat("machine: overlap_slowdown = ", machine.overlapSlowdown,
                                                   " with 1 queue, on which nothing overlaps; give queues = 2 too, or "
                                                   "leave it out"));
  }
  return absl::OkStatus();
}

// A file that gives one of these would get the other from the default, which is another machine.
absl::Status checkPairs(const std::string& text) {
  std::set<std::string> given;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (const std::string& line : lines) {
    given.emplace(absl::StripAsciiWhitespace(line.substr(0, line.find('='))));
  }
  for (const auto& [a, b] : {std::pair("flops", "memory_bandwidth"), std::pair("link_bandwidth", "link_latency"),
                             std::pair("network_bandwidth", "network_latency")}) {
    if (given.count(a) != given.count(b)) {
      const char* missing = given.count(a) > 0 ? b : a;
      return absl::InvalidArgumentError(
          absl::StrCat("machine: ", missing, " is missing beside ", given.count(a) > 0 ? a : b,
                       "; give both, or take a file of `weft machine -o`, which has all figures, as a start"));
    }
  }
  return absl::OkStatus();
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
    const bool isSet = value != 0 || (entry.range == Range::kNotNegative && entry.value != &Machine::networkLatency);
    absl::StrAppend(&text, isSet ? absl::StrCat(entry.key, " = ", shortest(value), "\n") : "");
  }
  for (const TileText& entry : kTiles) {
    const Tile& value = this->*entry.value;
    absl::StrAppend(&text, value.rows > 0 ? absl::StrCat(entry.key, " = ", value.rows, "x", value.columns, "\n") : "");
  }
  for (const ProductProfile& profile : profiles) {
    absl::StrAppend(&text, kProfile, " matmul ", dtypeName(profile.type), " ", profile.m, " ", profile.n, " ",
                    profile.k, " = ", shortest(profile.seconds), "\n");
  }
  return text;
}

absl::StatusOr<std::string> Machine::textOf(const std::string& nameOrPath) {
  if (known(nameOrPath)) {
    return nameOrPath;
  }
  absl::StatusOr<std::string> text = readText(nameOrPath);
  if (!text.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("machine '", nameOrPath, "': neither a file (",
                                                   text.status().message(), ") nor one of ",
                                                   absl::StrJoin(names(), ", ")));
  }
  absl::Status status = parse(*text).status();
  status = status.ok() ? checkPairs(*text) : status;
  return status.ok() ? std::move(text)
                     : absl::InvalidArgumentError(absl::StrCat("'", nameOrPath, "': ", status.message()));
}

std::vector<std::string> Machine::names() {
  std::vector<std::string> names;
  for (const KnownMachine& machine : kKnownMachines) {
    names.emplace_back(machine.name);
  }
  return names;
}

}  // namespace weft
