// The rule of a reshape: the common refinement of two shapes.
//
// Row-major order makes a dimension boundary the same thing as a number: the product of all sizes left of it. Two
// shapes with the same number of elements share the boundaries where these products are equal; between two shared
// boundaries lies a group. Inside a group the products of both shapes, sorted, cut the group into factors if each
// divides the next; a dimension is then the list of factors between its own two boundaries. Otherwise (4x6 against 6x4:
// 4, 6, 24) the group cannot be cut alike and its dimensions are whole.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/nn/rules.h"

namespace weft::ir::rules {
namespace {

// Products left of and up to each dimension that is not of size 1.
struct Span {
  int64_t begin;
  int64_t end;
  size_t dim;
};

std::vector<Span> spansOf(const Shape& shape) {
  std::vector<Span> spans;
  int64_t product = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1) {
      spans.push_back({product, product * shape[d], d});
      product *= shape[d];
    }
  }
  return spans;
}

std::set<int64_t> endsOf(const std::vector<Span>& spans) {
  std::set<int64_t> ends = {1};
  for (const Span& span : spans) {
    ends.insert(span.end);
  }
  return ends;
}

// One group: the boundaries of both shapes between two shared ones.
bool nests(const std::vector<int64_t>& group) {
  for (size_t i = 1; i < group.size(); ++i) {
    if (group[i] % group[i - 1] != 0) {
      return false;
    }
  }
  return true;
}

class Refinement {
 public:
  Refinement(const Shape& from, const Shape& to) : from_(spansOf(from)), to_(spansOf(to)) {
    std::set<int64_t> fromEnds = endsOf(from_);
    std::set<int64_t> toEnds = endsOf(to_);
    std::set<int64_t> all = fromEnds;
    all.insert(toEnds.begin(), toEnds.end());
    std::vector<int64_t> group;
    for (int64_t end : all) {
      group.push_back(end);
      if (fromEnds.count(end) > 0 && toEnds.count(end) > 0) {
        addGroup(group);
        group = {end};
      }
    }
  }

  std::string text(const Shape& shape, const std::vector<Span>& spans, const std::string& side) const {
    std::vector<std::string> words(shape.size(), "1");
    for (const Span& span : spans) {
      words[span.dim] = dimension(span, side);
    }
    return absl::StrJoin(words, " ");
  }

  std::string rule(const Shape& from, const Shape& to) const {
    return absl::StrCat(text(from, from_, "s"), " -> ", text(to, to_, "r"));
  }

 private:
  void addGroup(const std::vector<int64_t>& group) {
    if (nests(group)) {
      cuts_.insert(group.begin(), group.end());
    } else {
      broken_.push_back({group.front(), group.back(), 0});
    }
  }

  std::string dimension(const Span& span, const std::string& side) const {
    for (const Span& group : broken_) {
      if (span.begin >= group.begin && span.end <= group.end) {
        return absl::StrCat(side, span.dim, "!");
      }
    }
    std::vector<std::string> factors;
    auto first = cuts_.upper_bound(span.begin);
    size_t index = static_cast<size_t>(std::distance(cuts_.begin(), first)) - 1;
    for (auto cut = first; cut != cuts_.end() && *cut <= span.end; ++cut) {
      factors.push_back(absl::StrCat("f", index++));
    }
    std::string joined = absl::StrJoin(factors, " ");
    return factors.size() == 1 ? joined : absl::StrCat("(", joined, ")");
  }

  std::vector<Span> from_;
  std::vector<Span> to_;
  std::set<int64_t> cuts_;    // all boundaries of groups that nest; factor i ends at the (i + 1)th
  std::vector<Span> broken_;  // groups that do not
};

}  // namespace

std::string reshape(const Shape& from, const Shape& to) {
  return Refinement(from, to).rule(from, to);
}

}  // namespace weft::ir::rules
