#include "ir/layout/mesh.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/limits.h"
#include "runtime/base/numbers.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr char kAll[] = "all";
constexpr char kMicro[] = "micro";

bool isName(const std::string& text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || digit(c); });
}

absl::StatusOr<int64_t> parseSize(const std::string& text, const std::string& part) {
  absl::StatusOr<int64_t> size = parseInteger(text, {.least = 1});
  return size.ok() ? size
                   : absl::InvalidArgumentError(
                         absl::StrCat("mesh: size '", text, "' in '", part, "' is not an integer >= 1"));
}

// `most` of what the mesh counts: "ranks", "micro-batches".
absl::Status tooLarge(const std::string& text, const std::string& part, int64_t most, const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("mesh '", text, "': more than ", most, " ", what, " at '", part,
                                                 "', which is more than a program can have; use smaller axes"));
}

std::string trimmed(const std::string& text) {
  return std::string(absl::StripAsciiWhitespace(text));
}

std::string withoutBrackets(const std::string& text) {
  std::string body = trimmed(text);
  if (body.size() >= 2 && body.front() == '<' && body.back() == '>') {
    body = trimmed(body.substr(1, body.size() - 2));
  }
  return body;
}

// The digit `axis` of a line of `total` elements.
int64_t digitOf(const Axis& axis, int64_t total, int64_t index) {
  return index / (total / axis.end()) % axis.size;
}

// "name:(pre)size" relative to a named axis.
std::string subAxisText(const std::string& name, int64_t pre, int64_t size) {
  return absl::StrCat(name, ":(", pre, ")", size);
}

struct SubAxis {
  int64_t pre = 1;
  int64_t size = 1;
};

absl::StatusOr<SubAxis> parseSubAxis(const std::string& text, const std::string& whole) {
  size_t close = text.find(')');
  const bool parenthesis = !text.empty() && text[0] == '(' && close != std::string::npos;
  const absl::StatusOr<int64_t> pre = parseInteger(parenthesis ? text.substr(1, close - 1) : "", {.least = 1});
  const absl::StatusOr<int64_t> size = parseInteger(parenthesis ? text.substr(close + 1) : "", {.least = 1});
  if (!pre.ok() || !size.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("axis '", whole, "': expected name:(pre)size with numbers >= 1"));
  }
  return SubAxis{*pre, *size};
}

}  // namespace

bool overlap(const Axis& a, const Axis& b) {
  return a.kind == b.kind && a.size > 1 && b.size > 1 && std::max(a.pre, b.pre) < std::min(a.end(), b.end());
}

bool compatible(const Axis& a, const Axis& b) {
  if (a.kind != b.kind || a.size == 1 || b.size == 1) {
    return true;
  }
  const Axis& low = a.pre < b.pre ? a : b;
  const Axis& high = a.pre < b.pre ? b : a;
  return !overlap(a, b) && high.pre % low.end() == 0;
}

std::optional<Axis> join(const Axis& a, const Axis& b) {
  if (a.kind != b.kind || a.end() != b.pre) {
    return std::nullopt;
  }
  return Axis{a.kind, a.pre, a.size * b.size};
}

absl::StatusOr<Mesh> Mesh::parse(const std::string& text) {
  Mesh mesh;
  std::string body = withoutBrackets(text);
  if (body.empty()) {
    return mesh;
  }
  bool bareNumber = false;
  std::vector<std::string> microBatches = absl::StrSplit(body, ',');
  for (const std::string& microBatch : microBatches) {
    std::string part = trimmed(microBatch);
    size_t equals = part.find('=');
    if (equals == std::string::npos) {
      if (part.empty() || bareNumber || mesh.ranks_ > 1 || !mesh.axes_.empty()) {
        return absl::InvalidArgumentError(absl::StrCat("mesh '", text, "': expected name=size, found '", part, "'"));
      }
      WEFT_ASSIGN_OR_RETURN(mesh.ranks_, parseSize(part, part));
      if (mesh.ranks_ > kMaxRanks) {
        return tooLarge(text, part, kMaxRanks, "ranks");
      }
      bareNumber = true;
      continue;
    }
    std::string name = trimmed(part.substr(0, equals));
    if (!isName(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("mesh '", text, "': '", name, "' is no axis name (letters, digits, _)"));
    }
    if (name == kAll) {
      return absl::InvalidArgumentError(
          absl::StrCat("mesh '", text, "': the name 'all' is reserved for the line of all ranks; choose another"));
    }
    for (const NamedAxis& known : mesh.axes_) {
      if (known.name == name) {
        return absl::InvalidArgumentError(absl::StrCat("mesh '", text, "': axis '", name, "' is named twice"));
      }
    }
    WEFT_ASSIGN_OR_RETURN(int64_t size, parseSize(trimmed(part.substr(equals + 1)), part));
    bool time = name == kMicro;
    if (!time && bareNumber) {
      return absl::InvalidArgumentError(
          absl::StrCat("mesh '", text, "': either one number of ranks or named axes, not both ('", part, "')"));
    }
    int64_t& total = time ? mesh.microBatches_ : mesh.ranks_;
    const int64_t most = time ? kMaxMicroBatches : kMaxRanks;
    if (size > most / total) {
      return tooLarge(text, part, most, time ? "micro-batches" : "ranks");
    }
    mesh.axes_.push_back({name, {time ? AxisKind::kTime : AxisKind::kSpace, total, size}});
    total *= size;
  }
  return mesh;
}

Mesh Mesh::withMicro(int64_t count) const {
  Mesh result = *this;
  result.microBatches_ = count;
  for (NamedAxis& named : result.axes_) {
    if (named.axis.kind == AxisKind::kTime) {
      named.axis = {AxisKind::kTime, 1, count};
      return result;
    }
  }
  result.axes_.push_back({kMicro, {AxisKind::kTime, 1, count}});
  return result;
}

Mesh Mesh::ofRanks() const {
  Mesh result;
  result.ranks_ = ranks_;
  std::copy_if(axes_.begin(), axes_.end(), std::back_inserter(result.axes_),
               [](const NamedAxis& named) { return named.axis.kind == AxisKind::kSpace; });
  return result;
}

absl::StatusOr<Axis> Mesh::resolve(const std::string& text) const {
  std::string body = trimmed(text);
  size_t colon = body.find(':');
  std::string name = trimmed(body.substr(0, colon));
  std::optional<Axis> base;
  if (name == kAll) {
    base = Axis{AxisKind::kSpace, 1, ranks_};
  }
  std::vector<std::string> known;
  for (const NamedAxis& named : axes_) {
    known.push_back(named.name);
    if (named.name == name) {
      base = named.axis;
    }
  }
  known.push_back(kAll);
  if (!base) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown axis '", name, "'; the mesh ", print(), " has: ", absl::StrJoin(known, ", ")));
  }
  if (colon == std::string::npos) {
    return *base;
  }
  WEFT_ASSIGN_OR_RETURN(SubAxis sub, parseSubAxis(trimmed(body.substr(colon + 1)), body));
  if (sub.pre > base->size || sub.size > base->size || base->size % (sub.pre * sub.size) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("sub-axis '", body, "': ", sub.pre, " x ", sub.size,
                                                   " does not divide the size ", base->size, " of '", name, "'"));
  }
  return Axis{base->kind, base->pre * sub.pre, sub.size};
}

std::string Mesh::name(const Axis& axis) const {
  std::vector<std::string> parts;
  int64_t at = axis.pre;
  for (const NamedAxis& named : axes_) {
    const Axis& base = named.axis;
    if (base.kind != axis.kind || (axis.size == 1 ? base != axis : !overlap(base, axis))) {
      continue;
    }
    int64_t end = std::min(base.end(), axis.end());
    // The named axes must cut the interval [at, end) in whole numbers.
    if (base == axis || (at == base.pre && end == base.end())) {
      parts.push_back(named.name);
    } else if (at >= base.pre && at % base.pre == 0 && base.end() % end == 0 && end % at == 0) {
      parts.push_back(subAxisText(named.name, at / base.pre, end / at));
    } else {
      break;
    }
    at = end;
  }
  if (at == axis.end() && !parts.empty()) {
    return absl::StrJoin(parts, ",");
  }
  std::string line = axis.kind == AxisKind::kSpace ? kAll : kMicro;
  bool whole = axis.kind == AxisKind::kSpace && axis.pre == 1 && axis.size == ranks_;
  return whole ? line : subAxisText(line, axis.pre, axis.size);
}

std::string Mesh::print() const {
  std::vector<std::string> parts;
  bool named =
      std::any_of(axes_.begin(), axes_.end(), [](const NamedAxis& a) { return a.axis.kind == AxisKind::kSpace; });
  if (!named) {
    parts.push_back(absl::StrCat(ranks_));
  }
  for (const NamedAxis& axis : axes_) {
    parts.push_back(absl::StrCat(axis.name, "=", axis.axis.size));
  }
  return absl::StrJoin(parts, ",");
}

int64_t Mesh::coordinate(const Axis& axis, int64_t rankOrMicroBatch) const {
  return digitOf(axis, axis.kind == AxisKind::kSpace ? ranks_ : microBatches_, rankOrMicroBatch);
}

std::vector<std::vector<int64_t>> Mesh::groups(const AxisList& axes) const {
  // Setting the digits of `axes` to zero gives the name of a group; read as one number they give the member's place.
  std::map<int64_t, std::vector<std::pair<int64_t, int64_t>>> found;
  for (int64_t rank = 0; rank < ranks_; ++rank) {
    int64_t base = rank;
    int64_t place = 0;
    for (const Axis& axis : axes) {
      if (axis.kind != AxisKind::kSpace) {
        continue;
      }
      int64_t digit = digitOf(axis, ranks_, rank);
      base -= digit * (ranks_ / axis.end());
      place = place * axis.size + digit;
    }
    found[base].push_back({place, rank});
  }
  std::vector<std::vector<int64_t>> result;
  for (auto& [base, members] : found) {
    std::sort(members.begin(), members.end());
    std::vector<int64_t>& group = result.emplace_back();
    for (const auto& member : members) {
      group.push_back(member.second);
    }
  }
  return result;
}

bool operator==(const Mesh& a, const Mesh& b) {
  auto same = [](const NamedAxis& x, const NamedAxis& y) { return x.name == y.name && x.axis == y.axis; };
  return a.ranks_ == b.ranks_ && a.microBatches_ == b.microBatches_ &&
         std::equal(a.axes_.begin(), a.axes_.end(), b.axes_.begin(), b.axes_.end(), same);
}

}  // namespace weft
