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
#include "planner/machine/kinds.h"
#include "planner/machine/known_machines.h"
#include "runtime/base/names.h"
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
    {"memory", &Machine::memory, 0x1p62},
    {"devices_per_node", &Machine::devicesPerNode, 0x1p30},
    {"nodes", &Machine::nodes, 0x1p30},
    {"multiprocessors", &Machine::multiprocessors, 0x1p20},
    {"queues", &Machine::queues, 2},
    {"host_memory", &Machine::hostMemory, 0x1p62},
    {"cores", &Machine::cores, 0x1p20},
    {"stream_k", &Machine::streamK, 1},
    {"fused_accumulation", &Machine::fusedAccumulation, 1},
};

// "128x256".
struct TileText {
  const char* key;
  Tile Machine::* value;
};
constexpr TileText kTiles[] = {{"tile", &Machine::tile}};

constexpr int64_t kMostTile = 1 << 16;
constexpr int64_t kMostProduct = int64_t{1} << 40;
constexpr char kSection[] = "[kind ";
constexpr char kProfile[] = "profile";
constexpr char kProfileForm[] = "profile matmul TYPE M N K = SECONDS";
constexpr char kKernelProfileForm[] = "profile KERNEL TYPE FLOPS BYTES [M N K] = SECONDS";

struct Text {
  const char* key;
  std::string Machine::* value;
};
constexpr Text kTexts[] = {{"name", &Machine::name}, {"source", &Machine::source}};

std::vector<std::string> allKeys() {
  std::vector<std::string> keys;
  const auto add = [&](const auto& entry) { keys.emplace_back(entry.key); };
  std::for_each(std::begin(kTexts), std::end(kTexts), add);
  std::for_each(std::begin(kCounts), std::end(kCounts), add);
  std::for_each(std::begin(kFigures), std::end(kFigures), add);
  std::for_each(std::begin(kTiles), std::end(kTiles), add);
  return keys;
}

std::string knownKeys() {
  return absl::StrCat(absl::StrJoin(allKeys(), ", "), ", ", kProfileForm, ", ", kKernelProfileForm);
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

// The words of "profile matmul bf16 1024 10240 5120" or "profile gelu f32 1048576 8388608", and the seconds.
class ProfileLine {
 public:
  ProfileLine(std::string key, std::string value)
      : key_(std::move(key)), value_(std::move(value)), words_(absl::StrSplit(key_, ' ', absl::SkipEmpty())) {}

  absl::Status addTo(Machine& machine) const {
    if (words_.size() == 6 && words_[1] == "matmul") {
      return addProduct(machine);
    }
    return words_.size() == 8 || (words_.size() == 5 && words_[1] != "matmul")
               ? addKernel(machine)
               : bad(absl::StrCat("neither a measured product nor calls of a kernel; expected ", kProfileForm, " or ",
                                  kKernelProfileForm));
  }

 private:
  absl::Status bad(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat("'", key_, "': ", what));
  }

  absl::Status addProduct(Machine& machine) const {
    ProductProfile profile;
    WEFT_ASSIGN_OR_RETURN(profile.type, type());
    if (!isFloat(profile.type)) {
      return bad(absl::StrCat("'", words_[2], "' is none of f32, f64, bf16, f16"));
    }
    WEFT_ASSIGN_OR_RETURN(profile.m, size(3, 1));
    WEFT_ASSIGN_OR_RETURN(profile.n, size(4, 1));
    WEFT_ASSIGN_OR_RETURN(profile.k, size(5, 1));
    WEFT_ASSIGN_OR_RETURN(profile.seconds, seconds());
    for (const ProductProfile& other : machine.profiles) {
      if (other.type == profile.type && other.m == profile.m && other.n == profile.n && other.k == profile.k) {
        return bad(absl::StrCat("this product is there already, with ", shortest(other.seconds), " seconds"));
      }
    }
    machine.profiles.push_back(profile);
    return absl::OkStatus();
  }

  absl::Status addKernel(Machine& machine) const {
    KernelProfile profile{.kernel = words_[1]};
    WEFT_ASSIGN_OR_RETURN(profile.type, type());
    WEFT_ASSIGN_OR_RETURN(profile.flops, size(3, 0));
    WEFT_ASSIGN_OR_RETURN(profile.bytes, size(4, 0));
    if (words_.size() == 8) {
      WEFT_ASSIGN_OR_RETURN(profile.m, size(5, 1));
      WEFT_ASSIGN_OR_RETURN(profile.n, size(6, 1));
      WEFT_ASSIGN_OR_RETURN(profile.k, size(7, 1));
    }
    WEFT_ASSIGN_OR_RETURN(profile.seconds, seconds());
    for (const KernelProfile& other : machine.kernels) {
      if (other.kernel == profile.kernel && other.type == profile.type && other.flops == profile.flops &&
          other.bytes == profile.bytes && other.m == profile.m && other.n == profile.n && other.k == profile.k) {
        return bad(absl::StrCat("this call is there already, with ", shortest(other.seconds), " seconds"));
      }
    }
    machine.kernels.push_back(std::move(profile));
    return absl::OkStatus();
  }

  absl::StatusOr<DType> type() const {
    const std::optional<DType> type = parseDType(words_[2]);
    return type ? absl::StatusOr<DType>(*type)
                : bad(absl::StrCat("'", words_[2], "' is no element type, as f32, f64, bf16, f16, i32"));
  }

  absl::StatusOr<int64_t> size(size_t word, int64_t least) const {
    const std::string& text = words_[word];
    const std::optional<int64_t> number =
        text == "0" && least == 0 ? std::optional<int64_t>(0) : countOf(text, kMostProduct);
    return number ? absl::StatusOr<int64_t>(*number)
                  : bad(absl::StrCat("'", text, "' is not a whole number from ", least, " to ", kMostProduct));
  }

  absl::StatusOr<double> seconds() const {
    const absl::StatusOr<double> seconds = parseReal(value_);
    return seconds.ok() && isIn(Range::kPositive, *seconds)
               ? seconds
               : bad(absl::StrCat("value '", value_, "' is not a ", rangeText(Range::kPositive)));
  }

  std::string key_;
  std::string value_;
  std::vector<std::string> words_;
};

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
    return ProfileLine(key, value).addTo(machine);
  }
  const std::string similar = similarName(key, allKeys());
  return absl::InvalidArgumentError(absl::StrCat("unknown key '", key, "'",
                                                 similar.empty() ? "" : absl::StrCat(", perhaps '", similar, "'"),
                                                 "; known keys: ", knownKeys()));
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
  if (machine.streamK > 0 && machine.tile.rows == 0) {
    return absl::InvalidArgumentError(
        "machine: stream_k = 1 without tile and multiprocessors, which say what is shared; give all three, or none");
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
absl::Status checkPairs(const std::set<std::string>& given) {
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

// Of each kind, or of the machine without any.
absl::Status checkPairs(const std::string& text) {
  std::set<std::string> before;
  std::set<std::string>* given = &before;
  std::vector<std::pair<std::string, std::set<std::string>>> kinds;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (const std::string& line : lines) {
    const std::string key(absl::StripAsciiWhitespace(line.substr(0, line.find_first_of("=#"))));
    if (absl::StartsWith(key, kSection)) {
      given = &kinds.emplace_back(key, before).second;
    }
    given->insert(key);
  }
  for (const auto& [section, keys] : kinds) {
    if (const absl::Status status = checkPairs(keys); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(section, ": ", status.message()));
    }
  }
  return kinds.empty() ? checkPairs(before) : absl::OkStatus();
}

// What a machine without kinds is printed as.
std::vector<std::string> linesOf(const Machine& machine) {
  std::vector<std::string> lines;
  const auto add = [&](const char* key, const auto& value) { lines.push_back(absl::StrCat(key, " = ", value, "\n")); };
  for (const Text& entry : kTexts) {
    if (const std::string& value = machine.*entry.value; !value.empty()) {
      add(entry.key, value);
    }
  }
  for (const Count& entry : kCounts) {
    if (const int64_t value = machine.*entry.value; value != 0) {
      add(entry.key, value);
    }
  }
  for (const Figure& entry : kFigures) {
    const double value = machine.*entry.value;
    if (value != 0 || (entry.range == Range::kNotNegative && entry.value != &Machine::networkLatency)) {
      add(entry.key, shortest(value));
    }
  }
  for (const TileText& entry : kTiles) {
    if (const Tile& value = machine.*entry.value; value.rows > 0) {
      add(entry.key, absl::StrCat(value.rows, "x", value.columns));
    }
  }
  for (const ProductProfile& profile : machine.profiles) {
    lines.push_back(absl::StrCat(kProfile, " matmul ", dtypeName(profile.type), " ", profile.m, " ", profile.n, " ",
                                 profile.k, " = ", shortest(profile.seconds), "\n"));
  }
  for (const KernelProfile& profile : machine.kernels) {
    const std::string sizes = profile.m > 0 ? absl::StrCat(" ", profile.m, " ", profile.n, " ", profile.k) : "";
    lines.push_back(absl::StrCat(kProfile, " ", profile.kernel, " ", dtypeName(profile.type), " ", profile.flops, " ",
                                 profile.bytes, sizes, " = ", shortest(profile.seconds), "\n"));
  }
  return lines;
}

bool isName(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

// Reads the lines of one file.
class Reader {
 public:
  // Without comments and spaces around it.
  absl::Status line(const std::string& line) {
    if (line.front() == '[') {
      return section(line);
    }
    if (line.find('=') == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("expected key = value, found '", line, "'"));
    }
    const std::pair<std::string, std::string> entry = absl::StrSplit(line, absl::MaxSplits('=', 1));
    const std::string key(absl::StripAsciiWhitespace(entry.first));
    const std::string value(absl::StripAsciiWhitespace(entry.second));
    if (machine_.kinds.empty()) {
      return setKey(machine_, key, value);
    }
    Machine& kind = machine_.kinds.back();
    const absl::Status status = key == "name" ? absl::InvalidArgumentError(
                                                    "key 'name' in a section: it names the whole machine; a kind is "
                                                    "named by its section, [kind NAME]")
                                              : setKey(kind, key, value);
    return status.ok() ? status
                       : absl::InvalidArgumentError(absl::StrCat("kind '", kind.name, "': ", status.message()));
  }

  absl::StatusOr<Machine> finish() && {
    for (const Machine& kind : machine_.kinds) {
      const absl::Status status =
          kind.nodes == 0
              ? absl::InvalidArgumentError("machine: nodes is missing; say how many nodes have such devices")
          : !kind.kernels.empty() || kind.cores > 0
              ? absl::InvalidArgumentError(absl::StrCat(kind.kernels.empty() ? "cores" : kKernelProfileForm,
                                                        " of one kind among several; it is for machines whose devices "
                                                        "are alike: leave it out, or leave the sections out"))
              : check(kind);
      if (!status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(kSection, kind.name, "]: ", status.message()));
      }
    }
    if (!machine_.kinds.empty()) {
      return withKinds(std::move(machine_));
    }
    WEFT_RETURN_IF_ERROR(check(machine_));
    return std::move(machine_);
  }

 private:
  // "[kind fast]"
  absl::Status section(const std::string& line) {
    const bool isKind = absl::StartsWith(line, kSection) && line.back() == ']';
    const std::string name(
        isKind ? absl::StripAsciiWhitespace(line.substr(sizeof(kSection) - 1, line.size() - sizeof(kSection))) : "");
    if (!isName(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", line, "' is no section; expected ", kSection, "NAME], a name of letters, digits, - _ ."));
    }
    for (const Machine& kind : machine_.kinds) {
      if (kind.name == name) {
        return absl::InvalidArgumentError(absl::StrCat("kind '", name, "' is there already, with ", kind.nodes,
                                                       " nodes; give all its nodes in one section"));
      }
    }
    if (machine_.kinds.empty()) {
      WEFT_RETURN_IF_ERROR(checkCommon());
    }
    Machine kind = machine_;
    kind.kinds.clear();
    kind.name = name;
    kind.source.clear();
    machine_.kinds.push_back(std::move(kind));
    return absl::OkStatus();
  }

  // What stands before the first section and cannot be that of all kinds.
  absl::Status checkCommon() const {
    if (machine_.nodes > 0) {
      return absl::InvalidArgumentError(absl::StrCat("nodes = ", machine_.nodes,
                                                     " before the first section; each kind has nodes of its own: give "
                                                     "them in its section"));
    }
    return machine_.profiles.empty() && machine_.kernels.empty()
               ? absl::OkStatus()
               : absl::InvalidArgumentError(
                     "profile lines before the first section; a product was measured on devices of one kind: give them "
                     "in its section");
  }

  Machine machine_;
};

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
  const std::optional<std::string> file = isName(name) ? known(name) : text;
  if (!file) {
    return absl::InvalidArgumentError(absl::StrCat("there is no machine '", name, "'; there are ",
                                                   absl::StrJoin(names(), ", "),
                                                   ", or give a file of lines key = value: ", knownKeys()));
  }
  Reader reader;
  int number = 0;
  const std::vector<std::string> lines = absl::StrSplit(*file, '\n');
  for (std::string line : lines) {
    ++number;
    line = std::string(absl::StripAsciiWhitespace(line.substr(0, line.find('#'))));
    const absl::Status status = line.empty() ? absl::OkStatus() : reader.line(line);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("machine, line ", number, ": ", status.message()));
    }
  }
  return std::move(reader).finish();
}

std::string Machine::print() const {
  if (kinds.empty()) {
    return absl::StrJoin(linesOf(*this), "");
  }
  // What all kinds say alike stands before them.
  std::set<std::string> common;
  for (const std::string& line : linesOf(kinds.front())) {
    const bool isCommon = !absl::StartsWith(line, "name = ") && !absl::StartsWith(line, "source = ") &&
                          !absl::StartsWith(line, "nodes = ") && !absl::StartsWith(line, kProfile);
    const bool isEverywhere = std::all_of(kinds.begin(), kinds.end(), [&](const Machine& kind) {
      const std::vector<std::string> lines = linesOf(kind);
      return std::find(lines.begin(), lines.end(), line) != lines.end();
    });
    if (isCommon && isEverywhere) {
      common.insert(line);
    }
  }
  Machine named;
  named.name = name;
  named.source = source;
  std::string text;
  for (const std::string& line : linesOf(named)) {
    absl::StrAppend(&text, absl::StartsWith(line, "name = ") || absl::StartsWith(line, "source = ") ? line : "");
  }
  for (const std::string& line : linesOf(kinds.front())) {
    absl::StrAppend(&text, common.count(line) > 0 ? line : "");
  }
  for (const Machine& kind : kinds) {
    absl::StrAppend(&text, kSection, kind.name, "]\n");
    for (const std::string& line : linesOf(kind)) {
      absl::StrAppend(&text, absl::StartsWith(line, "name = ") || common.count(line) > 0 ? "" : line);
    }
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
