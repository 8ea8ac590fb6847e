// Reading a rule: text to factors, shapes to factor sizes.
#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ir/layout/rule.h"
#include "runtime/base/limits.h"
#include "runtime/base/numbers.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

using TensorDims = std::vector<DimFactors>;

// Reads the text from left to right into tensors of factor indices.
class RuleReader {
 public:
  explicit RuleReader(const std::string& text) : text_(text) {}

  absl::Status read() {
    WEFT_RETURN_IF_ERROR(readSide(operands_));
    if (text_.compare(at_, 2, "->") != 0) {
      return error("expected '->' between operands and results");
    }
    at_ += 2;
    WEFT_RETURN_IF_ERROR(readSide(results_));
    return at_ == text_.size() ? absl::OkStatus() : error("a second '->'");
  }

  std::vector<Factor> factors_;
  std::vector<TensorDims> operands_;
  std::vector<TensorDims> results_;

 private:
  absl::Status error(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat("rule '", text_, "', position ", at_, ": ", what));
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') {
      ++at_;
    }
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  // Tensors up to '->' or the end; an empty side reads as one scalar, the caller knows whether it stands for none.
  absl::Status readSide(std::vector<TensorDims>& tensors) {
    while (true) {
      WEFT_RETURN_IF_ERROR(readTensor(tensors.emplace_back()));
      if (peek() != ',') {
        return absl::OkStatus();
      }
      ++at_;
    }
  }

  absl::Status readTensor(TensorDims& dims) {
    std::vector<int> inTensor;
    for (char c = peek(); c != '\0' && c != ',' && c != '-'; c = peek()) {
      DimFactors& dim = dims.emplace_back();
      if (c == '1') {
        ++at_;
      } else if (c == '(') {
        WEFT_RETURN_IF_ERROR(readCompound(dim));
      } else {
        WEFT_RETURN_IF_ERROR(readFactor(dim));
      }
      for (int factor : dim) {
        if (std::find(inTensor.begin(), inTensor.end(), factor) != inTensor.end()) {
          return error(absl::StrCat("factor '", factors_[factor].name, "' stands twice in one tensor"));
        }
        inTensor.push_back(factor);
      }
    }
    return absl::OkStatus();
  }

  absl::Status readCompound(DimFactors& dim) {
    ++at_;
    while (peek() != ')') {
      WEFT_RETURN_IF_ERROR(readFactor(dim));
    }
    ++at_;
    return absl::OkStatus();
  }

  absl::Status readFactor(DimFactors& dim) {
    peek();
    size_t begin = at_;
    auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    while (at_ < text_.size() && (letter(text_[at_]) || (at_ > begin && text_[at_] >= '0' && text_[at_] <= '9'))) {
      ++at_;
    }
    if (at_ == begin) {
      return error("expected a factor name, 1 or '('");
    }
    int index = indexOf(text_.substr(begin, at_ - begin));
    if (at_ < text_.size() && text_[at_] == '=') {
      const size_t digits = ++at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
        ++at_;
      }
      const absl::StatusOr<int64_t> size = parseInteger(text_.substr(digits, at_ - digits), {1, kMaxBytes});
      if (!size.ok()) {
        return error(std::string(size.status().message()));
      }
      factors_[index].size = *size;
    }
    const auto isMark = [](char c) { return c == '+' || c == '!' || c == '~'; };
    for (; at_ < text_.size() && isMark(text_[at_]); ++at_) {
      Factor& factor = factors_[index];
      factor.wholeInAny = factor.wholeInAny || (text_[at_] == '!' && text_[at_ - 1] == '!');
      (text_[at_] == '+' ? factor.reducible : text_[at_] == '!' ? factor.whole : factor.microBatches) = true;
    }
    dim.push_back(index);
    return absl::OkStatus();
  }

  int indexOf(const std::string& name) {
    for (size_t f = 0; f < factors_.size(); ++f) {
      if (factors_[f].name == name) {
        return static_cast<int>(f);
      }
    }
    factors_.push_back({name});
    return static_cast<int>(factors_.size()) - 1;
  }

  const std::string& text_;
  size_t at_ = 0;
};

// One dimension of one tensor, for derivation of sizes and for messages.
struct DimPlace {
  const char* side = "";  // "operand", "result"
  size_t tensor = 0;
  size_t dim = 0;
  int64_t size = 0;
  const DimFactors* factors = nullptr;
  std::string print() const { return absl::StrCat(side, " ", tensor, " dimension ", dim, " (", size, ")"); }
};

absl::Status collectPlaces(const std::string& rule, const char* side, const std::vector<TensorDims>& tensors,
                           const std::vector<Shape>& shapes, std::vector<DimPlace>& places) {
  if (tensors.size() != shapes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rule '", rule, "' has ", tensors.size(), " ", side, "s, the operator has ", shapes.size()));
  }
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].size() != shapes[t].size()) {
      return absl::InvalidArgumentError(absl::StrCat("rule '", rule, "': ", side, " ", t, " has ", tensors[t].size(),
                                                     " dimensions in the rule, ", shapes[t].size(), " in its shape [",
                                                     absl::StrJoin(shapes[t], ","), "]"));
    }
    for (size_t d = 0; d < shapes[t].size(); ++d) {
      places.push_back({side, t, d, shapes[t][d], &tensors[t][d]});
    }
  }
  return absl::OkStatus();
}

// Sizes of the factors from the dimensions: simple ones first, compound ones when all but one factor is known.
class SizeSolver {
 public:
  SizeSolver(const std::string& rule, std::vector<Factor>& factors, const std::vector<DimPlace>& places)
      : rule_(rule), factors_(factors), places_(places), known_(factors.size()), from_(factors.size(), nullptr) {
    for (size_t f = 0; f < factors.size(); ++f) {
      known_[f] = factors[f].size > 0;
    }
  }

  absl::Status solve() {
    std::vector<bool> done(places_.size(), false);
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t p = 0; p < places_.size(); ++p) {
        if (!done[p] && unknownIn(places_[p]) <= 1) {
          WEFT_RETURN_IF_ERROR(use(places_[p]));
          done[p] = progress = true;
        }
      }
    }
    for (size_t p = 0; p < places_.size(); ++p) {
      if (!done[p]) {
        return absl::InvalidArgumentError(absl::StrCat("rule '", rule_, "': the factors of ", places_[p].print(),
                                                       " cannot be told apart; name all but one of them elsewhere"));
      }
    }
    return absl::OkStatus();
  }

 private:
  int unknownIn(const DimPlace& place) const {
    return static_cast<int>(
        std::count_if(place.factors->begin(), place.factors->end(), [&](int f) { return !known_[f]; }));
  }

  absl::Status use(const DimPlace& place) {
    int64_t product = 1;
    int open = -1;
    for (int f : *place.factors) {
      if (known_[f]) {
        product *= factors_[f].size;
      } else {
        open = f;
      }
    }
    bool fits = open < 0 ? product == place.size : product > 0 ? place.size % product == 0 : place.size == 0;
    if (!fits) {
      return disagrees(place);
    }
    if (open >= 0) {
      factors_[open].size = product > 0 ? place.size / product : 0;
      known_[open] = true;
      from_[open] = &place;
    }
    return absl::OkStatus();
  }

  absl::Status disagrees(const DimPlace& place) const {
    std::vector<std::string> origins;
    for (int f : *place.factors) {
      if (known_[f]) {
        origins.push_back(absl::StrCat("'", factors_[f].name, "' = ", factors_[f].size, " from ",
                                       from_[f] == nullptr ? "the rule" : from_[f]->print()));
      }
    }
    return absl::InvalidArgumentError(
        absl::StrCat("rule '", rule_, "': ", place.print(), " does not agree with ",
                     origins.empty() ? std::string("the 1 of the rule") : absl::StrJoin(origins, ", ")));
  }

  const std::string& rule_;
  std::vector<Factor>& factors_;
  const std::vector<DimPlace>& places_;
  std::vector<bool> known_;
  std::vector<const DimPlace*> from_;  // of each factor: what gave its size; null: the rule
};

// An empty side stands for no tensor where there is no shape.
void dropEmptySide(std::vector<TensorDims>& tensors, const std::vector<Shape>& shapes) {
  if (shapes.empty() && tensors.size() == 1 && tensors[0].empty()) {
    tensors.clear();
  }
}

// Rules by all that they depend on.
class KnownRules {
 public:
  using Key = std::tuple<std::string, std::vector<Shape>, std::vector<Shape>>;
  using KeyView = std::tuple<const std::string&, const std::vector<Shape>&, const std::vector<Shape>&>;

  std::optional<Rule> find(const KeyView& key) {
    const std::lock_guard lock(mutex_);
    const auto known = rules_.find(key);
    return known == rules_.end() ? std::nullopt : std::optional(known->second);
  }

  void keep(const KeyView& key, const Rule& rule) {
    const std::lock_guard lock(mutex_);
    if (rules_.size() >= kMostRules) {
      rules_.clear();
    }
    rules_.emplace(Key(key), rule);
  }

 private:
  static constexpr size_t kMostRules = 1 << 12;

  std::mutex mutex_;
  std::map<Key, Rule, std::less<>> rules_;
};

}  // namespace

absl::StatusOr<Rule> Rule::parse(const std::string& text, const std::vector<Shape>& operands,
                                 const std::vector<Shape>& results) {
  static KnownRules& known = *new KnownRules;  // never destroyed: threads may ask until the process ends
  const KnownRules::KeyView key(text, operands, results);
  if (std::optional<Rule> rule = known.find(key)) {
    return *std::move(rule);
  }
  WEFT_ASSIGN_OR_RETURN(Rule rule, parseAnew(text, operands, results));
  known.keep(key, rule);
  return rule;
}

absl::StatusOr<Rule> Rule::parseAnew(const std::string& text, const std::vector<Shape>& operands,
                                     const std::vector<Shape>& results) {
  RuleReader reader(text);
  WEFT_RETURN_IF_ERROR(reader.read());
  dropEmptySide(reader.operands_, operands);
  dropEmptySide(reader.results_, results);
  Parts parts = {text, std::move(reader.factors_), std::move(reader.operands_), std::move(reader.results_)};
  std::vector<DimPlace> places;
  WEFT_RETURN_IF_ERROR(collectPlaces(text, "operand", parts.operands, operands, places));
  WEFT_RETURN_IF_ERROR(collectPlaces(text, "result", parts.results, results, places));
  WEFT_RETURN_IF_ERROR(SizeSolver(text, parts.factors, places).solve());
  return Rule(std::move(parts));
}

}  // namespace weft
