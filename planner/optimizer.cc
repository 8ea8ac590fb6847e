#include "planner/optimizer.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/finite.h"
#include "runtime/base/names.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// "none" computes gradients and updates nothing.
constexpr char kNone[] = "none";
constexpr char kOwn[] = "own";

enum class Range : uint8_t { kAtLeastZero, kFraction, kUpToOne, kPositive, kUpToZero, kFlag };

// A setting means the same in every optimizer that has it.
Range rangeOf(const std::string& setting) {
  static const std::map<std::string, Range> ranges = {
      {"momentum", Range::kFraction}, {"beta1", Range::kFraction},       {"beta2", Range::kFraction},
      {"alpha", Range::kFraction},    {"dampening", Range::kUpToOne},    {"nesterov", Range::kFlag},
      {"centered", Range::kFlag},     {"beta2_decay", Range::kUpToZero}, {"clip_threshold", Range::kPositive},
  };
  const auto it = ranges.find(setting);
  return it == ranges.end() ? Range::kAtLeastZero : it->second;
}

bool isIn(Range range, double value) {
  switch (range) {
    case Range::kAtLeastZero:
      return value >= 0 && isFiniteInF32(value);
    case Range::kFraction:
      return value >= 0 && value < 1;
    case Range::kUpToOne:
      return value >= 0 && value <= 1;
    case Range::kPositive:
      return value > 0 && isFiniteInF32(value);
    case Range::kUpToZero:
      return value <= 0 && isFiniteInF32(value);
    case Range::kFlag:
      return value == 0 || value == 1;
  }
}

const char* rangeText(Range range) {
  switch (range) {
    case Range::kAtLeastZero:
      return "finite number of at least 0";
    case Range::kFraction:
      return "number of at least 0 and below 1";
    case Range::kUpToOne:
      return "number from 0 to 1";
    case Range::kPositive:
      return "finite number above 0";
    case Range::kUpToZero:
      return "finite number of at most 0";
    case Range::kFlag:
      return "flag, 0 or 1";
  }
}

// All kinds with their defaults.
const std::vector<Optimizer>& known() {
  static const std::vector<Optimizer> kinds = {optim::Sgd(),     optim::Adam(), optim::AdamW(), optim::Adagrad(),
                                               optim::RmsProp(), optim::Lamb(), optim::Lion(),  optim::Adafactor()};
  return kinds;
}

const Optimizer* find(const std::string& kind) {
  const auto it = std::find_if(known().begin(), known().end(), [&](const Optimizer& o) { return o.kind == kind; });
  return it == known().end() ? nullptr : &*it;
}

std::vector<std::string> namesOf(const Optimizer& optimizer) {
  std::vector<std::string> names;
  for (const auto& [name, value] : optimizer.settings) {
    names.push_back(name);
  }
  return names;
}

absl::Status refuse(const std::string& text) {
  return absl::InvalidArgumentError(text);
}

absl::Status unknownKind(const std::string& kind, const char* more) {
  std::vector<std::string> kinds;
  for (const Optimizer& optimizer : known()) {
    kinds.push_back(optimizer.kind);
  }
  return refuse(absl::StrCat("optimizer '", kind, "' is unknown; did you mean '", nearestName(kind, kinds),
                             "'? There are ", absl::StrJoin(kinds, ", "), more));
}

absl::Status checkValue(const std::string& of, const std::string& name, Range range, double value) {
  return isIn(range, value) ? absl::OkStatus()
                            : refuse(absl::StrCat(of, name, " = ", value, "; give a ", rangeText(range)));
}

absl::Status checkSetting(const Optimizer& optimizer, const std::string& name, double value) {
  const Optimizer* const kind = find(optimizer.kind);
  const std::vector<std::string> names = kind == nullptr ? std::vector<std::string>() : namesOf(*kind);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return refuse(absl::StrCat("optimizer ", optimizer.kind, " has no setting '", name, "' (", value, "); it has ",
                               names.empty() ? "none" : absl::StrJoin(names, ", ")));
  }
  return checkValue(absl::StrCat("optimizer ", optimizer.kind, ": "), name, rangeOf(name), value);
}

absl::Status checkGroup(const Optimizer& optimizer, const std::string& pattern, const optim::Group& group) {
  const std::string of = absl::StrCat("optimizer ", optimizer.kind, ", group '", pattern, "': ");
  if (pattern.empty()) {
    return refuse(of + "this is no pattern of parameter names; write one, as *.bias");
  }
  if (group.frozen && (group.lrFactor || group.weightDecay)) {
    return refuse(of + "it is frozen, but has a learning rate factor or weight decay; leave these out");
  }
  if (group.lrFactor) {
    WEFT_RETURN_IF_ERROR(checkValue(of, "lr_factor", Range::kAtLeastZero, *group.lrFactor));
  }
  return group.weightDecay ? checkValue(of, "weight_decay", Range::kAtLeastZero, *group.weightDecay) : absl::OkStatus();
}

}  // namespace

Optimizer::Optimizer(const optim::Sgd& o)
    : kind("sgd"),
      settings{{"lr", o.lr},
               {"momentum", o.momentum},
               {"weight_decay", o.weightDecay},
               {"dampening", o.dampening},
               {"nesterov", o.nesterov ? 1 : 0}},
      groups(o.groups) {}

Optimizer::Optimizer(const optim::Adam& o)
    : kind("adam"),
      settings{{"lr", o.lr},
               {"beta1", o.beta1},
               {"beta2", o.beta2},
               {"epsilon", o.epsilon},
               {"weight_decay", o.weightDecay}},
      groups(o.groups) {}

Optimizer::Optimizer(const optim::AdamW& o)
    : kind("adamw"),
      settings{{"lr", o.lr},
               {"beta1", o.beta1},
               {"beta2", o.beta2},
               {"epsilon", o.epsilon},
               {"weight_decay", o.weightDecay}},
      groups(o.groups) {}

Optimizer::Optimizer(const optim::Adagrad& o)
    : kind("adagrad"),
      settings{{"lr", o.lr},
               {"lr_decay", o.lrDecay},
               {"weight_decay", o.weightDecay},
               {"initial", o.initial},
               {"epsilon", o.epsilon}},
      groups(o.groups) {}

Optimizer::Optimizer(const optim::RmsProp& o)
    : kind("rmsprop"),
      settings{{"lr", o.lr},
               {"alpha", o.alpha},
               {"epsilon", o.epsilon},
               {"weight_decay", o.weightDecay},
               {"momentum", o.momentum},
               {"centered", o.centered ? 1 : 0}},
      groups(o.groups) {}

Optimizer::Optimizer(const optim::Lamb& o)
    : kind("lamb"),
      settings{{"lr", o.lr},
               {"beta1", o.beta1},
               {"beta2", o.beta2},
               {"epsilon", o.epsilon},
               {"weight_decay", o.weightDecay}},
      groups(o.groups) {}

Optimizer::Optimizer(const optim::Lion& o)
    : kind("lion"),
      settings{{"lr", o.lr}, {"beta1", o.beta1}, {"beta2", o.beta2}, {"weight_decay", o.weightDecay}},
      groups(o.groups) {}

Optimizer::Optimizer(const optim::Adafactor& o)
    : kind("adafactor"),
      settings{{"lr", o.lr},
               {"beta2_decay", o.beta2Decay},
               {"epsilon", o.epsilon},
               {"epsilon2", o.epsilon2},
               {"clip_threshold", o.clipThreshold},
               {"weight_decay", o.weightDecay}},
      groups(o.groups) {}

Optimizer::Optimizer(const optim::Own& /*o*/) : kind(kOwn) {}

bool Optimizer::isOwn() const {
  return kind == kOwn;
}

absl::StatusOr<Optimizer> Optimizer::named(const std::string& kind) {
  const Optimizer* const found = find(kind);
  return found == nullptr ? absl::StatusOr<Optimizer>(unknownKind(kind, "")) : *found;
}

double Optimizer::setting(const std::string& name) const {
  const Optimizer* const defaults = find(kind);
  for (const Optimizer* const of : {this, defaults}) {
    for (size_t i = 0; of != nullptr && i < of->settings.size(); ++i) {
      if (of->settings[i].first == name) {
        return of->settings[i].second;
      }
    }
  }
  return 0;
}

void Optimizer::set(const std::string& name, double value) {
  const auto it = std::find_if(settings.begin(), settings.end(), [&](const auto& s) { return s.first == name; });
  if (it == settings.end()) {
    settings.emplace_back(name, value);
  } else {
    it->second = value;
  }
}

optim::Group Optimizer::groupOf(const std::string& parameter) const {
  const auto first = std::find_if(groups.begin(), groups.end(),
                                  [&](const auto& group) { return globMatches(group.first, parameter); });
  return first == groups.end() ? optim::Group() : first->second;
}

std::vector<std::string> optimizerSettings() {
  std::set<std::string> names;
  for (const Optimizer& optimizer : known()) {
    for (const std::string& name : namesOf(optimizer)) {
      names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

bool isFlagSetting(const std::string& name) {
  return rangeOf(name) == Range::kFlag;
}

absl::Status checkOptimizer(const Optimizer& optimizer) {
  if (find(optimizer.kind) == nullptr && optimizer.kind != kNone && optimizer.kind != kOwn) {
    return unknownKind(optimizer.kind, ", none and own");
  }
  for (const auto& [name, value] : optimizer.settings) {
    WEFT_RETURN_IF_ERROR(checkSetting(optimizer, name, value));
  }
  if (optimizer.setting("nesterov") != 0 && optimizer.setting("dampening") != 0) {
    return refuse(absl::StrCat("optimizer ", optimizer.kind, ": nesterov with dampening = ",
                               optimizer.setting("dampening"), "; Nesterov's momentum has none: leave one out"));
  }
  for (const auto& [pattern, group] : optimizer.groups) {
    WEFT_RETURN_IF_ERROR(checkGroup(optimizer, pattern, group));
  }
  return absl::OkStatus();
}

}  // namespace weft
